"""Every doubt on a real Kafka: the query stops, an operator reads why and chooses, it continues."""

from __future__ import annotations

import re
import shlex
import socket
from typing import Any

import pytest

from eos_sink.errors import OperatorNeededError, SupersededError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once
from integration.operator_commands import RAN, WAITING, Operator, run_command
from integration.query import PARTITIONS, ROWS, VERSIONS, Query, flat
from integration.topics import delete_before
from tests.snippets import ROOT, snippets_of

pytestmark = pytest.mark.sampled(8, of="replays and repairs")


@pytest.fixture
def operator(query: Query) -> Operator:
    return Operator(query)


def stopped(query: Query) -> dict[str, Any]:
    error: dict[str, Any] = query.run().stopped(OperatorNeededError)
    assert f"eos-sink resolve {query.options.names.query}" in error["text"]
    assert error["data"].keys() >= {"batch", "partitions", "rows"}
    return error


def bring_into_doubt(kafka: KafkaCluster, query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    kafka.delete_records(query.topic)


def later_batches(query: Query) -> None:
    """What was deleted is no reader's any more: only what comes is checked."""
    assert_each_once(query.visible(), flat(query.batches[2]))


@pytest.mark.long
@VERSIONS
def test_what_was_there_is_not_written_again(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    bring_into_doubt(kafka, query)
    assert stopped(query)["data"]["partitions"] == [0, 1, 2]
    seen = operator.sees(expect=WAITING)
    assert seen["in_doubt"] == [0, 1, 2]
    assert seen["decision"]["batch"] == 1
    assert seen["decision"]["rows"] == PARTITIONS * ROWS
    assert {t["witness"]["found"] for t in seen["tasks"]} == {"unreadable"}
    assert {t["coordinator"]["state"] for t in seen["tasks"]} == {"Empty"}
    assert {t["at_the_end"]["rows"] for t in seen["tasks"]} == {0}
    assert all(topic["start"] == topic["end"] for topic in seen["topics"])
    assert seen["run"]["alive_here"] is False
    assert "add --yes" in operator.is_refused("visible", "--take-over")
    operator.chooses("visible")
    assert operator.sees()["decision"]["override"]["visible"] == [0, 1, 2]
    assert query.finish().written(1) == []
    later_batches(query)


@VERSIONS
def test_markers_prove_what_the_coordinator_has_forgotten(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    """Only the first records are gone, the witnesses among them."""
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    decision = query.log().decision
    assert decision is not None
    witnesses = [entry.witness for entry in decision.prepared]
    delete_before(
        kafka.bootstrap_servers,
        query.topic,
        {
            p: max(w.offset for w in witnesses if w.partition == p) + 1
            for p in {w.partition for w in witnesses}
        },
    )
    seen = operator.sees()
    gone = [t for t in seen["tasks"] if t["witness"]["found"] == "unreadable"]
    assert gone
    assert {t["outcome"] for t in seen["tasks"]} == {"committed"}
    assert {t["at_the_end"]["marker"] for t in gone} == {"commit"}
    assert all(0 < t["at_the_end"]["rows"] <= t["rows"] for t in seen["tasks"])
    assert "Nothing is in doubt" in operator.is_refused("lost", "--yes")
    assert query.finish().written(1) == []


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.TASK_PREPARED_AFTER,
        # Reading the log waits until the transaction of its decision has timed out.
        FaultPoint.COMMITTER_VOTE_AFTER,
    ],
)
def test_a_run_that_is_alive_is_noticed_and_refused_from_then_on(
    query: Query, operator: Operator, point: FaultPoint
) -> None:
    live = query.run_paused_at(point, batch=0)
    assert operator.sees()["run"]["alive_here"] is True
    assert f"process {live.pid} on" in operator.is_refused("forget", "--yes")
    operator.chooses("forget")
    live.wake()
    text = live.stopped(SupersededError)["text"]
    assert "An operator has used eos-sink resolve" in text
    query.finish()
    query.check()


def test_from_another_machine_a_run_is_noticed_by_its_group_member(
    kafka: KafkaCluster, query: Query, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is chosen; once its session has ended, it may be chosen."""
    live = query.run_paused_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    kafka.delete_records(query.topic)
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    seen = operator.sees(expect=WAITING)
    assert (seen["run"]["alive_here"], len(seen["members"])) == (False, 1)
    for choice in ("visible", "lost", "accept", "forget"):
        said = operator.is_refused(choice, "--yes")
        for part in (
            f"group {query.options.names.group} lists a member from {seen['members'][0]}",
            f"written by process {live.pid} on",
            "--take-over",
        ):
            assert part in said
    live.kill()
    operator.is_refused("visible", "--yes")
    kafka.end_session(query.options.names.group, query.options.names.driver)
    assert "--visible is carried out" in operator.types("--visible", "--yes")
    assert query.finish().written(1) == []
    later_batches(query)


def test_the_example_of_the_page_goes_on(kafka: KafkaCluster, query: Query) -> None:
    """The commands of docs/resolve.md, one after the other."""
    bring_into_doubt(kafka, query)
    text = stopped(query)["text"]
    page = ROOT / "docs" / "resolve.md"
    blocks = [s for s in snippets_of(page) if s.language == "sh" and s.not_run is None]
    commands = [shlex.split(command) for block in blocks for command in block.commands]
    chosen = ["--visible", "--take-over", "--yes"]
    assert [command[5:] for command in commands] == [[], [], ["--json"], chosen]
    (example,) = {command[2] for command in commands}
    name = query.options.names.query
    replaced = {example: name, "localhost:9092": kafka.bootstrap_servers}
    codes = []
    for command in commands:
        typed = [replaced.get(word, word) for word in command[1:]]
        codes.append(run_command(*typed, expect=None).code)
    assert codes == [WAITING, WAITING, WAITING, RAN]
    assert query.finish().written(1) == []
    later_batches(query)
    # What the page quotes is what the query says.
    quoted = next(s.text for s in snippets_of(page) if s.language == "text")
    quoted = " ".join(quoted.split()).partition(": ")[2].removesuffix(" ...")
    pattern = (
        re.escape(quoted).replace(re.escape(example), ".*").replace(re.escape("7c1e..."), ".*")
    )
    assert re.match(pattern, text)
