"""The order that a trace of real runs is checked against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proof.trace import FILE, check, find_wrong_steps
from tests.protocol.explore_streams import StreamPlot, StreamStory
from tests.seeds import chance

PLOTS = 12


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Those of stories, each of which has a Kafka of its own."""
    found = []
    for number in range(PLOTS):
        file = tmp_path / str(number) / FILE
        file.parent.mkdir()
        monkeypatch.setenv("EOS_TRACE", str(file))
        StreamStory(StreamPlot.of(chance("trace", number).randrange(10**6))).play()
        found.append(file)
    monkeypatch.delenv("EOS_TRACE")
    return found


def test_runs_that_meet_faults_keep_the_order(traces: list[Path]) -> None:
    assert [find_wrong_steps(file.parent) for file in traces] == [[]] * PLOTS
    steps = {json.loads(line)["step"] for file in traces for line in file.open()}
    assert {"voted", "write", "written", "commit", "list", "fence", "wait"} <= steps


def line(step: str, seq: int, *transactions: str, **facts: Any) -> str:
    known = {"actor": "one", "group": "q", "step": step, "seq": seq, **facts}
    return json.dumps({**known, "transactions": transactions})


DECIDED = [line("voted", 5, "t"), line("write", 5, "t"), line("written", 5, "t", writer="w")]
GIVEN_UP = [line("list", 5), line("fence", 5), line("write", 6), line("written", 6, writer="v")]


def test_an_order_that_is_kept() -> None:
    assert not list(check([*DECIDED, line("commit", 5, "t"), *GIVEN_UP, line("abort", 6, "u")]))


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (DECIDED[1:], "not voted on"),
        ([line("commit", 5, "t")], "no decision names it"),
        ([*DECIDED, line("written", 5, writer="v")], "two records"),
        (GIVEN_UP[1:], "another record than the list's"),
        ([line("list", 4), *GIVEN_UP[1:]], "another record than the list's"),
        ([GIVEN_UP[0], line("abort", 5, "u")], "without list and fence"),
        ([*GIVEN_UP[:2], line("abort", 6, "u")], "without list and fence"),
        ([*GIVEN_UP, line("abort", 7, "u")], "another record than the fence's"),
    ],
)
def test_an_order_that_is_not_kept(lines: list[str], wrong: str) -> None:
    (found,) = check(lines)
    assert wrong in found
