"""What `eos-sink migrate` writes runs, and goes on where Spark's own sink has stopped."""

from __future__ import annotations

import runpy
from pathlib import Path

from pyspark.sql import SparkSession

from eos_sink import cli
from eos_sink_lab.testing import KafkaCluster
from integration.checker import assert_each_once, read_topic
from integration.spark_query import close_kept_clients

PROGRAM = """\
from pyspark.sql import SparkSession

PRODUCER = {{
    "kafka.linger.ms": 5,
    "kafka.max.request.size": "2000000",
    "kafka.metric.reporters": "com.example.Reporter",
    "kafka.compression.type": "lz4",
}}
spark = SparkSession.builder.getOrCreate()
(
    spark.readStream.text("{home}/in")
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", "{brokers}")
    .option("topic", "{topic}")
    .option("kafka.acks", "1")
    .option("kafka.enable.idempotence", "false")
    .options(**PRODUCER)
    .option("checkpointLocation", "{home}/checkpoint")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
"""


def test_a_migrated_program_goes_on_from_its_checkpoint(
    both: SparkSession, kafka: KafkaCluster, tmp_path: Path
) -> None:
    kafka.create_topic("migrated", partitions=2)
    (tmp_path / "in").mkdir()
    old, new = tmp_path / "job.py", tmp_path / "new.py"
    given = {"home": tmp_path, "brokers": kafka.bootstrap_servers, "topic": "migrated"}
    # Spark's own sink makes its producer of all of them; this reporter class is nowhere.
    reporter = '    "kafka.metric.reporters": "com.example.Reporter",\n'
    old.write_text(PROGRAM.replace(reporter, "").format(**given))
    feed(tmp_path, 0)
    runpy.run_path(str(old))

    old.write_text(PROGRAM.format(**given))
    assert cli.main(["migrate", str(old), "--write", str(new)]) == 1
    assert cli.main(["migrate", str(new)]) == 0
    feed(tmp_path, 1)
    runpy.run_path(str(new))

    rows = read_topic(kafka.bootstrap_servers, "migrated")
    assert_each_once(rows, [f"{file}-{n}" for file in (0, 1) for n in range(50)])


FOREACH_BATCH = """\
from pyspark.sql import SparkSession


def write(batch, number):
    named = {{"topic": "{topic}"}}
    (
        batch.write.format("kafka")
        .option("kafka.bootstrap.servers", "{brokers}")
        .option("kafka.acks", "1")
        .option("kafka.linger.ms", 5)
        .options(**named)
        .mode("append")
        .save()
    )


(
    SparkSession.builder.getOrCreate()
    .readStream.text("{home}/in")
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", "{home}/checkpoint")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
"""


def test_for_spark_35_a_function_of_foreach_batch_is_migrated(
    spark: SparkSession, kafka: KafkaCluster, tmp_path: Path
) -> None:
    topic = "migrated-function"
    kafka.create_topic(topic, partitions=2)
    (tmp_path / "in").mkdir()
    feed(tmp_path, 0)
    old, new = tmp_path / "job.py", tmp_path / "new.py"
    given = {"home": tmp_path, "brokers": kafka.bootstrap_servers, "topic": topic}
    old.write_text(FOREACH_BATCH.format(**given))
    # The option kafka.acks is refused, and left out.
    assert cli.main(["migrate", str(old), "--spark35", "--write", str(new)]) == 1
    # As the command says that it needs.
    new.write_text(new.read_text().replace("**named}", "**named, 'eos.id': 'migrated'}"))
    try:
        runpy.run_path(str(new))
    finally:
        close_kept_clients()
    assert_each_once(read_topic(kafka.bootstrap_servers, topic), [f"0-{n}" for n in range(50)])


def feed(home: Path, file: int) -> None:
    rows = "".join(f"{file}-{n}\n" for n in range(50))
    (home / "in" / f"{file}.txt").write_text(rows)
