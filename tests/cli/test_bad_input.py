"""What people and scripts give to the commands by mistake."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eos_sink.cli import main, parser
from eos_sink.cli.command_parser import CommandParser

COMMANDS = list(parser().commands)
CONNECT = ("--bootstrap-server", "localhost:1")
NASTY = st.one_of(
    st.sampled_from(
        ["", " ", "-5", "0", "nan", "inf", "1e300", "0-20000000000", "\udcff", "\n", ","]
    ),
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(str),
)


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line on standard error of a command that is not understood."""
    with pytest.raises(SystemExit) as raised:
        parser().parse_args(words)
    assert raised.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "--bootstrap-server", ""], "argument --bootstrap-server: it is empty"),
        (["status", "\udcff"], "is not UTF-8"),
        (["verify", ""], "argument TOPIC: it is empty"),
        (["verify", "t", "--partitions", "0-20000000000"], "argument --partitions"),
        (["watch", "--interval", "1e300"], "is not a number of seconds, at most 1000000"),
        (["status", "q", "-5"], "'-5' is not a whole number"),
        (["resolve", "q", "--tail", "-5"], "'-5' is not a whole number"),
        (["exporter", "--port", "65536"], "'65536' is not a port"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_name(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, *words)


def test_a_stream_without_a_batch_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "q", *CONNECT, "--stream", "x"]) == 2
    assert "--stream is for a BATCH" in capsys.readouterr().err


def test_a_program_gets_the_refusal_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["status", *CONNECT, "--tail", "--json"])
    assert "--tail" in json.loads(capsys.readouterr().out)["error"]


@given(st.sampled_from(COMMANDS), st.lists(NASTY, max_size=3), st.data())
def test_no_words_make_a_traceback(
    leaf: CommandParser, words: list[str], data: st.DataObject
) -> None:
    """They are understood, or refused with exit code 2."""
    options = sorted(name for name in leaf._option_string_actions if name not in ("-h", "--help"))
    for name in data.draw(st.lists(st.sampled_from(options), max_size=3)):
        words = [*words, name, data.draw(NASTY)]
    ends: list[object] = [2]
    with contextlib.redirect_stderr(None), contextlib.redirect_stdout(None):
        try:
            leaf.parse_args(words)
        except SystemExit as end:
            ends.append(end.code)
    assert set(ends) == {2}


@pytest.mark.long
@given(
    st.sampled_from(["doctor", "exporter", "offsets", "resolve", "status", "verify", "watch"]),
    st.lists(NASTY, max_size=3),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_without_a_cluster_no_words_make_a_traceback_or_a_0(
    name: str, words: list[str], data: st.DataObject
) -> None:
    (command,) = (each for each in COMMANDS if each.prog == f"eos-sink {name}")
    options = sorted(command._option_string_actions.keys() - {"-h", "--help", "--textfile"})
    for option in data.draw(st.lists(st.sampled_from(options), max_size=2)):
        words = [*words, option, data.draw(NASTY)]
    limit = {"exporter": "--scrape-timeout", "watch": "--update-timeout"}.get(name, "--timeout")
    limit = "--stall-timeout" if name == "verify" else limit
    once = ["--once"] if name == "exporter" else []
    with contextlib.redirect_stderr(StringIO()), contextlib.redirect_stdout(StringIO()):
        try:
            ended: object = main([name, *words, *CONNECT, limit, "0.2", *once])
        except SystemExit as end:
            ended = end.code
    assert ended == 2


def test_a_result_that_cannot_be_printed_is_said_to_be_there() -> None:
    command = f"{sys.executable} -m eos_sink completion bash > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "eos-sink: What the command does is done, but its result cannot be printed: No space left "
        "on device.\n"
    )
