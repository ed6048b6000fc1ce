"""`format("kafka-at-least-once")`: rows to Kafka with a plain producer, as Spark's own sink does.

Takes the place of Spark's own sink in the comparison where its jars cannot be had. Each task
produces its rows and waits for the brokers; a batch that is replayed is written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Found by Spark through the module's name."""

    @classmethod
    def name(cls) -> str:
        return "kafka-at-least-once"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Writer:  # noqa: ARG002, N802
        return Writer(self.options)


class Writer(DataSourceStreamWriter):
    """Runs in tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._servers = options["kafka.bootstrap.servers"]
        self._topic = options["topic"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        failures: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "delivery.report.only.error": True,
            }
        )
        for row in iterator:
            while True:
                try:
                    producer.produce(
                        self._topic,
                        key=row["key"],
                        value=row["value"],
                        headers=[(header["key"], header["value"]) for header in row["headers"]],
                        on_delivery=lambda error, _: failures.append(error),
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(60)
        if failures or left:
            raise RuntimeError(f"{left + len(failures)} rows did not reach Kafka: {failures[:1]}")
        return WriterCommitMessage()
