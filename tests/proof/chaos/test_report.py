"""The report tells what a run came to, also one that came to little."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eos_sink_lab.testing import FaultPoint
from eos_sink_lab.testing.row_check import Count
from eos_sink_lab.testing.topic_audit import Audit
from proof.chaos.chaos_page import render_chaos_page
from proof.chaos.figures import Figures, figures
from proof.chaos.kinds import Kind, Master
from proof.chaos.publish import SECTIONS, marks
from proof.chaos.recovery import Split
from proof.chaos.result import OnDisk, Outcome, Result, Settings
from proof.chaos.schedule import Fault, Step
from proof.chaos.watch import Second

BEGAN = 1_763_740_800.0
PERFECT = Audit(Count(4000, 4000, 0, 0, 0, 0, {}), 0, 0, 12, {})


def outcome(number: int, *faults: Fault, split: Split | None = None, held_up: str = "") -> Outcome:
    at = BEGAN + 10 * number + 5
    return Outcome(
        step=Step(number, 1.0, faults, Master.LOCAL),
        life=number,
        struck=list(faults),
        at=at,
        healed=at + 1,
        visible=at + 6,
        caught_up=at + 7,
        held_up=held_up,
        silence_s=6.0,
        split=split,
    )


KILLED = Fault(Kind.KILL_DRIVER, FaultPoint.COMMITTER_WRITE_AFTER)
CUT = Fault(Kind.CUT, target=1, duration_s=3.0)


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return Result(
        settings=Settings(tmp_path, 7, 60.0, 100, (Master.LOCAL,)),
        began=BEGAN,
        ended=BEGAN + 60,
        kafka="4.3.0",
        rows=4000,
        outcomes=[
            outcome(0, KILLED, split=Split(6.0, 0.3, 0.2, 0.1)),
            outcome(1, CUT, KILLED),
            outcome(2, KILLED, split=Split(8.0, 0.4, 0.4, 0.2)),
        ],
        seconds=[Second(int(BEGAN) + t, 100, 0.5, 0.9) for t in range(1, 40)],
        lives=4,
        events=[
            {"t": BEGAN, "what": "end", "error": "UnfinishedError", "text": "..."},
            {"t": BEGAN, "what": "end", "error": "", "text": "Python worker exited"},
            {"t": BEGAN, "what": "end", "error": "", "text": ""},
        ],
        audit=PERFECT,
        on_disk=OnDisk(100, 3, 0),
    )


def told(result: Result) -> Figures:
    """What a reader of the JSON file gets."""
    found: Figures = json.loads(json.dumps(figures(result)))
    return found


def test_faults_are_counted_by_kind_and_by_point(result: Result) -> None:
    found = told(result)
    assert found["faults"] == 4
    assert {row["kind"]: (row["struck"], row["survived"]) for row in found["by_kind"]} == {
        Kind.KILL_DRIVER.value: (3, 3),
        Kind.CUT.value: (1, 1),
    }
    assert [(row["point"], row["struck"]) for row in found["by_point"]] == [
        ("committer.write.after", 3)
    ]


def test_recoveries_have_median_percentile_and_maximum(result: Result) -> None:
    recovery = told(result)["recovery_s"]
    assert recovery["kills"] == 2
    assert recovery["ours"] == {"median": 0.8, "p95": 0.98, "max": 1.0}
    assert recovery["total"]["max"] == 8.0


def test_a_driver_that_stopped_by_itself_is_counted_by_its_error(result: Result) -> None:
    assert told(result)["stops"] == {"UnfinishedError": 1, "an error of Spark or Python": 1}


def test_a_perfect_run_is_good(result: Result) -> None:
    assert result.good
    assert "exactly once" in render_chaos_page(told(result))


@pytest.mark.parametrize("flaw", ["lost", "doubled", "foreign", "out_of_order"])
def test_a_flaw_of_the_count_fails_the_run(result: Result, flaw: str) -> None:
    changed: dict[str, Any] = {flaw: 1}
    result.audit = replace(PERFECT, count=replace(PERFECT.count, **changed))
    assert not result.good
    assert "FAILED" in render_chaos_page(told(result))


def test_readers_that_are_held_up_fail_the_run(result: Result) -> None:
    result.outcomes.append(outcome(3, CUT, held_up="row 17 is missing"))
    assert not result.good
    assert "row 17 is missing" in render_chaos_page(told(result))


def test_whatever_else_is_wrong_fails_the_run(result: Result) -> None:
    assert not replace(result, flaws=["driver 3: OperatorNeededError"]).good
    assert not replace(result, audit=None).good
    assert not replace(result, audit=replace(PERFECT, withdrawn=1)).good
    assert not replace(result, audit=replace(PERFECT, held_up={0: (1, 2)})).good
    assert not replace(result, on_disk=OnDisk(1, 1, 1)).good


def test_a_run_that_was_interrupted_at_its_start_has_a_report(result: Result) -> None:
    early = replace(result, outcomes=[], seconds=[], events=[], audit=None, on_disk=None)
    assert "FAILED" in render_chaos_page(told(early))


def test_the_page_needs_nothing_else(result: Result) -> None:
    text = render_chaos_page(told(replace(result, flaws=["<script>alert(1)</script>"])))
    assert "&lt;script&gt;" in text
    assert "<svg" in text
    assert "<script" not in text
    assert 'href="http' not in text.replace('xlink:href="http', "")


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_a_place_for_each_section(section: str) -> None:
    page = Path("docs/internals/chaos.md").read_text()
    assert [page.count(mark) for mark in marks(section)] == [1, 1]
