"""A query's figures add up whatever happens to its batches, and never get into their way."""

from __future__ import annotations

import itertools
import json
import logging

import pytest

from eos_sink.driver.batch_metrics import BatchMetrics
from eos_sink.errors import BatchFailedError, SupersededError
from eos_sink.metrics import events
from eos_sink.metrics.names import Count, Event, Step
from eos_sink.metrics.stats import Stats
from tests.protocol.driver import STREAM, Driver, Timed
from tests.protocol.world import World, late_attempt, log, options

_PIDS = itertools.count(100)


def stats(world: World) -> Stats:
    return log(world)[-1].stats


def counts(world: World) -> dict[str, int]:
    return {count.label: number for count, number in stats(world).counts.items() if number}


def test_each_batch_is_counted_in_the_record_that_decides_it(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a", b"b"], [b"c"])
    assert counts(world) == {
        "batches": 1,
        "rows": 3,
        "bytes": 3,
        "transactions": 2,
        "runs": 1,
        "recoveries": 1,
    }
    driver.run(1, [b"d"], [])
    assert stats(world).count(Count.ROWS) == 4
    assert stats(world).count(Count.TRANSACTIONS) == 3
    assert stats(world).decided_ms == world.cluster.clock.ms
    assert {record.prefix for record in log(world)} == {world.options.names.prefix}


def test_a_record_has_the_steps_of_its_tasks_and_those_of_the_driver_of_the_batch_before(
    world: World,
) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"], [b"b"])
    first = stats(world)
    assert {s: first.step(s).count for s in first.steps} == dict.fromkeys(
        [Step.OPEN, Step.WRITE], 1
    )
    driver.run(1, [b"c"], [b"d"])
    second = stats(world)
    assert [second.step(s).count for s in Step] == [2, 2, 1, 1, 1]
    # The vote looks at the clock once, and the driver's transaction at its beginning.
    assert [second.step(s).last for s in Step] == [1.0, 1.0, 2.0, 3.0, 1.0]
    assert [second.step(s).total for s in Step] == [2.0, 2.0, 2.0, 3.0, 1.0]
    driver.run(2, [b"e"], [b"f"])
    assert [stats(world).step(s).count for s in Step] == [3, 3, 2, 2, 2]


def test_the_slowest_task_counts(world: World) -> None:
    driver = Timed(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    reports[1].took[Step.WRITE] = 7.5  # type: ignore[index]
    driver.committer.commit(reports)
    assert stats(world).step(Step.WRITE).last == 7.5


def test_the_vote_records_the_time_left_until_the_timeout(world: World) -> None:
    driver = Driver(world)
    plan = driver.planner.plan()
    reports = driver.write(plan, 0, [b"a"])
    world.cluster.clock.advance(20)
    reports.append(driver.task(plan, 0, 1, [b"b"]))
    world.cluster.clock.advance(10)
    driver.committer.commit(reports)
    assert stats(world).left_ms is None
    driver.run(1, [b"c"])
    assert (stats(world).left_ms, stats(world).timeout_ms) == (30_000, 60_000)


def test_a_batch_that_is_given_up_counts_as_that_and_as_nothing_else(world: World) -> None:
    driver = Timed(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    late_attempt(world, 0, 1)
    with pytest.raises(BatchFailedError):
        driver.committer.commit(reports)
    driver.committer.abort(reports)
    assert counts(world) == {"runs": 1, "recoveries": 1, "aborts": 1}
    driver.run(0, [b"a"], [b"b"])
    assert counts(world) | {"bytes": 0} == {
        "batches": 1,
        "rows": 2,
        "bytes": 0,
        "transactions": 2,
        "runs": 1,
        "recoveries": 1,
        "aborts": 1,
    }


def test_a_restart_finds_what_a_killed_run_had_open(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"b"], [b"c"])
    Timed(world).run(1, [b"b"], [b"c"])
    known = stats(world)
    assert [known.count(c) for c in (Count.RUNS, Count.ABORTS, Count.BATCHES)] == [2, 1, 2]
    assert known.count(Count.ROWS) == 3


def test_a_planner_that_recovers_for_itself_is_no_new_run(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    driver.planner.close()
    driver.run(1, [b"b"])
    known = stats(world)
    assert (known.count(Count.RUNS), known.count(Count.RECOVERIES)) == (1, 2)


def test_a_replay_adds_no_rows_and_is_counted_with_the_next_record(world: World) -> None:
    Timed(world).run(0, [b"a"])
    again = Timed(world)
    again.run(0, [b"a"])
    assert stats(world).count(Count.REPLAYS) == 0
    again.run(1, [b"b"])
    assert [stats(world).count(c) for c in (Count.REPLAYS, Count.ROWS, Count.BATCHES)] == [1, 2, 2]


def test_partitions_that_are_written_again_add_no_rows(world: World) -> None:
    driver = Timed(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    driver.loses(reports, 1)
    Timed(world).run(0, [b"a"], [b"b"])
    assert counts(world) == {
        "batches": 1,
        "rows": 2,
        "bytes": 2,
        "transactions": 3,
        "rewritten_partitions": 1,
        "runs": 2,
        "recoveries": 2,
    }


def test_figures_that_cannot_be_made_are_left_out_and_the_batch_is_decided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    reports = driver.write(driver.planner.plan(), 1, [b"b"])
    reports[0].took[Step.OPEN] = "long"  # type: ignore[index]
    driver.committer.commit(reports)
    assert stats(world).count(Count.BATCHES) == 1

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(events, "emit", fail)
    monkeypatch.setattr(BatchMetrics, "voted", lambda *_: None)
    driver.run(2, [b"c"])
    assert world.visible() == [b"a", b"b", b"c"]


def test_log_lines_name_each_batch_and_the_run_that_takes_over(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=events.LOGGER.name)
    driver = Timed(world)
    driver.run(0, [b"a"], [b"bc"])
    driver.write(driver.planner.plan(), 1, [b"d"])
    other = Timed(world)
    other.run(1, [b"d"])
    with pytest.raises(SupersededError):
        driver.planner.plan()
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [line["event"] for line in lines] == [
        event.label
        for event in (
            Event.RECOVERED,
            Event.COMMITTED,
            Event.RECOVERED,
            Event.ABORTED,
            Event.COMMITTED,
            Event.SUPERSEDED,
        )
    ]
    first = lines[1]
    del first["time"]
    assert first == {
        "event": "committed",
        "query": world.options.names.query,
        "stream": STREAM,
        "batch": 0,
        "seq": 2,
        "partitions": 2,
        "transactions": 2,
        "inline_partitions": 0,
        "rows": 2,
        "bytes": 3,
        **{f"{step.label}_seconds": 1.0 for step in Step},
        "vote_seconds": 2.0,
        "decide_seconds": 3.0,
        "time_left_seconds": 58.0,
    }
    assert lines[2]["run"] == str(other.identity) == lines[-1]["by"]


def test_the_line_of_a_batch_without_a_vote_has_no_time_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([], options=options(**{"eos.inline.bytes": "65536"}))
    caplog.set_level(logging.INFO, logger=events.LOGGER.name)
    driver = Timed(world)
    driver.run(0, [b"a", b"b"], [b"c"])
    driver.run(1, [b"d"], [b"e"])
    mixed, whole = [json.loads(record.getMessage()) for record in caplog.records][1:]
    assert (mixed["transactions"], mixed["inline_partitions"]) == (1, 1)
    assert (whole["transactions"], whole["inline_partitions"]) == (0, 2)
    assert "time_left_seconds" in mixed
    assert not {"time_left_seconds", "vote_seconds"} & whole.keys()


def test_the_option_brings_the_lines_to_standard_error_once(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.NOTSET, logger=events.LOGGER.name)  # and back, afterwards
    Timed(world).run(0, [b"a"])
    assert capsys.readouterr().err == ""
    told = World([], options=options(**{"eos.metrics.log": "true"}), cluster=world.cluster)
    Timed(told).run(1, [b"b"])
    lines = capsys.readouterr().err.splitlines()
    events.LOGGER.handlers.clear()
    assert [json.loads(line)["event"] for line in lines] == ["recovered", "committed"]
