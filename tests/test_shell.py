"""A printed command has what it is about as one word, whatever is in its name."""

from __future__ import annotations

import subprocess

import pytest

from eos_sink.cli.output import printable
from eos_sink.shell import quote, sink_command

HOSTILE = [
    "plain-1.0_x",
    "",
    "a b",
    "it's",
    'say "x"',
    "a;touch owned",
    "$(touch owned)",
    "`touch owned`",
    "back\\slash",
    "a\x1b[2Jb",
    "it's\na \x1b[31mline\\n",
    "\u202egnp.exe",
    "\x85\u2028\U000e0001",
    "[red]ü[/red]",
    "*",
    "~",
    "!x",
]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_shell_reads_back_what_was_quoted(word: str) -> None:
    # The characters beyond ASCII of $'...' are in the encoding of the locale.
    shown = subprocess.run(
        ["bash", "-c", f"printf %s {quote(word)}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert shown.stdout.decode() == word


@pytest.mark.parametrize("word", HOSTILE)
def test_a_command_is_one_line_that_a_terminal_shows_as_it_is(word: str) -> None:
    command = sink_command("status", word, options="--prefix x")
    assert printable(command) == command
    assert command.startswith("eos-sink status ")
    assert command.endswith(" --prefix x")
    assert sink_command("resolve", "x") == "eos-sink resolve x"
