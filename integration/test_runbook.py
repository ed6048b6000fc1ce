"""The runbook: what it says is seen is seen, its commands run, and what it says helps does."""

from __future__ import annotations

import shlex

import pytest

from eos_sink.errors import OperatorNeededError, SupersededError, UnfinishedError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once
from integration.conftest import MakeQuery
from integration.operator_commands import run_command
from integration.query import Query, flat
from tests.snippets import ROOT, snippets_of

pytestmark = pytest.mark.sampled(8, of="replays and repairs")

PAGE = ROOT / "docs" / "runbook.md"


def section(title: str) -> str:
    return PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def commands(title: str) -> list[str]:
    """Those of a section's blocks that a shell would run."""
    text = section(title)
    return [
        command
        for snippet in snippets_of(PAGE)
        if snippet.language == "sh" and snippet.text in text
        for command in snippet.commands
    ]


class OnCall:
    """Has the page and a cluster; the address in the page's commands is the cluster's."""

    def __init__(self, kafka: KafkaCluster, query_on: MakeQuery) -> None:
        self.kafka = kafka
        self._query_on = query_on

    def query(self, name: str) -> Query:
        """A query of the name that the page's commands give it."""
        return self._query_on(self.kafka, eos_id=name)

    def types(self, command: str) -> tuple[int, str]:
        words = shlex.split(command.replace("localhost:9092", self.kafka.bootstrap_servers))
        printed = run_command(*words[1:], expect=None)
        return printed.code, printed.out


@pytest.fixture
def on_call(kafka: KafkaCluster, query_on: MakeQuery) -> OnCall:
    return OnCall(kafka, query_on)


def told(text: str, title: str) -> bool:
    """Whether the page shows these words, however its lines are broken."""
    return text in " ".join(section(title).split())


def test_readers_that_are_stuck_go_on_when_the_query_starts(on_call: OnCall) -> None:
    query = on_call.query("payments")
    query.run_killed_at(FaultPoint.TASK_PREPARED_AFTER)
    code, seen = on_call.types("eos-sink status payments --bootstrap-server localhost:9092")
    assert code == 1
    said = "3 transactions are open and undecided, and the process that wrote last has ended"
    assert said in seen
    assert told(said, "Readers stuck")
    (command,) = commands("Readers stuck")
    _, seen = on_call.types(command)
    assert [line.split()[2] for line in seen.splitlines() if "-payments-" in line][:3] == [
        "undecided"
    ] * 3
    query.finish()
    query.check()


@pytest.mark.long
def test_what_is_lost_is_explained_and_written_again(on_call: OnCall) -> None:
    query = on_call.query("orders")
    process = query.run_paused_at(FaultPoint.COMMITTER_SETTLE_BEFORE)
    query.take_id(query.slot(), 2)
    process.wake()
    text = process.stopped(UnfinishedError)["text"]
    said = "partitions [2] were aborted since, by their timeout, by a late attempt"
    assert said in text
    assert told(said, "Lost")
    (command,) = commands("Lost")
    code, seen = on_call.types(command)
    assert code == 1
    assert ": skipped" in seen
    query.finish()
    query.check()


def test_doubt_is_shown_with_what_can_be_chosen(on_call: OnCall) -> None:
    query = on_call.query("audit")
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    on_call.kafka.delete_records(query.topic)
    text = query.run().stopped(OperatorNeededError)["text"]
    said = "(24 rows) neither the transaction coordinator nor the topic knows any more"
    assert said in text
    assert told(said, "In doubt")
    (command,) = commands("In doubt")
    code, seen = on_call.types(command)
    assert code == 1
    assert "--visible if what is in doubt is or was there, --lost if it never was" in seen
    code, _ = on_call.types(f"{command} --visible --yes --take-over")
    assert code == 0
    assert query.finish().written(1) == []
    # What was deleted is no reader's any more.
    assert_each_once(query.visible(), flat(query.batches[2]))


@pytest.mark.long
def test_a_run_that_is_fenced_says_by_whom(on_call: OnCall) -> None:
    query = on_call.query("clicks")
    stale = query.run_paused_at(FaultPoint.COMMITTER_WRITE_BEFORE)
    query.finish()
    stale.wake()
    text = stale.stopped(SupersededError)["text"]
    for said in ("The same query was started again: process", "(eos.id 'clicks') has taken over."):
        assert said in text
        assert told(said, "Fenced")
    query.check()


def test_the_doctor_says_why_a_query_will_not_start(on_call: OnCall) -> None:
    (command,) = commands("Will not start")
    code, seen = on_call.types(command.replace("--topic readings", "--topic nowhere"))
    assert code == 1
    assert "kafka-topics" in seen
    assert "--topic nowhere" in seen


def test_the_first_command_and_the_exporter_s_run(on_call: OnCall) -> None:
    on_call.query("readings").finish()
    first = PAGE.read_text().split("```sh\n")[1].split("\n")[0]
    assert "readings-" in on_call.types(first)[1]
    (command,) = commands("Exporter down")
    code, seen = on_call.types(command)
    assert code == 0
    assert "eos_sink_exporter_cluster_up 1.0" in seen
