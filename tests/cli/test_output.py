"""What a command prints: in a pipe, on a terminal, for a program."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout

import pytest

from eos_sink import cli
from eos_sink.cli import completion_command
from eos_sink.cli.doctor_command import report_of
from eos_sink.cli.output import Cell, Mood, Report, print_report, render, span
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.ops.doctor.findings import Finding
from tests.terminal import Terminal

pytestmark = pytest.mark.usefixtures("colours")


def on_terminal(report: Report, *, as_json: bool = False) -> str:
    with redirect_stdout(Terminal()) as out:
        print_report(report, as_json=as_json)
    return out.getvalue()


REPORT = Report(
    ({"name": "lost", "found": Cell("1,000", Mood.BAD)}, {"name": "x", "found": "2"}),
    ("A note.",),
    ok=False,
    document={"n": 1},
)
TABLE = ["", "name   found", "────────────", "lost   1,000", "x          2", "────────────"]


def without_styles(text: str) -> str:
    return re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", text)


def test_in_a_pipe_columns_are_aligned_and_there_are_no_colours() -> None:
    assert render(REPORT).splitlines() == [*TABLE, "A note."]


def test_without_columns_there_are_the_notes_only() -> None:
    assert render(Report((), ("x", "y"), ok=True, document={})) == "x\ny"


def test_a_program_gets_the_document_even_on_a_terminal() -> None:
    assert json.loads(on_terminal(REPORT, as_json=True)) == {"n": 1}


def test_a_long_cell_is_wrapped_where_the_report_wants_that() -> None:
    row = {"k": "a", "text": "one two-three four"}
    wrapped = Report((row, row), (), ok=True, document={}, left=2, wrap=9)
    lines = ["a   one", "    two-three", "    four"]
    assert render(wrapped).splitlines()[3:-1] == [*lines, *lines]


def test_a_terminal_gets_colours_and_the_same_content() -> None:
    shown = on_terminal(REPORT)
    assert "\033[1;31m" in shown
    for words in ("name", "found", "lost", "1,000"):
        assert words in without_styles(shown)
    assert shown.endswith("A note.\n")


def test_a_command_in_a_note_is_never_broken() -> None:
    command = "kafka-configs " + "--alter " * 20
    report = Report(({"a": "x"},), (command,), ok=True, document={})
    assert on_terminal(report).endswith(f"{command}\n")


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in on_terminal(REPORT)


def test_without_rich_a_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert on_terminal(REPORT).splitlines() == [*TABLE, "A note."]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 s"), (119_000, "119 s"), (120_000, "2 min"), (7_200_000, "2 h"), (172_800_000, "2 d")],
)
def test_a_duration_has_one_unit(ms: int, text: str) -> None:
    assert span(ms) == text


HOSTILE = "a\x1b[2Jb\nc\x07[bold]d[/bold]"
ESCAPED = r"a\x1b[2Jb\nc\x07[bold]d[/bold]"


def test_what_comes_from_kafka_cannot_change_a_terminal() -> None:
    rows = ({"id": HOSTILE, "n": "1"},)
    text = render(Report(rows, (f"about {HOSTILE}",), ok=True, document={}))
    assert text.count(r"a\x1b[2Jb\nc\x07[bold]d[/bold]") == 2
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line.startswith("c")] == []


def test_notes_with_lines_of_their_own_keep_them() -> None:
    report = Report((), ("one\n\ttwo\x1b[2J",), ok=True, document={}, lines=True)
    assert render(report) == "one\n\ttwo\\x1b[2J"


def test_a_name_in_a_line_of_doctor_begins_no_line() -> None:
    found = Finding.failure(f"the record of {HOSTILE}", f"It is {HOSTILE}.", f"do {HOSTILE}")
    text = render(report_of({"log records": [found]}, secured=False))
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("c\\x07")]
    assert text.splitlines()[-4:-2] == [rf"It is {ESCAPED}.", rf"  do {ESCAPED}"]


def test_a_name_in_an_error_begins_no_line_and_a_command_of_its_remedy_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise permission_error(
            f"Group {HOSTILE} cannot be used", [Acl("Read", Resource.GROUP, "g")]
        )

    monkeypatch.setattr(completion_command, "run", fail)
    assert cli.main(["completion", "bash"]) == 2
    first, second, _ = capsys.readouterr().err.splitlines()
    assert first.startswith(f"eos-sink: Group {ESCAPED} cannot be used")
    assert second.startswith("kafka-acls ")
