"""Machines whose clocks are wrong, on a real broker."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pyarrow as pa
import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError, ProduceFailedError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.kafka_tools import carry_out
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


# On Kafka 4 an hour ahead is refused by default; each record is a few ms old when it arrives.
REFUSES = {"message_timestamp_before_max_ms": 1}


def test_a_log_that_refuses_the_drivers_clock_is_told_how_to_take_it(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy="compact", **REFUSES)
    topic = new_topic(kafka, "readings")
    query = run(kafka, topic=topic, eos_log_topic=log)
    with pytest.raises(ClusterError, match="clock and the brokers' are too far apart") as error:
        query.write(value=["a"])
    command = error.value.remedy.splitlines()[1]
    carry_out(command.replace("HOST:PORT", kafka.bootstrap_servers))
    query.write(value=["a"])
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["a"]


@pytest.mark.parametrize("inline", ["0", "1000"])
def test_a_row_whose_time_is_refused_is_told_which_clock_it_has(
    kafka: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic = new_topic(kafka, "readings", **REFUSES)
    query = run(kafka, topic=topic, eos_inline_bytes=inline)
    with pytest.raises(ProduceFailedError, match="too far from the brokers' clock") as error:
        query.write(value=["a"])
    assert topic in error.value.message
    assert "max.message.bytes" not in error.value.remedy
    assert not read_topic(kafka.bootstrap_servers, topic).values()
