"""`status` and `resolve --end` on the in-memory Kafka: output, questions, refusals."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

import pytest

from eos_sink import cli
from eos_sink.cli import batch_report, resolve_command, status_command
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import CommandError, Report, render
from eos_sink.driver import processes
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops import RefusedChoice
from eos_sink.ops.observer import Observer
from eos_sink.ops.resolve import Choice
from tests.fakes.admin import FakeAdmin
from tests.fakes.log import Outcome, Txn
from tests.ops.operator import Operator as Resolving
from tests.protocol.driver import STREAM, Driver, decide_and_die
from tests.protocol.world import TOPIC, World, late_attempt, open_ids, options
from tests.snippets import ROOT


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World([])
    # The process of the tests is the run's, and lives on.
    monkeypatch.setattr(processes, "_is_local", lambda _: False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    return world


def parsed(*words: str) -> argparse.Namespace:
    return cli.parser().parse_args([*words, "--bootstrap-server", "kafka:9092"])


class Operator:
    """Types commands; the driver of the world has died where `gone`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.admin = FakeAdmin(world.cluster)
        self.query = world.options.names.query

    def status(self, *words: str) -> Report:
        found = Observer(self.admin, "eos-sink-", lambda: self.world.cluster.clock.ms)
        return status_command.make_report(found.look(Deadline(30)), parsed("status", *words))

    def ends(self, *words: str) -> Report:
        return self.resolves("--end", *words)

    def resolves(self, *words: str) -> Report:
        arguments = parsed("resolve", self.world.options.names.group, *words)
        return resolve_command.resolve(self.admin, arguments)

    def explains(self, batch: int, *words: str) -> Report:
        arguments = parsed("status", self.query, str(batch), *words)
        return batch_report.report_batch(self.admin, arguments)

    def id(self, slot: int, partition: int) -> str:
        return self.world.options.names.task(slot, partition)


@pytest.fixture
def ops(world: World) -> Operator:
    return Operator(world)


def prepare_and_die(world: World) -> Driver:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    end(world, driver)
    return driver


def decide_and_end(world: World) -> None:
    """The third partition of the batch has no rows."""
    end(world, decide_and_die(world, [b"a"], [b"b"], []))


def end(world: World, driver: Driver) -> None:
    driver.plans.process.kill()
    world.cluster.groups.end_session(world.options.names.group)


def cells(report: Report) -> list[list[str]]:
    return [[cell.text for cell in row] for row in report.cells]


# --- status


def test_a_cluster_without_a_log_is_no_error(ops: Operator) -> None:
    found = ops.status()
    assert found.ok
    assert "There is no decision log __eos_sink_log" in render(found)
    ops.world.cluster.create_topic("__eos_sink_log")
    assert "has no query yet" in render(ops.status())


def test_a_settled_query_is_a_row_and_needs_no_action(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a"], [b"b"])
    world.cluster.clock.advance(180)
    found = ops.status()
    assert found.ok
    row = [
        ops.query,
        "0",
        "committed",
        "2",
        "3 min ago",
        "live",
        "0",
        "0",
        "-",
        "-",
    ]
    assert cells(found) == [row]
    assert render(found).endswith("No action needed.")


def test_what_a_dead_driver_left_needs_an_operator(world: World, ops: Operator) -> None:
    decide_and_end(world)
    world.cluster.clock.advance(20)
    found = ops.status()
    assert not found.ok
    assert cells(found)[0][2:10] == ["open", "2", "20 s ago", "gone", "2", "0", "20 s", "40 s"]
    command = f"eos-sink resolve {ops.query} --end --bootstrap-server kafka:9092"
    assert command in render(found)
    document: dict[str, Any] = json.loads(render(found, as_json=True))
    (query,) = document["queries"]
    assert (query["outcome"], query["driver"], query["rows"]) == ("open", "gone", 2)
    assert [each["left_ms"] for each in query["open"]] == [40_000] * 2
    assert [each["kind"] for each in document["alerts"]] == ["decided and not settled"]


def test_one_query_is_found_by_its_name_and_a_wrong_one_by_its_neighbours(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    assert cells(ops.status("story"))[0][0] == ops.query
    with pytest.raises(CommandError, match=ops.query):
        ops.status("storm")
    with pytest.raises(CommandError, match="story-0000000000"):
        ops.status("story-0000000000")


def test_the_page_documents_each_key(world: World, ops: Operator) -> None:
    decide_and_end(world)
    (query,) = ops.status().document["queries"]
    page = (ROOT / "docs" / "api.md").read_text().partition("## For programs")[2]
    for table, document in zip(
        page.split("| Key | Meaning |")[1:], (query, ops.explains(0).document), strict=True
    ):
        rows = re.findall(r"^\| (`.+?) \|", table, re.M)
        keys = [key for row in rows for key in row.split(", ")]
        assert sorted(keys) == sorted(f"`{key}`" for key in document)
    resolving = ops.resolves().document.keys()
    assert resolving - ops.explains(0).document.keys() == {"carried_out", "written_seq"}


def test_foreign_and_newer_records_are_listed_and_the_rest_is_shown(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    put(world, "garbage", b"hello")
    found = ops.status()
    assert not found.ok
    assert cells(found)[0][2] == "committed"
    assert "has 1 records that this version cannot read" in render(found)
    put(world, world.options.names.group, b'{"format":9}')
    found = ops.status()
    assert cells(found)[0][2] == "unreadable"
    assert "its latest record, at __eos_sink_log[0]@" in render(found)
    for words in (["--end"], ["--accept"], ["--forget"]):
        with pytest.raises(RefusedChoice, match="format 9"):
            ops.resolves(*words, "--yes", "--take-over")
    seen = ops.resolves()
    assert not seen.ok
    assert "format 9" in render(seen)


def test_a_topic_of_rows_is_not_taken_for_a_log_with_a_strange_writer(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    (partition,) = world.cluster.topics["__eos_sink_log"].partitions
    partition.start = partition.end
    put(world, "key", b"row")
    found = render(ops.status())
    assert "check that --log-topic is the queries' eos.log.topic" in found
    assert "find the writer" not in found


def put(world: World, key: str, value: bytes, outcome: Outcome = Outcome.COMMITTED) -> None:
    (partition,) = world.cluster.topics["__eos_sink_log"].partitions
    foreign = Txn("foreign", 1, 0, outcome)
    partition.append(foreign, key.encode(), value, (), world.cluster.clock.ms)


def test_a_missing_permission_is_named_and_the_rest_is_shown(world: World, ops: Operator) -> None:
    decide_and_end(world)
    ops.admin.denied.add(Resource.GROUP)
    found = ops.status()
    assert found.exit_code is ExitCode.NOT_SEEN
    assert cells(found)[0][5] == "unknown"
    assert f"lacks Describe on group eos-sink-{ops.query}" in render(found)
    assert "Grant it: kafka-acls" in render(found)


# --- transactions


def test_what_is_open_is_listed_with_what_the_log_says(world: World, ops: Operator) -> None:
    prepare_and_die(world)
    coordinator = world.cluster.coordinator
    for other in ("connect-1", "eos-sink-x-0123456789-0-4"):
        coordinator.open(other, coordinator.init(other, 60_000))
    world.cluster.clock.advance(15)
    found = ops.status("--transactions")
    assert cells(found) == [
        [ops.id(1, 0), "0", "undecided", "15 s", "45 s"],
        [ops.id(1, 1), "1", "undecided", "15 s", "45 s"],
        ["eos-sink-x-0123456789-0-4", "-", "-", "15 s", "45 s"],
    ]
    assert "3 open transactions, 0 of them decided." in render(found)
    assert found.document == ops.status().document
    assert len(ops.status("story", "--transactions").rows) == 2
    with pytest.raises(CommandError, match="BATCH"):
        status_command.run(parsed("status", "story", "1", "--transactions"))


def test_what_is_undecided_is_aborted_when_it_is_confirmed(world: World, ops: Operator) -> None:
    prepare_and_die(world)
    with pytest.raises(CommandError, match="--yes"):
        ops.ends()
    assert len(open_ids(world)) == 2
    found = ops.ends("--yes")
    assert found.ok
    assert "--end is carried out: seq 3." in render(found)
    assert open_ids(world) == []
    # The command's own membership is not a driver of the query.
    assert cells(ops.status())[0][5] == "gone"
    assert "--end is carried out." in render(ops.ends())  # Nothing is open, so nothing is asked.


def test_a_run_that_may_be_alive_is_not_replaced_by_mistake(world: World, ops: Operator) -> None:
    driver = Driver(world)
    driver.write(driver.planner.plan(), 0, [b"a"])
    with pytest.raises(CommandError, match="--take-over"):
        ops.ends("--yes")
    assert len(open_ids(world)) == 1
    assert ops.ends("--yes", "--take-over").ok


def test_what_is_decided_is_committed_though_a_run_may_be_alive(
    world: World, ops: Operator
) -> None:
    decide_and_die(world, [b"a"], [b"b"])
    found = ops.ends("--yes")
    assert found.ok
    assert found.document["carried_out"] == "end"
    assert found.document["written_seq"] is None
    assert world.visible() == [b"a", b"b"]
    assert ops.status().ok


def test_what_was_not_seen_is_named_and_nothing_is_chosen(world: World, ops: Operator) -> None:
    Driver(world).run(0, [b"a"])
    ops.admin.denied.add(Resource.TRANSACTIONAL_ID)
    explained = ops.explains(0)
    # Whether it is visible is not seen either.
    assert (explained.unseen, explained.exit_code) == (True, ExitCode.FAILED)
    assert explained.document["undecided_ids"] is None
    status = ops.status()
    assert cells(status)[0][6:10] == ["?"] * 4
    assert [status.document["queries"][0][key] for key in ("open", "undecided")] == [None] * 2
    assert status.document["open_of_no_query"] is None
    assert "open transactions" not in ops.status("--transactions").notes[0]
    seen = ops.resolves()
    assert (seen.exit_code, len(seen.document["not_seen"])) == (ExitCode.FAILED, 1)
    for words in (["--end"], ["--accept"], ["--forget"]):
        with pytest.raises(RefusedChoice, match="not all was seen"):
            ops.resolves(*words, "--yes", "--take-over")


def test_a_part_of_the_log_that_is_not_read_is_not_taken_for_no_record(
    world: World, ops: Operator
) -> None:
    Driver(world).run(0, [b"a"])
    for partition in world.cluster.topics[world.options.log_topic].partitions:
        partition.has_leader = False
    seen = ops.resolves()
    assert not seen.ok
    assert "of the decision log is not seen" in render(seen)
    assert "--forget" not in render(seen)
    with pytest.raises(RefusedChoice, match="not all was seen"):
        ops.resolves("--forget", "--yes", "--take-over")
    with pytest.raises(CommandError, match="of the decision log is not seen"):
        ops.explains(0)


def test_without_a_record_nothing_is_ended(ops: Operator) -> None:
    with pytest.raises(RefusedChoice, match="Nothing is ended"):
        ops.ends("--yes")


# --- explain


def test_each_task_of_a_batch_is_explained(world: World, ops: Operator) -> None:
    decide_and_end(world)
    found = ops.explains(0)
    assert not found.ok
    assert [row[:3] for row in cells(found)] == [
        ["0", "1", "open"],
        ["1", "1", "open"],
        ["2", "0", "no rows"],
    ]
    world.cluster.coordinator.time_out()
    assert [row[2] for row in cells(ops.explains(0))] == ["lost", "lost", "no rows"]
    assert ": skipped" in cells(ops.explains(0))[0][3]
    driver = Driver(world)
    driver.committer.commit(driver.write(driver.planner.plan(), 0, [b"a"], [b"b"], []))
    found = ops.explains(0)
    assert found.ok
    assert [row[2] for row in cells(found)] == [
        *("committed", "lost, written again") * 2,
        "no rows",
    ]


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.FORGET])
def test_a_batch_of_which_an_operator_has_given_rows_up_is_not_good(
    world: World, ops: Operator, choice: Choice
) -> None:
    decide_and_die(world)
    for partition in range(2):
        late_attempt(world, 0, partition)
    Resolving(world).chooses(choice)
    found = ops.explains(0)
    assert not found.ok
    Driver(world, "stream-2").run(0, [b"c"])
    world.cluster.topics[world.options.log_topic].partitions[0].compact()
    gone = ops.explains(0, "--stream", STREAM)
    assert not gone.ok
    assert "unless an operator has" in render(gone)


def test_an_earlier_batch_is_known_by_the_later_one(world: World, ops: Operator) -> None:
    driver = Driver(world)
    for batch in range(3):
        driver.run(batch, [b"%d" % batch])
    for partition in world.cluster.topics[TOPIC].partitions:
        partition.delete_before(partition.end)
    late_attempt(world, 0, 0)
    found = ops.explains(0)
    assert found.ok
    assert cells(found)[0][2] == "committed"
    assert "a later batch was decided (seq 3)" in cells(found)[0][3]
    world.cluster.topics["__eos_sink_log"].partitions[0].compact()
    found = ops.explains(0)
    assert (found.ok, found.rows) == (True, ())
    assert "no record of it is left, and a later batch is decided" in render(found)


def test_a_batch_that_is_not_decided_shows_what_is_open(world: World, ops: Operator) -> None:
    prepare_and_die(world)
    found = ops.explains(1)
    assert not found.ok
    assert [row[2] for row in cells(found)] == ["open, undecided"] * 2
    assert "latest decided batch is 0" in render(found)
    put(world, "another", b"open", Outcome.OPEN)
    found = ops.explains(1)
    assert "batch 1 of stream stream-1: not seen: the log goes on" in render(found)
    assert "visible" not in render(found)
    assert found.unseen
    arguments = parsed("status", "storm", "1")
    with pytest.raises(CommandError, match="storm"):
        batch_report.report_batch(ops.admin, arguments)


# --- rows in the transaction of the decision


@pytest.fixture
def inline(world: World) -> Driver:
    world.options = options(**{"eos.inline.bytes": "65536"})
    return Driver(world)


def test_a_batch_that_the_driver_wrote_is_committed_and_every_task_is_explained(
    ops: Operator, inline: Driver
) -> None:
    inline.run(0, [b"a"], [], [b"b"])
    found = ops.status()
    assert found.ok
    assert cells(found)[0][2:8] == ["committed", "2", "0 s ago", "live", "0", "0"]
    (query,) = json.loads(render(found, as_json=True))["queries"]
    assert (query["inline_partitions"], query["inline_rows"], query["rows"]) == (2, 2, 2)
    found = ops.explains(0)
    assert found.ok
    outcomes = [(row[1], row[2]) for row in cells(found)]
    assert outcomes == [("1", "committed"), ("0", "no rows"), ("1", "committed")]
    assert "All its rows are in the transaction of the decision" in render(found)
    document = json.loads(render(found, as_json=True))
    decision = document["decision"]
    assert (decision["inline_partitions"], decision["inline_rows"]) == (2, 2)
    assert [task["inline"] for task in document["tasks"]] == [True, False, True]


def test_a_lost_transaction_does_not_touch_what_the_driver_wrote(
    world: World, ops: Operator, inline: Driver
) -> None:
    # Two rows come in two Arrow batches, so the first task opens a transaction.
    inline.dies_after_the_decision(0, [b"a", b"b"], [b"c"], [])
    end(world, inline)
    assert cells(ops.status())[0][2] == "open"
    assert [row[2] for row in cells(ops.explains(0))] == ["open", "committed", "no rows"]
    world.cluster.coordinator.time_out()
    found = ops.status()
    assert cells(found)[0][2] == "lost"
    assert json.loads(render(found, as_json=True))["queries"][0]["lost"] == [0]
    assert [row[2] for row in cells(ops.explains(0))] == ["lost", "committed", "no rows"]
    assert "1 rows, of 1 of the 2 tasks with rows, are in" in render(ops.explains(0))


# --- one query's name under two prefixes


def twins() -> tuple[World, World]:
    """Both have decided a batch; the second's prefix is its own."""
    one = World([])
    made = options(**{"eos.transactional.id.prefix": "team-", "topic": "other"})
    one.cluster.create_topic("other", 2)
    other = World([], cluster=one.cluster, options=made)
    Driver(one).run(0, [b"a"])
    Driver(other, "stream-2").run(3, [b"b"], [b"c"])
    return one, other


def test_two_prefixes_of_one_query_are_two_rows(world: World) -> None:
    one, _ = twins()
    ops = Operator(one)
    found = ops.status()
    assert found.document is not None
    told = {(q["query"], q["prefix"]): q["batch"] for q in found.document["queries"]}
    assert told == {(ops.query, "eos-sink-"): 0, (ops.query, "team-"): 3}
    assert [row[-1] for row in cells(found)] == ["eos-sink-", "team-"]
    assert found.document["unreadable"] == []


@pytest.mark.parametrize("words", [["--prefix", "team-"], []], ids=["prefix", "name"])
def test_a_query_is_found_under_its_prefix_and_not_guessed(world: World, words: list[str]) -> None:
    ops = Operator(twins()[0])
    with pytest.raises(CommandError, match=f"eos-sink-{ops.query} or team-{ops.query}"):
        ops.status(ops.query)
    name = ops.query if words else f"team-{ops.query}"
    found = ops.status(name, *words)
    assert found.document is not None
    assert [q["prefix"] for q in found.document["queries"]] == ["team-"]


def test_a_query_of_another_log_is_not_taken_for_the_one_with_its_name_here(world: World) -> None:
    """Its transactions say nothing about this one, and its tasks' are no driver's."""
    made = options(**{"eos.transactional.id.prefix": "team-", "eos.log.topic": "theirs"})
    other = Driver(World([], cluster=world.cluster, options=made), "stream-2")
    Driver(world).run(0, [b"a"])
    other.write(other.planner.plan(), 0, [b"b"])
    ops = Operator(world)
    found = ops.status().document
    assert found is not None
    assert found["queries"][0]["open"] == []
    arguments = parsed("resolve", made.names.group, "--end", "--yes", "--take-over")
    arguments.prefix = made.names.prefix
    with pytest.raises(RefusedChoice, match="--log-topic"):
        resolve_command.resolve(ops.admin, arguments)
    assert open_ids(other.world) == [made.names.task(0, 0)]
