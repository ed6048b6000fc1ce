"""Flights from files to Kafka: an ordinary PySpark program.

    python flights_to_kafka.py FLIGHTS_DIRECTORY CHECKPOINT --bootstrap-servers HOST:PORT

There is nothing in it about failures. Kill it at any moment and start it again with the same
checkpoint: with `kafka-eos` each flight is in the topic once, for readers that use
isolation.level=read_committed.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

FLIGHT = """
    row BIGINT, time_hour STRING, carrier STRING, flight BIGINT, tailnum STRING, origin STRING,
    dest STRING, sched_dep_time BIGINT, dep_delay BIGINT, arr_delay BIGINT, air_time BIGINT,
    distance BIGINT
"""


def main() -> None:
    """Read what is there, write it batch by batch, and end."""
    parser = argparse.ArgumentParser(description="Flights from files to Kafka")
    parser.add_argument("flights", help="directory with the parquet files")
    parser.add_argument("checkpoint", help="directory that Spark keeps its progress in")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--format", default="kafka-eos")
    args = parser.parse_args()

    spark = SparkSession.builder.appName("flights-to-kafka").getOrCreate()

    flights = (
        spark.readStream.schema(FLIGHT)
        .option("maxFilesPerTrigger", 1)  # one file, one micro-batch
        .parquet(args.flights)
    )

    # A flight number belongs to one task and to one partition of the topic: its order is kept.
    records = flights.repartition(4, "carrier", "flight").select(
        sf.concat("carrier", "flight").alias("key"),
        sf.to_json(sf.struct("*")).alias("value"),
        sf.array(
            sf.struct(sf.lit("origin").alias("key"), sf.encode("origin", "utf-8").alias("value")),
            sf.struct(sf.lit("dest").alias("key"), sf.encode("dest", "utf-8").alias("value")),
        ).alias("headers"),
    )

    query = (
        records.writeStream.format(args.format)
        .option("kafka.bootstrap.servers", args.bootstrap_servers)
        .option("topic", args.topic)
        .option("includeHeaders", "true")  # kafka-eos writes headers anyway
        .option("checkpointLocation", args.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
