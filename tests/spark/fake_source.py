"""The data source on the fake Kafka of the latest test, and the context of a task."""

from __future__ import annotations

from typing import Any

from eos_sink.sink_options import SinkOptions
from eos_sink.spark.data_source import KafkaEosDataSource
from tests.fakes.kafka import FakeKafka
from tests.protocol.world import World

worlds: list[World] = []


class FakeDataSource(KafkaEosDataSource):
    @staticmethod
    def connect(_: SinkOptions) -> Any:
        return FakeKafka(worlds[-1].cluster)


class Task:
    """Stands for TaskContext, of which there is one a process."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._properties = properties

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return self._properties.get(name)

    def partitionId(self) -> int:  # noqa: N802 - Spark's name
        return 0

    def attemptNumber(self) -> int:  # noqa: N802 - Spark's name
        return 0
