"""The formulas of docs/performance.md, and that what they say of names and records is so."""

from __future__ import annotations

import pytest

from bench.result import Label, Notebook
from bench.scale import (
    Line,
    fit,
    most_tasks,
    read_by_a_plan,
    requests,
    transactional_ids,
)
from eos_sink.decision_log.codec import encode
from eos_sink.identity import QueryNames
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Prepared, RowDigest
from eos_sink.protocol.values import Position


def test_a_line_goes_through_the_ends_and_is_judged_by_what_is_between() -> None:
    found = fit("settle", "ms", {1: 3.0, 11: 23.0, 5: 12.0})
    assert found.line == Line(1.0, 2.0)
    assert found.between == {5: 12.0}
    assert found.line.at(5) == 11.0


def test_a_line_does_not_fall() -> None:
    assert fit("decide", "ms", {1: 9.0, 5: 7.0, 11: 8.0}).line == Line(9.0, 0.0)


def test_two_points_say_nothing_of_a_line() -> None:
    with pytest.raises(ValueError, match="\\[1, 2\\]"):
        fit("settle", "ms", {1: 3.0, 2: 4.0})


def test_the_requests_of_a_phase_are_added_up_over_the_apis() -> None:
    notebook = Notebook("requests", "4.3.0", {})
    for api, samples in {"END_TXN": (4, 4), "PRODUCE": (1, 1), "HEARTBEAT": (1, 0)}.items():
        place: dict[str, Label] = {"phase": "commit", "api": api}
        notebook.note("requests", "", *samples, tasks=4, inline=False, **place)
        notebook.note("requests", "", 1, tasks=4, inline=True, **place)
    notebook.note("requests", "", 9, tasks=4, phase="plan", inline=False, api="FETCH")
    assert requests(notebook.result(), "commit") == {4: 5.0}
    assert requests(notebook.result(), "commit", inline=True) == {4: 2.0}


@pytest.mark.parametrize("tasks", [1, 3, 10])
def test_the_transactional_ids_are_those_that_the_sink_names(tasks: int) -> None:
    names = QueryNames("eos-sink-", "q")
    named = {names.task(slot, number) for slot in (0, 1) for number in range(tasks)}
    assert len({*named, names.driver}) == transactional_ids(1, tasks)
    assert transactional_ids(5, tasks) == 5 * transactional_ids(1, tasks)


def decision(tasks: int) -> int:
    """The bytes of its record."""
    prepared = tuple(
        Prepared(n, 4_000, 3, RowDigest(1_000, 100_000, 2**63 + n), Position("t", 1, 5_000))
        for n in range(1_000, 1_000 + tasks)
    )
    topics = {"t": "x" * 36}
    made = Decision(BatchId("stream", 7), 0, tasks, RowDigest(), prepared, topics=topics)
    return len(encode(LogRecord(1, made, "writer")))


def test_a_decision_grows_by_the_same_for_each_task() -> None:
    found = fit("decision", "B", {tasks: decision(tasks) for tasks in (1, 100, 500, 1_000)})
    for tasks, measured in found.between.items():
        assert found.line.at(tasks) == pytest.approx(measured, rel=0.01)
    most = most_tasks(found.line, 50_000)
    assert decision(most) == pytest.approx(50_000, rel=0.01)


def test_a_plan_reads_the_records_of_every_query_of_its_partition() -> None:
    assert read_by_a_plan(1_000, 100) == 1_000 / LOG_PARTITIONS * 100
    assert read_by_a_plan(1, 100) == 100
