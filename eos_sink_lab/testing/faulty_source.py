"""The format `kafka-eos` with fault points, where Spark has data sources in Python."""

from __future__ import annotations

from eos_sink.spark.data_source import KafkaEosDataSource
from eos_sink_lab.testing.fault_gates import faulty_connect


class FaultyDataSource(KafkaEosDataSource):
    """`format("kafka-eos")` with fault points; everything else is the sink's own code."""

    connect = staticmethod(faulty_connect)
