"""A driver whose machine's clock is wrong, on a real broker."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pyarrow as pa
import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.topics import new_topic

HOUR_MS = 3_600_000


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_driver_with_a_wrong_clock_decides(kafka: KafkaCluster, off_ms: int) -> None:
    topic, servers = new_topic(kafka, "readings"), kafka.bootstrap_servers
    options = parse_options(
        {
            "kafka.bootstrap.servers": servers,
            "eos.id": topic,
            "topic": topic,
            "eos.inline.bytes": "0",
        }
    )
    with ExitStack() as ending:
        cluster = ConfluentKafka(options.cluster)
        ending.callback(cluster.close)
        planner = Planner(cluster, options)
        ending.callback(planner.close)
        rows = [pa.RecordBatch.from_pydict({"value": ["a"]})]
        report = TaskWriter(cluster, options, planner.plan()).write(
            BatchId(options.names.query, 0), 0, rows
        )
        Committer(cluster, options, lambda: int(time.time() * 1000) + off_ms).commit([report])
    assert read_topic(servers, topic).values() == ["a"]
