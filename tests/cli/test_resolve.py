"""The command line of `eos-sink resolve`: the query, the confirmation, the report."""

from __future__ import annotations

import argparse
import io
import json
import os
from dataclasses import replace

import pytest

from eos_sink import cli
from eos_sink.cli import resolve_command
from eos_sink.cli.live_run import check_driver
from eos_sink.cli.output import CommandError, render
from eos_sink.cli.query_name import find_query
from eos_sink.cli.resolve_command import make_report
from eos_sink.driver.processes import current_run
from eos_sink.identity import DEFAULT_PREFIX, QueryNames, query_identity
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops.batch_record import RecordState
from eos_sink.ops.evidence import BatchEvidence
from eos_sink.ops.history import History
from eos_sink.ops.resolve import Choice
from eos_sink.protocol.model import Run
from tests.fakes.admin import FakeAdmin
from tests.ops.operator import Operator, bring_into_doubt, look
from tests.protocol.driver import Driver
from tests.protocol.world import World, options

BY_ID = query_identity("sales", None, None)
BY_PATH = query_identity(None, "/data/orders", None)
BY_NAME = query_identity(None, None, "clicks")
KNOWN = [QueryNames(DEFAULT_PREFIX, name) for name in (BY_ID, BY_PATH, BY_NAME)]


def typed(*words: str) -> argparse.Namespace:
    given = ["resolve", "q-0123456789", "--bootstrap-server", "b:1", *words]
    return cli.parser().parse_args(given)


@pytest.mark.parametrize(
    ("given", "query"),
    [
        (BY_ID, BY_ID),
        ("sales", BY_ID),
        ("/data/orders", BY_PATH),
        ("file:///data/orders/", BY_PATH),
        ("orders", BY_PATH),
        ("clicks", BY_NAME),
        ("unknown-0123456789", "unknown-0123456789"),
    ],
)
def test_a_query_is_meant_by_any_of_its_names(given: str, query: str) -> None:
    assert find_query(given, KNOWN) == QueryNames(DEFAULT_PREFIX, query)


def test_an_unknown_query_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(CommandError, match=BY_ID):
        find_query("sale", KNOWN)
    with pytest.raises(CommandError, match="sale"):
        find_query("sale", [])


def test_a_name_of_two_queries_is_not_guessed() -> None:
    other = query_identity(None, "/other/orders", None)
    with pytest.raises(CommandError, match=f"{BY_PATH} or .*{other}"):
        find_query("orders", [*KNOWN, QueryNames(DEFAULT_PREFIX, other)])


@pytest.mark.parametrize("prefix", ["team-", "team."])
def test_a_query_is_found_under_its_prefix(prefix: str) -> None:
    theirs = QueryNames(prefix, BY_ID)
    assert find_query("sales", [theirs]) == theirs
    assert find_query("sales", [*KNOWN, theirs], prefix) == theirs
    for each in (KNOWN[0], theirs):
        assert find_query(each.group, [*KNOWN, theirs]) == each
    for given in ("sales", BY_ID):
        with pytest.raises(CommandError):
            find_query(given, [*KNOWN, theirs])


@pytest.mark.parametrize("prefix", ["team-", "team."])
def test_a_query_whose_record_is_missing_is_not_taken_for_one_of_another_prefix(
    prefix: str,
) -> None:
    """Both have the same eos.id, so their names differ in the prefix only."""
    ours, theirs = QueryNames(DEFAULT_PREFIX, BY_ID), QueryNames(prefix, BY_ID)
    assert find_query(BY_ID, [ours], prefix) == theirs
    with pytest.raises(CommandError):
        find_query(BY_ID, [theirs])
    assert find_query(ours.group, [theirs]) == ours
    assert find_query(theirs.group, [ours], prefix) == theirs


def test_without_a_log_the_whole_name_is_needed() -> None:
    assert find_query(BY_ID, None) == QueryNames(DEFAULT_PREFIX, BY_ID)
    with pytest.raises(CommandError, match="--log-topic"):
        find_query("sales", None)


def test_only_one_choice_is_made() -> None:
    with pytest.raises(SystemExit):
        typed("--lost", "--visible")
    assert typed("--lost", "--partitions", "2,0").partitions == (2, 0)
    assert typed().choice is None


@pytest.mark.parametrize("words", [("--accept", "--stream", ""), ("--lost", "--partitions", "")])
def test_an_empty_value_does_not_widen_the_choice(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        typed(*words)


# --- confirmation


def confirm(*words: str) -> None:
    names = options().names
    evidence = BatchEvidence(names, History(names.shown, ()), RecordState.NO_DECISION)
    resolve_command.check_choice(typed("--forget", *words), evidence, fences=True)


def test_a_script_confirms_with_yes() -> None:
    confirm("--yes")
    with pytest.raises(CommandError, match="--yes"):
        confirm()


@pytest.mark.parametrize(("said", "meant"), [(options().names.query, True), ("yes", False)])
def test_an_operator_types_the_querys_name(
    monkeypatch: pytest.MonkeyPatch, said: str, meant: bool
) -> None:
    terminal = io.StringIO(said + "\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    if meant:
        confirm()
    else:
        with pytest.raises(CommandError):
            confirm()


# --- a run that may be alive

HERE = current_run(options().origin)
ELSEWHERE = replace(HERE, host="elsewhere")
ENDED = replace(HERE, pid=2**30)
TOOL = replace(HERE, tool="eos-sink resolve")


@pytest.mark.parametrize(
    ("run", "hosts", "says"),
    [
        (HERE, (), ("last record", f"process {os.getpid()} on", "it is alive")),
        (ELSEWHERE, ("/10.0.0.5",), ("lists a member from /10.0.0.5", "on elsewhere since")),
        (ENDED, ("/10.0.0.5",), ("lists a member from /10.0.0.5", "it has ended")),
        (None, ("/10.0.0.5",), ("lists a member from /10.0.0.5",)),
        (ENDED, None, ("cannot be read", "Describe on the group")),
        (TOOL, None, ("cannot be read", "it has ended")),
    ],
    ids=["alive here", "elsewhere", "ended here", "unnamed", "group unreadable", "after a command"],
)
def test_a_run_that_may_be_alive_has_to_be_taken_over(
    run: Run | None, hosts: tuple[str, ...] | None, says: tuple[str, ...]
) -> None:
    names = options().names
    with pytest.raises(CommandError) as refused:
        check_driver(names, run, hosts, take_over=False)
    for part in (*says, "Stop the query", "--take-over"):
        assert part in str(refused.value)
    check_driver(names, run, hosts, take_over=True)


@pytest.mark.parametrize(
    ("run", "hosts"), [(ELSEWHERE, ()), (ENDED, ()), (None, ()), (TOOL, ("/10.0.0.5",))]
)
def test_without_a_member_a_choice_is_free(run: Run | None, hosts: tuple[str, ...]) -> None:
    check_driver(options().names, run, hosts, take_over=False)


def test_a_group_that_may_not_be_read_is_unknown(world: World) -> None:
    Driver(world).run(0, [b"a"])
    admin = FakeAdmin(world.cluster)
    assert look(admin, world.options.names).hosts == ("fake-host",)
    admin.denied.add(Resource.GROUP)
    seen = look(admin, world.options.names)
    assert seen.hosts is None
    text = render(make_report(seen))
    assert "cannot be read" in text
    assert "a choice needs --take-over" in text
    assert "Describe on the group" in text
    world.cluster.groups.end_session(world.options.names.group)
    assert look(FakeAdmin(world.cluster), world.options.names).hosts == ()


# --- what is shown


def test_a_doubt_is_shown_as_text_and_as_json(world: World) -> None:
    bring_into_doubt(world)
    seen = Operator(world).looks()
    report = make_report(seen)
    assert not report.ok
    text = render(report)
    for part in (
        "in doubt",
        "unreadable",
        "batch 0 of stream",
        "--visible",
        "seq 3 at __eos_sink_log[",
    ):
        assert part in text
    document = json.loads(render(report, as_json=True))
    assert document["in_doubt"] == [0, 1]
    assert document["decision"]["batch"] == 0
    assert document["tasks"][0]["witness"]["found"] == "unreadable"
    assert document["carried_out"] is None


def test_an_id_that_the_coordinator_has_forgotten_is_shown_as_no_others(world: World) -> None:
    Driver(world).run(0, [b"a"])
    world.cluster.coordinator.forget(world.options.names.task(0, 0))
    (row,) = make_report(Operator(world).looks()).rows
    assert str(row["known from"]).startswith("coordinator: missing;")


def test_what_was_carried_out_is_shown(world: World) -> None:
    bring_into_doubt(world)
    ops = Operator(world)
    seen = ops.looks()
    written = ops.chooses(Choice.VISIBLE)
    report = make_report(seen, "visible", written.seq)
    assert report.ok
    assert f"--visible is carried out: seq {written.seq}.\nStart the query again." in render(report)
    again = make_report(ops.looks())
    assert again.ok
    assert "Visible by an operator's choice: partitions [0, 1]" in render(again)


def test_a_missing_record_is_shown_with_its_traces(world: World) -> None:
    Driver(world).run(0, [b"a"])
    del world.cluster.topics[world.options.log_topic]
    seen = look(FakeAdmin(world.cluster), world.options.names)
    report = make_report(seen)
    assert not report.ok
    assert "There is no topic __eos_sink_log" in render(report)
    assert world.options.names.task(0, 0) in render(report)


def test_a_query_without_a_trace_is_not_said_to_be_well(world: World) -> None:
    seen = look(FakeAdmin(world.cluster), world.options.names)
    report = make_report(seen)
    assert not report.ok
    assert "--bootstrap-server, --log-topic and --prefix are the query's own" in render(report)
    assert "--forget" not in render(report)
