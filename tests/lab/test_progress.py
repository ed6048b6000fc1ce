"""The news and the progress of a long command, on a terminal and in a file."""

from __future__ import annotations

import io
import re
import time

import pytest

from eos_sink_lab.progress import Progress
from tests.fakes.clock import FakeClock
from tests.terminal import Terminal

pytestmark = pytest.mark.usefixtures("colours")


def test_without_rich_a_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.say("news")
    assert terminal.getvalue() == "   0.0 s  news\n"


def test_in_a_pipe_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, out = FakeClock(0), io.StringIO()
    monkeypatch.setattr(time, "monotonic", clock)
    with Progress(out, every_s=5) as progress:
        progress.step("reading", 100)
        for second in range(12):
            clock.advance(min(second, 1))
            progress.at(second * 10, second * 1000, "0 doubled")
        progress.say("news")
    assert out.getvalue().splitlines() == [
        "   1.0 s  reading: 10%, 1,000 rows, 1,000 rows/s, 0 doubled",
        "   6.0 s  reading: 60%, 6,000 rows, 1,000 rows/s, 0 doubled",
        "  11.0 s  reading: 110%, 11,000 rows, 1,000 rows/s, 0 doubled",
        "  11.0 s  news",
    ]


def test_a_terminal_gets_a_bar_for_each_step_and_the_news_above() -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        for step in ("reading", "counting"):
            progress.step(step, 100)
            progress.at(50, 1000)
        progress.say("SIGKILL: batch 3 [a/b]")
    shown = re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "SIGKILL: batch 3 [a/b]" in shown
    for words in ("reading", "counting", "50 %", "1,000 rows"):
        assert words in shown


def test_a_quiet_command_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(None) as progress:
        progress.step("reading", 1)
        progress.at(1, 1)
        progress.say("news")
    assert capsys.readouterr() == ("", "")
