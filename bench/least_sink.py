"""A minimal Python sink: one call per row, at least once, without state.

What it takes is what Spark takes to run the tasks of any sink that is written in Python. Its rows
are visible before its commit, for which Spark starts two more processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    import pyarrow as pa


class LeastSink(DataSource):
    """`format("least")`, with options `kafka.bootstrap.servers` and `topic`."""

    @classmethod
    def name(cls) -> str:
        return "least"

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: Any,  # noqa: ARG002
        overwrite: bool,  # noqa: ARG002
    ) -> LeastWriter:
        return LeastWriter(self.options["kafka.bootstrap.servers"], self.options["topic"])


class LeastWriter(DataSourceStreamArrowWriter):
    """Writes column `value`."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": "5"})
        for batch in iterator:
            for value in batch.column("value").to_pylist():
                producer.produce(self._topic, value)
        producer.flush()
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass
