"""A plan outlives the process that made it for as long as the brokers let its group member live."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import CommitFailedError, ConfigurationError, ProduceFailedError
from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol import rules
from eos_sink.protocol.model import BatchId, Plan, TaskReport
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

LEAST_MS, MOST_MS = 6_000, 20_000
TIMEOUT_MS = 5_000
PROGRAM = """
import os, pickle, signal, sys
from eos_sink.protocol import rules
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.driver.planner import Planner

options, least_ms, said = pickle.loads(sys.stdin.buffer.read())
rules._SESSION_MARGIN_MS = least_ms - options.transaction_timeout_ms
kafka = ConfluentKafka(options.cluster)
plan = Planner(kafka, options).plan()
# It lives at least as long as the plan's would with the shortest session.
kafka.member(options.names.group + "-least", "least", least_ms).join(Deadline(30))
with open(said, "wb") as file:
    pickle.dump(plan, file)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def strict() -> Iterator[KafkaCluster]:
    """Session lengths as Kafka has them, scaled down to what a test can wait for."""
    with start_own_kafka(properties={"group.max.session.timeout.ms": MOST_MS}) as cluster:
        yield cluster


@pytest.fixture
def options(strict: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> SinkOptions:
    monkeypatch.setattr(rules, "_SESSION_MARGIN_MS", LEAST_MS - TIMEOUT_MS)
    topic = new_topic(strict, "slow", partitions=1)
    return parse_options(
        {
            "kafka.bootstrap.servers": strict.bootstrap_servers,
            "topic": topic,
            "eos.id": topic,
            "eos.transaction.timeout.ms": str(TIMEOUT_MS),
            # A task opens a transaction, however few its rows are.
            "eos.inline.bytes": "0",
        }
    )


def plan_of_a_killed_process(options: SinkOptions, directory: Path) -> Plan:
    """Spark kills a planner process that has been idle for a minute."""
    said = directory / "plan"
    given = pickle.dumps((options, LEAST_MS, str(said)))
    ended = subprocess.run([sys.executable, "-c", PROGRAM], input=given, check=False)
    assert ended.returncode == -signal.SIGKILL
    plan: Plan = pickle.loads(said.read_bytes())
    return plan


def await_no_member(options: SinkOptions, group: str) -> None:
    deadline = Deadline(60)
    with closing(ConfluentAdmin(options.cluster)) as admin:
        while admin.describe_groups([group], deadline.within(5))[group]:
            assert not deadline.passed, f"{group} still has a member"


def write_late(kafka: ConfluentKafka, options: SinkOptions, plan: Plan) -> TaskReport:
    row = pa.RecordBatch.from_pydict({"value": [b"late"]})
    return TaskWriter(kafka, options, plan).write(BatchId(options.names.query, 0), 0, [row])


@pytest.mark.long
def test_a_task_whose_first_row_is_late_writes_under_the_plan_of_a_killed_process(
    options: SinkOptions, strict: KafkaCluster, tmp_path: Path
) -> None:
    plan = plan_of_a_killed_process(options, tmp_path)
    await_no_member(options, f"{options.names.group}-least")
    kafka = ConfluentKafka(options.cluster)
    report = write_late(kafka, options, plan)
    committer = Committer(kafka, options)
    committer.commit([report])
    committer.close()
    assert options.topic is not None
    assert read_topic(strict.bootstrap_servers, options.topic).values() == ["late"]


@pytest.mark.long
def test_a_task_that_comes_after_the_session_reports_how_long_a_plan_may_last(
    options: SinkOptions, tmp_path: Path
) -> None:
    plan = plan_of_a_killed_process(options, tmp_path)
    await_no_member(options, options.names.group)
    with (
        closing(ConfluentKafka(options.cluster)) as kafka,
        pytest.raises(ProduceFailedError) as failed,
    ):
        write_late(kafka, options, plan)
    assert failed.value.data["session_ms"] == MOST_MS
    assert "group.max.session.timeout.ms" in failed.value.remedy


@pytest.mark.long
def test_the_driver_reports_it_if_the_rows_were_few_enough_to_come_through_it(
    options: SinkOptions,
    strict: KafkaCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = replace(options, inline_bytes=65_536)
    plan = plan_of_a_killed_process(options, tmp_path)
    await_no_member(options, options.names.group)
    kafka = ConfluentKafka(options.cluster)
    report = write_late(kafka, options, plan)
    with closing(Committer(kafka, options)) as committer:
        with pytest.raises(CommitFailedError) as failed:
            committer.commit([report])
        # What cannot be given up without the member is left to the next start, which is no error.
        with caplog.at_level("WARNING", logger="eos_sink.driver"):
            committer.abort([report])
    assert "is aborted at the query's next start" in caplog.text
    assert failed.value.data["session_ms"] == MOST_MS
    assert options.topic is not None
    assert read_topic(strict.bootstrap_servers, options.topic).values() == []


def test_where_settings_of_brokers_may_not_be_seen_a_refused_session_is_asked_for_shorter(
    options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's default maximum is asked for first, which these brokers refuse."""
    monkeypatch.setattr(ConfluentKafka, "longest_session", lambda *_: None)
    planner = Planner(ConfluentKafka(options.cluster), options)
    assert planner.plan().token.session_ms == LEAST_MS
    planner.close()


def test_a_session_that_is_too_short_for_the_transactions_is_refused_at_the_start(
    options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "_SESSION_MARGIN_MS", MOST_MS)
    planner = Planner(ConfluentKafka(options.cluster), options)
    with pytest.raises(ConfigurationError):
        planner.plan()
    planner.close()
