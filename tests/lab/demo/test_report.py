"""The report and the exit code of the demo."""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

import eos_sink.__main__ as program
from eos_sink import cli
from eos_sink.cli.output import CommandError, Mood, Report, render
from eos_sink_lab.demo import demo_command
from eos_sink_lab.demo.demo_command import add_arguments, report_of
from eos_sink_lab.demo.demo_result import DemoResult, RunResult
from eos_sink_lab.testing.row_check import Count
from eos_sink_lab.testing.topic_audit import Audit

CLEAN = Count(1000, 1000, lost=0, doubled=0, foreign=0, out_of_order=0, examples={})
OURS = RunResult(
    name="exactly-once",
    sink="format('kafka-eos')",
    audit=Audit(CLEAN, withdrawn=0, overlooked=0, aborted=120, held_up={}),
    kills=3,
    mid_commit=1,
    zombies=1,
    refused=1,
    restarts=4,
    seconds=61.4,
)
DOUBLED = replace(CLEAN, records=1300, doubled=300, out_of_order=250)
OTHER = replace(
    OURS,
    name="at-least-once",
    sink="format('kafka')",
    audit=replace(OURS.audit, count=DOUBLED, aborted=0),
)


def text_of(result: DemoResult) -> str:
    return render(report_of(result))


def test_the_table_has_a_column_for_each_run() -> None:
    text = text_of(DemoResult(OURS, OTHER, planned=4, work=None))
    lines = {line[:32].strip(): line.split("   ")[-1].strip() for line in text.splitlines()}

    assert "exactly-once" in text.splitlines()[1]
    assert lines["doubled"] == "300"
    assert lines["out of order"] == "250"
    assert lines["zombie drivers"] == "1 of 1 refused"
    assert "Each row was read once" in text


def test_the_document_has_both_runs() -> None:
    report = report_of(DemoResult(OURS, OTHER, planned=4, work=None))
    ours, other = json.loads(render(report, as_json=True))["runs"]
    assert (ours["perfect"], ours["audit"]["count"]["doubled"]) == (True, 0)
    assert (other["perfect"], other["audit"]["count"]["doubled"]) == (False, 300)


def test_a_doubled_row_of_the_comparison_does_not_fail_the_demo() -> None:
    assert report_of(DemoResult(OURS, OTHER, planned=4, work=None)).ok


@pytest.mark.parametrize(
    "ours",
    [
        replace(OURS, audit=replace(OURS.audit, count=DOUBLED)),
        replace(OURS, audit=replace(OURS.audit, held_up={2: (5, 7)})),
        replace(OURS, refused=0),
    ],
    ids=["doubled", "readers held up", "a zombie not refused"],
)
def test_any_flaw_of_the_exactly_once_side_fails_the_demo(ours: RunResult) -> None:
    report = report_of(DemoResult(ours, None, planned=4, work="/tmp/eos-demo-x"))

    assert not report.ok
    assert any("FAILED" in note for note in report.notes)
    assert any("/tmp/eos-demo-x" in note for note in report.notes)
    assert any(cell.mood is Mood.BAD for row in report.cells for cell in row)


def test_missed_strikes_are_reported() -> None:
    untouched = replace(OTHER, kills=0, zombies=0, refused=0)
    report = report_of(DemoResult(replace(OURS, kills=1), untouched, planned=4, work=None))

    assert any("exactly-once: 2 of 4 strikes found no moment" in note for note in report.notes)
    assert any("at-least-once: 4 of 4 strikes found no moment" in note for note in report.notes)


def run_with(monkeypatch: pytest.MonkeyPatch, outcome: object) -> int:
    def run(_: argparse.Namespace) -> Report:
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, Report)
        return outcome

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo_command, "run", run)
    monkeypatch.setattr(sys, "argv", ["eos-sink", "demo"])
    return program.main()


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Report((), (), ok=True, document={}), 0),
        (Report((), (), ok=False, document={}), 1),
        (CommandError("no Java"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_outcome_has_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, outcome: object, code: int
) -> None:
    assert run_with(monkeypatch, outcome) == code


def test_a_missing_extra_is_named_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def without_psutil(name: str, *more: Any) -> Any:
        return None if name == "psutil" else found(name, *more)

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(importlib.util, "find_spec", without_psutil)

    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == (
        "eos-sink: the demo needs psutil: pip install 'eos-sink[demo]'\n"
    )


@pytest.mark.parametrize("words", [["--rows", "0"], ["--kills", "-1"], ["--kills", "many"]])
def test_numbers_that_make_no_sense_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)

    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert words[0] in capsys.readouterr().err
