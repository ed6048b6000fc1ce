"""The data source on the fake Kafka of the latest test."""

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
