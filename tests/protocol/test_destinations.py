"""What a query with declared destinations does: it looks first, and refuses rows for elsewhere."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    for name in ("payments", "audit", "other"):
        cluster.create_topic(name, 3)
    return cluster


def options(**given: str) -> SinkOptions:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return parse_options({"kafka.bootstrap.servers": "nowhere:1", "eos.id": "story", **named})


def write(cluster: FakeCluster, given: SinkOptions, *parts: dict[str, list[Any]]) -> TaskReport:
    """A batch of one task, planned and written, in one Arrow batch a part."""
    kafka = FakeKafka(cluster)
    plan = Planner(kafka, given).plan()
    data = [pa.RecordBatch.from_pydict(part) for part in parts]
    return TaskWriter(kafka, given, plan).write(BatchId("stream", 0), 0, data)


def produced(cluster: FakeCluster, topic: str) -> int:
    """Records and markers, whatever became of them."""
    return sum(log.end for log in cluster.topics[topic].partitions)


def test_rows_for_declared_places_are_written(cluster: FakeCluster) -> None:
    report = write(
        cluster,
        options(eos_destinations="payments, audit:1-2"),
        {"value": ["a", "b"], "topic": ["payments", "audit"], "partition": [None, 2]},
        {"value": ["c"], "topic": ["audit"], "partition": [1]},
    )
    assert report.digest.rows == 3
    fixed = options(topic="payments", eos_destinations="payments:0")
    assert write(cluster, fixed, {"value": ["a"], "partition": [0]}).digest.rows == 1
    whole = options(topic="payments", eos_destinations="payments")
    assert write(cluster, whole, {"value": ["a"]}).digest.rows == 1


LOG = {"value": ["a", "b"], "topic": ["payments", "__eos_sink_log"]}


@pytest.mark.parametrize("inline", ["0", "4096"])
@pytest.mark.parametrize("declared", ["", "payments"])
def test_a_row_for_the_decision_log_is_refused(
    cluster: FakeCluster, inline: str, declared: str
) -> None:
    given = options(eos_inline_bytes=inline, eos_destinations=declared)
    with pytest.raises(ConfigurationError) as error:
        write(cluster, given, LOG)
    assert error.value.data == {"topic": "__eos_sink_log"}
    assert produced(cluster, "payments") == 0


@pytest.mark.parametrize("inline", ["0", "4096"])
@pytest.mark.parametrize("declared", ["", "payments"])
def test_a_row_for_the_decision_log_is_a_dead_letter(
    cluster: FakeCluster, inline: str, declared: str
) -> None:
    given = {"eos_inline_bytes": inline, "eos_destinations": declared}
    report = write(cluster, options(eos_dead_letter_topic="other", **given), LOG)
    assert report.dead_letters == {"InvalidTopicException": 1}


ELSEWHERE: dict[str, tuple[dict[str, str], dict[str, list[Any]]]] = {
    "another topic": ({}, {"value": ["b"], "topic": ["other"]}),
    "another partition": ({}, {"value": ["b"], "topic": ["audit"], "partition": [0]}),
    "no partition": ({}, {"value": ["b"], "topic": ["audit"], "partition": [None]}),
    "no column partition": ({}, {"value": ["b"], "topic": ["audit"]}),
    "the option's topic": ({"topic": "audit"}, {"value": ["b"]}),
    "its partition": ({"topic": "audit"}, {"value": ["b"], "partition": [0]}),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_row_for_elsewhere_is_refused_before_it_is_produced(
    cluster: FakeCluster, name: str
) -> None:
    more, part = ELSEWHERE[name]
    given = options(eos_destinations="payments, audit:1-2", **more)
    good: dict[str, list[Any]] = {"value": ["a"], "topic": ["audit"], "partition": [1]}
    with pytest.raises(ConfigurationError) as error:
        write(cluster, given, good, part)
    assert error.value.data["kafka_error"] == "UnknownTopicOrPartition"
    assert produced(cluster, "other") == 0
    assert cluster.topics["audit"].partitions[0].end == 0
    assert cluster.topics["audit"].committed() == []
    assert cluster.coordinator.list_open("eos-sink-") == []


def test_without_the_option_rows_go_where_they_say(cluster: FakeCluster) -> None:
    assert write(cluster, options(), {"value": ["a"], "topic": ["other"]}).digest.rows == 1


def test_what_is_declared_is_looked_at_before_anything_is_taken_over(cluster: FakeCluster) -> None:
    given = options(eos_destinations="payments, missing")
    with pytest.raises(ClusterError) as error:
        Planner(FakeKafka(cluster), given).plan()
    assert error.value.data == {"kafka_error": "UnknownTopicOrPartition", "topic": "missing"}
    assert "__eos_sink_log" not in cluster.topics


def test_a_weak_promise_is_reported_once(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    planner = Planner(FakeKafka(cluster), options(eos_destinations="payments"))
    with caplog.at_level(logging.WARNING, "eos_sink.driver"):
        planner.plan()
        planner.plan()
    assert [record.getMessage()[:38] for record in caplog.records] == [
        "Topic payments has min.insync.replicas"
    ]
