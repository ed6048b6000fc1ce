"""Every doubt on a real Kafka: the query stops, an operator reads why and chooses, it continues."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from eos_sink.errors import OperatorNeededError, SupersededError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.operator_commands import RAN, REFUSED, WAITING, Operator, run_command
from integration.query import PARTITIONS, ROWS, VERSIONS, Query, rows_of
from integration.topics import delete_before
from tests.snippets import ROOT, snippets_of


@pytest.fixture
def operator(kafka: KafkaCluster, query: Query) -> Operator:
    return Operator(kafka, query)


def stopped(query: Query) -> dict[str, Any]:
    error: dict[str, Any] = query.run().stopped(OperatorNeededError)
    assert f"eos-sink resolve {query.options.names.query}" in error["text"]
    assert error["data"].keys() >= {"batch", "partitions", "rows"}
    return error


def bring_into_doubt(kafka: KafkaCluster, query: Query, at: FaultPoint) -> None:
    query.run_killed_at(at)
    query.take_all_ids()
    kafka.delete_records(query.topic)


def later_batches(query: Query) -> None:
    """What was deleted is no reader's any more: only what comes is checked."""
    rows = query.visible().values()
    expected = [row for batch in query.batches[2:] for part in batch for row in part]
    assert sorted(rows) == sorted(expected)


@VERSIONS
def test_what_was_there_is_not_written_again(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    bring_into_doubt(kafka, query, FaultPoint.COMMITTER_SETTLE_AFTER)
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


def test_what_was_never_there_is_written_again(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    bring_into_doubt(kafka, query, FaultPoint.COMMITTER_WRITE_AFTER)
    stopped(query)
    operator.chooses("lost")
    assert query.finish().written(1) == [0, 1, 2]
    query.batches = query.batches[1:]
    query.check()


@pytest.mark.long
def test_partitions_may_have_different_fates(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    bring_into_doubt(kafka, query, FaultPoint.COMMITTER_WRITE_AFTER)
    operator.chooses("visible", "--partitions", "0,2")
    assert stopped(query)["data"]["partitions"] == [1]
    assert operator.sees(expect=WAITING)["in_doubt"] == [1]
    operator.chooses("lost", "--partitions", "1")
    process = query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    assert process.written(1) == [1]
    # The override about the others outlives the decision that replaces it.
    assert query.finish().written(1) == []
    rows = query.visible().values()
    assert sorted(rows) == sorted([*rows_of(1)[1], *(row for p in rows_of(2) for row in p)])


def test_a_choice_against_the_evidence_is_refused(query: Query, operator: Operator) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID)
    states = {t["partition"]: t["outcome"] for t in operator.sees()["tasks"]}
    assert sorted(states.values()) == ["committed", "open", "open"]
    committed = next(p for p, standing in states.items() if standing == "committed")
    open_ = next(p for p, standing in states.items() if standing == "open")
    for choice in ("lost", "visible"):
        assert "Nothing is in doubt" in operator.is_refused(choice, "--yes")
        said = operator.is_refused(choice, "--yes", "--partitions", str(committed))
        assert "is committed" in said
        said = operator.is_refused(choice, "--yes", "--partitions", str(open_))
        assert "is decided and open" in said
        assert "no transaction of partition 9" in operator.is_refused(
            choice, "--yes", "--partitions", "9"
        )
    assert query.finish().written(1) == []
    query.check()


@VERSIONS
def test_markers_prove_what_the_coordinator_has_forgotten(
    kafka: KafkaCluster, query: Query, operator: Operator
) -> None:
    """Only the first records are gone, the witnesses among them."""
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.take_all_ids()
    witnesses = [entry.witness for entry in decided(query)]
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


def decided(query: Query) -> Sequence[Any]:
    decision = query.log().decision
    assert decision is not None
    return decision.prepared


def test_the_decided_rows_at_the_end_of_the_topic_are_known_by_their_fingerprint(
    query: Query, operator: Operator
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    seen = operator.sees()
    assert all(t["at_the_end"]["same_rows"] for t in seen["tasks"])
    assert "8 of its rows, the decided ones" in operator.types()
    assert all(t["at_the_end"]["marker"] == "commit" for t in seen["tasks"])


def test_a_replay_with_other_rows_is_accepted(query: Query, operator: Operator) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.replan(rows_of(1, [ROWS, ROWS, ROWS + 1]))
    assert stopped(query)["data"]["partitions"] == [2]
    operator.chooses("accept")
    assert query.finish().written(1) == []
    query.check()


@pytest.mark.long
def test_a_replay_with_other_rows_is_written_too(query: Query, operator: Operator) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.replan(rows_of(1, [ROWS, ROWS, ROWS + 1]))
    stopped(query)
    operator.chooses("forget")
    assert query.finish().written(1) == [0, 1, 2]
    rows = query.visible().values()
    assert rows.count("1-0-0") == 2
    assert rows.count("1-2-8") == 1


def test_the_printed_command_reaches_a_log_of_the_querys_own(
    kafka: KafkaCluster, query: Query
) -> None:
    query.own_log()
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.replan(rows_of(1, [ROWS, ROWS, ROWS + 1]))
    printed = re.search(r"eos-sink (resolve \S+ .*?) shows", stopped(query)["text"])
    assert printed is not None
    words = shlex.split(printed[1].replace("HOST:PORT", kafka.bootstrap_servers))
    assert run_command(*words, "--json").document["log"]["seq"] == query.log().seq


@pytest.mark.long
def test_an_old_checkpoint_goes_on_when_the_decision_is_dropped(
    query: Query, operator: Operator
) -> None:
    query.finish()
    query.restore_checkpoint(1)
    assert stopped(query)["data"]["decided"] == 2
    operator.chooses("forget")
    query.finish()
    rows = query.visible().values()
    assert (rows.count("0-0-0"), rows.count("1-0-0"), rows.count("2-0-0")) == (1, 2, 2)


def test_what_is_decided_is_committed_before_it_is_dropped(
    query: Query, operator: Operator
) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    operator.chooses("forget")
    query.check(batches=2)


def test_a_query_whose_log_was_deleted_starts_again(query: Query, operator: Operator) -> None:
    query.own_log()
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    query.commit_log(1)
    query.delete_log()
    stopped(query)
    seen = operator.sees(expect=WAITING)
    assert seen["committed_without_record"] == query_ids(query)
    query.delete_log()
    seen = operator.sees(expect=WAITING)
    assert seen["log"]["seq"] == 0
    assert "no topic" in operator.types(expect=WAITING)
    for choice in ("visible", "lost", "accept"):
        assert "no decision" in operator.types(f"--{choice}", "--yes", expect=REFUSED)
    assert "--forget is carried out" in operator.types("--forget", "--yes", "--take-over")
    query.finish()
    query.check()


def query_ids(query: Query) -> list[str]:
    names = query.options.names
    return [*(names.task(slot, p) for slot in (0, 1) for p in range(PARTITIONS)), names.driver]


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.TASK_PREPARED_AFTER,
        # Reading the log waits until the transaction of its decision has timed out.
        pytest.param(FaultPoint.COMMITTER_VOTE_AFTER, marks=pytest.mark.long),
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


def test_a_query_is_found_by_what_it_is_called(query: Query, operator: Operator) -> None:
    query.finish()
    whole = operator.called
    for called in (query._given["eos.id"], whole.rpartition("-")[0]):
        operator.called = called
        assert operator.sees()["query"] == whole
    operator.called = f"{whole[:-11]}x"
    said = operator.types(expect=REFUSED)
    assert f"no query {operator.called!r}; it has" in said
    assert whole in said
    operator.called = whole
    assert "no such log topic" not in operator.types("--command-config", "/dev/null")
    assert "--command-config" in operator.types("--command-config", "/nowhere", expect=REFUSED)


def test_the_example_of_the_page_goes_on(kafka: KafkaCluster, query: Query) -> None:
    """The commands of docs/resolve.md, one after the other, as a shell would run them."""
    bring_into_doubt(kafka, query, FaultPoint.COMMITTER_SETTLE_AFTER)
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
        run = [sys.executable, "-m", "eos_sink", *typed]
        codes.append(subprocess.run(run, check=False).returncode)
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


@pytest.mark.long
def test_two_queries_under_one_identity_are_named(query: Query) -> None:
    query._given["checkpointLocation"] = "s3a://KEY:SECRET@bucket/one"
    older = query.run_paused_at(FaultPoint.COMMITTER_VOTE_AFTER, batch=0)
    query._given["checkpointLocation"] = "s3a://KEY:SECRET@bucket/two"
    newer = query.run()
    newer.finished()
    older.wake()
    text = older.stopped(SupersededError)["text"]
    assert "Two queries share one identity" in text
    for process, place in ((older, "one"), (newer, "two")):
        assert f"process {process.pid} on" in text
        assert f"checkpoint 's3a://bucket/{place}'" in text
    assert "SECRET" not in text
    assert "SECRET" not in repr(query.log())
    query.check()
