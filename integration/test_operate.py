"""`status` and `resolve --end` on a real Kafka, for what crashes leave behind."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from eos_sink_lab.testing.topic_scan import Offsets, Source
from integration.conftest import MakeQuery
from integration.operator_commands import run_command
from integration.query import PARTITIONS, PATIENCE_S, ROWS, Query
from tests.namespaces import IN_ANOTHER_NAMESPACE, has_namespaces
from tests.snippets import ROOT, snippets_of

pytestmark = pytest.mark.sampled(8, of="replays and repairs")

FINE, LOOK, REFUSED = 0, 1, 2


class OnCall:
    """Types commands about one query, which stands apart."""

    def __init__(self, kafka: KafkaCluster, query: Query) -> None:
        self._kafka = kafka
        self.reach = query.reach
        self.query = query
        self.name = query.options.names.query

    def types(self, *words: str, expect: int | None = FINE) -> str:
        return run_command(*words, *self.reach, expect=expect).said

    def reads(self, *words: str, expect: int | None = FINE) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.types(*words, "--json", expect=expect))
        return document

    def status(self, expect: int = FINE) -> dict[str, Any]:
        (found,) = self.reads("status", expect=expect)["queries"]
        status: dict[str, Any] = found
        return status

    def open(self) -> set[str]:
        (found,) = self.reads("status", self.name, expect=None)["queries"]
        return {each["transactional_id"] for each in found["open"]}

    def outcomes(self, batch: int, expect: int = FINE) -> list[str]:
        document = self.reads("status", self.name, str(batch), expect=expect)
        return [each["outcome"] for each in document["tasks"]]

    def end_session(self) -> None:
        """The driver that ended is no longer the group's member."""
        names = self.query.options.names
        self._kafka.end_session(names.group, names.driver)


@pytest.fixture
def on_call(kafka: KafkaCluster, query: Query) -> OnCall:
    query.stand_apart()
    return OnCall(kafka, query)


def test_a_query_that_runs_well_needs_no_action(on_call: OnCall) -> None:
    assert "There is no decision log" in on_call.types("status")
    assert "There is no decision log" in on_call.types("status")  # It was not made.
    assert "there is no such log topic" in on_call.types("status", "x", expect=REFUSED)
    began = time.time() * 1000
    on_call.query.finish()
    status = on_call.status()
    assert status["query"] == on_call.name
    assert status["prefix"] == on_call.query.options.names.prefix
    assert status["batch"] == 2
    assert (status["rows"], status["partitions"]) == (PARTITIONS * ROWS, PARTITIONS)
    assert (status["outcome"], status["driver"], status["open"]) == ("committed", "ended", [])
    assert began <= status["decided_at_ms"] <= time.time() * 1000
    assert "No action needed" in on_call.types("status", on_call.name)
    said = on_call.types("status", f"{on_call.name[:-11]}x", expect=REFUSED)
    assert f"it has {on_call.query.options.names.shown}" in said
    for batch in range(3):
        assert on_call.outcomes(batch) == ["committed"] * PARTITIONS
    assert "not decided" in on_call.types("status", on_call.name, "3", expect=LOOK)
    assert on_call.open() == set()


def test_what_was_prepared_is_aborted_and_the_batch_comes_once(on_call: OnCall) -> None:
    query = on_call.query
    query.run_killed_at(FaultPoint.TASK_PREPARED_AFTER)
    status = on_call.status(expect=LOOK)
    assert status["driver"] == "ended"
    assert status["batch"] == 0
    assert [each["decided"] for each in status["open"]] == [False] * PARTITIONS
    assert all(0 < each["left_ms"] <= 90_000 for each in status["open"])
    assert on_call.open() == set(query.task_ids(1))
    said = on_call.types("status", on_call.name, "--transactions", expect=LOOK)
    assert "3 open transactions, 0 of them decided." in said
    assert all(each in said for each in query.task_ids(1))
    assert on_call.outcomes(1, expect=LOOK) == ["open, undecided"] * PARTITIONS
    # The dead driver is the group's member for a while.
    command = f"eos-sink resolve {on_call.name} --end --bootstrap-server"
    assert command not in on_call.types("status", expect=LOOK)
    end = ("resolve", on_call.name, "--end")
    said = on_call.types(*end, "--yes", expect=REFUSED)
    assert "died within its session" in said
    assert "it has ended" in said
    assert "add --yes" in on_call.types(*end, "--take-over", expect=REFUSED)
    assert on_call.open() == set(query.task_ids(1))
    on_call.end_session()
    assert on_call.status(expect=LOOK)["driver"] == "gone"
    assert command in on_call.types("status", expect=LOOK)
    on_call.types(*end, "--yes")
    assert on_call.open() == set()
    query.check(batches=1)
    query.finish()
    query.check()
    assert on_call.status()["batch"] == 2


@pytest.mark.skipif(not has_namespaces(), reason="this user cannot make PID namespaces")
def test_a_sidecar_in_another_pid_namespace_does_not_take_a_live_driver_for_dead(
    on_call: OnCall,
) -> None:
    query = on_call.query
    live = query.run_paused_at(FaultPoint.TASK_PREPARED_AFTER)
    program = [*IN_ANOTHER_NAMESPACE, sys.executable, "-m", "eos_sink"]

    def types(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [*program, *words, *on_call.reach], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    code, said = types("status", "--json")
    (seen,) = json.loads(said)["queries"]
    assert (code, seen["driver"], len(seen["open"])) == (FINE, "live", PARTITIONS), said
    code, said = types("resolve", on_call.name, "--end", "--yes")
    assert code == REFUSED
    assert "it has ended" not in said
    live.wake()
    live.finished()
    query.check()


@pytest.mark.long
def test_what_timed_out_is_lost(on_call: OnCall) -> None:
    query = on_call.query
    query.change({"eos.transaction.timeout.ms": "5000"})
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    deadline = Deadline(PATIENCE_S)
    while (status := on_call.status(expect=LOOK))["outcome"] != "lost":
        assert not deadline.passed, status
    assert status["lost"] == list(range(PARTITIONS))
    query.finish()
    query.check()


def test_the_commands_of_the_page_run(
    kafka: KafkaCluster, on_call: OnCall, query_on: MakeQuery
) -> None:
    """docs/status.md: a query that died after its decision, and one that died before it."""
    options = on_call.query.options
    apart = {"eos_transactional_id_prefix": options.names.prefix}
    orders = query_on(kafka, eos_log_topic=options.log_topic, **apart)
    on_call.query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    orders.run_killed_at(FaultPoint.TASK_PREPARED_AFTER)
    names = {
        "readings": on_call.name,
        "orders": orders.options.names.query,
        "localhost:9092": kafka.bootstrap_servers,
    }
    page = snippets_of(ROOT / "docs" / "status.md")
    of_the_page = [command for s in page if s.language == "sh" for command in s.commands]
    # Those that watch are run by test_watch.py.
    commands = [each for each in of_the_page if not each.startswith("eos-sink watch ")]
    # All queries, and what is open; both are ended; one batch.
    codes = (LOOK, LOOK, FINE, FINE, FINE)
    for command, code in zip(commands, codes, strict=True):
        words = [names.get(word, word) for word in shlex.split(command)[1:]]
        on_call.types(*words, expect=code)
    assert on_call.open() == set()
    assert on_call.outcomes(1) == ["committed"] * PARTITIONS
    orders.finish()
    orders.check()


@pytest.mark.long
def test_commands_that_look_change_nothing(
    kafka: KafkaCluster, on_call: OnCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, topic = on_call.query, on_call.query.topic
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    ids = [*query.task_ids(0, 1), query.options.names.driver]
    monkeypatch.setenv("EOS_SINK_BOOTSTRAP_SERVER", kafka.bootstrap_servers)
    monkeypatch.setenv("EOS_SINK_LOG_TOPIC", query.options.log_topic)
    monkeypatch.setenv("EOS_SINK_PREFIX", query.options.names.prefix)

    def state() -> tuple[object, ...]:
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        topics = client.list_topics(timeout=30).topics
        written = (topic, query.options.log_topic)
        ends = [Offsets(Source(kafka.bootstrap_servers, each)).find_high() for each in written]
        groups = client.list_consumer_groups().result().valid
        return (
            set(topics),
            ends,
            {group.group_id for group in groups},
            on_call.query.kafka.control().describe(ids, Deadline(PATIENCE_S)),
        )

    before = state()
    for words in (
        ["status"],
        ["watch", "--updates", "1"],
        ["status", "--transactions"],
        ["status", on_call.name, "0"],
        ["resolve", on_call.name],
        ["doctor", "--topic", topic, "--query", on_call.name],
        ["doctor", "--topic", "nowhere", "--log-topic", "nowhere"],
        ["exporter", "--once"],
        ["verify", topic],
        ["migrate", f"topic={topic}", f"kafka.bootstrap.servers={kafka.bootstrap_servers}"],
    ):
        printed = run_command(*words, expect=None)
        assert printed.code in (FINE, LOOK), (words, printed)
    assert state() == before
