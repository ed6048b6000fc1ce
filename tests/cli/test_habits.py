"""What all commands share: help with examples, JSON, exit codes, the environment, a clean end."""

from __future__ import annotations

import argparse
import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from eos_sink import cli
from eos_sink.cli import completion_command
from eos_sink.cli.arguments import (
    ENVIRONMENT,
    add_connection,
    add_timeout,
    cluster_config,
    command_line,
    kafka_settings,
    read_settings,
)
from eos_sink.cli.command_parser import CommandParser
from eos_sink.cli.exit_codes import MEANINGS, ExitCode
from eos_sink.cli.output import CommandError
from eos_sink.options import OPTIONS
from tests.snippets import ROOT

NAMES = [command.NAME for command in cli.commands()]
COMMANDS = list(cli.parser().commands)


def prog(parser: CommandParser) -> str:
    return parser.prog


def connection(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    add_timeout(parser)
    return parser.parse_args(words)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eos_sink", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- help


def examples(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  eos-sink ")]


def actions(parser: CommandParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


@pytest.mark.parametrize("command", cli.commands(), ids=lambda command: command.NAME)
def test_the_help_of_each_command_has_examples_that_parse(command: ModuleType) -> None:
    texts = [leaf.epilog or "" for leaf in COMMANDS if leaf.prog.split()[1] == command.NAME]
    for text in [command.EXAMPLES, *texts]:
        assert examples(text)
        for line in examples(text):
            words = shlex.split(re.split(r"\s{3,}|\s[<>|]\s", line)[0])[1:]
            assert cli.parser().parse_args(words).command == command.NAME, line


@pytest.mark.parametrize("leaf", COMMANDS, ids=prog)
def test_each_command_can_print_json(leaf: CommandParser) -> None:
    assert leaf._option_string_actions["--json"].nargs == 0


@pytest.mark.parametrize("leaf", COMMANDS, ids=prog)
def test_the_help_of_each_command_has_its_exit_codes(leaf: CommandParser) -> None:
    told = [int(code) for code in re.findall(r"^ +(\d+)  ", leaf.epilog or "", re.MULTILINE)]
    assert told == sorted(told)
    assert {ExitCode.OK, ExitCode.CANNOT_RUN, ExitCode.INTERRUPTED} <= set(told) <= set(MEANINGS)


@pytest.mark.parametrize("leaf", COMMANDS, ids=prog)
def test_the_help_of_each_option_is_sentences_with_its_default(leaf: CommandParser) -> None:
    for action in actions(leaf):
        told = action.help or ""
        assert re.fullmatch(r"[A-Z].*\.", told), (action.dest, told)
        if action.default not in (None, False, argparse.SUPPRESS, [], ()):
            assert re.search(r"Default: %\(default\)[gs]\.", told), action.dest


@pytest.mark.parametrize("leaf", COMMANDS, ids=prog)
def test_a_timeout_bounds_the_command_and_a_log_is_shown_of_clients_that_it_has(
    leaf: CommandParser,
) -> None:
    options = leaf._option_string_actions
    if "--timeout" in options:
        assert (options["--timeout"].help or "").startswith("Seconds that the command may take")
    assert ("--verbose" in options) == ("--command-config" in options)


def test_the_doctor_names_the_default_of_the_transaction_timeout() -> None:
    (default,) = (each.default for each in OPTIONS if each.name == "eos.transaction.timeout.ms")
    (doctor,) = (leaf for leaf in COMMANDS if leaf.prog == "eos-sink doctor")
    told = doctor._option_string_actions["--transaction-timeout-ms"].help
    assert f"Default: {default}." in str(told)


def test_the_help_lists_exit_codes_and_environment() -> None:
    text = cli.parser().format_help()
    for part in ("exit code", "130", *NAMES, *ENVIRONMENT, *ENVIRONMENT.values(), "NO_COLOR"):
        assert part in text


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == ExitCode.OK
    assert capsys.readouterr().out == cli.parser().format_help()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("statsu", "status"),
        ("status --bootstrap-servers b:1", "--bootstrap-server"),
        ("status --bootstrap-server b:1 --log_topic=x", "--log-topic"),
        ("resolve x --end --bootstrap-server b:1 --takeover", "--take-over"),
        ("migrate topic=x --jsno", "--json"),
    ],
)
def test_what_was_probably_meant_is_named(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split())
    assert ended.value.code == ExitCode.CANNOT_RUN
    assert capsys.readouterr().err.endswith(f". Did you mean {meant}?\n")


@pytest.mark.parametrize(
    "words", ["frobnicate", "status --bootstrap-server b:1 --xyz", "status --boot b:1 --timeout x"]
)
def test_nothing_is_guessed_where_nothing_is_near(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(words.split())
    assert "Did you mean" not in capsys.readouterr().err


# --- the connection


def test_the_environment_stands_for_options_that_are_not_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nbootstrap.servers=file:1\n")
    for option, value in {
        "--bootstrap-server": "env:1",
        "--command-config": str(file),
        "--log-topic": "log",
        "--prefix": "p-",
        "--timeout": "7",
    }.items():
        monkeypatch.setenv(ENVIRONMENT[option], value)
    arguments = connection()
    found = cluster_config(arguments)
    assert found.client.settings == {"bootstrap.servers": "env:1", "security.protocol": "ssl"}
    assert (found.log_topic, found.prefix, arguments.timeout) == ("log", "p-", 7)
    given = connection("--bootstrap-server", "given:1", "--prefix", "q-")
    assert kafka_settings(given)["bootstrap.servers"] == "given:1"
    assert given.prefix == "q-"


@pytest.mark.parametrize("command", cli.commands(), ids=lambda command: command.NAME)
def test_a_command_that_starts_a_broker_does_not_take_one_from_the_environment(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "started for it" not in command.EXAMPLES:
        return
    for variable in ENVIRONMENT.values():
        monkeypatch.setenv(variable, "7")
    parsed = vars(cli.parser().parse_args([command.NAME]))
    assert parsed["bootstrap_server"] is None
    assert parsed.get("command_config") is None


def test_settings_come_from_a_properties_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nsecurity.protocol SASL_SSL\nsasl.password=a=\\\n  b#c\n")
    found = read_settings("--command-config", file)
    assert found == {"security.protocol": "SASL_SSL", "sasl.password": "a=b#c"}
    with pytest.raises(CommandError, match=r"--command-config .*missing"):
        read_settings("--command-config", tmp_path / "missing")


def test_without_a_server_nothing_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        connection()
    assert ended.value.code == 2
    assert "--bootstrap-server" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_a_timeout_is_a_number_of_seconds(text: str) -> None:
    with pytest.raises(SystemExit):
        connection("--bootstrap-server", "b:1", "--timeout", text)


def test_a_command_that_is_printed_leads_to_the_same_cluster() -> None:
    words = ["--bootstrap-server", "b:1", "--command-config", "my file", "--prefix", "p-"]
    assert shlex.split(command_line(connection(*words))) == words
    assert command_line(connection("--bootstrap-server", "b:1")) == "--bootstrap-server b:1"


# --- errors


def test_an_error_is_one_line_and_json_where_that_is_wanted(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.py")
    failed = run("migrate", missing, "--json")
    assert failed.returncode == 2
    assert "No such file" in json.loads(failed.stdout)["error"]
    assert failed.stderr.startswith("eos-sink: ")
    assert failed.stderr.count("\n") == 1
    assert run("migrate", missing).stdout == ""


def test_a_cluster_that_does_not_answer_is_one_line_in_seconds() -> None:
    began = time.monotonic()
    failed = run("resolve", "q", "--bootstrap-server", "127.0.0.1:1")
    assert failed.returncode == 2
    assert failed.stderr.startswith("eos-sink: No broker of 127.0.0.1:1 answers")
    assert failed.stderr.count("\n") == 1
    assert time.monotonic() - began < 30


def test_a_missing_library_is_one_line_with_the_command_that_installs_it(tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError('No module named confluent_kafka', name='confluent_kafka')"
    (tmp_path / "confluent_kafka.py").write_text(missing)
    found = os.pathsep.join([str(tmp_path), *sys.path])
    failed = run("status", "--bootstrap-server", "127.0.0.1:1", PYTHONPATH=found)
    assert failed.returncode == 2
    assert "confluent_kafka" in failed.stderr
    assert "pip install" in failed.stderr
    assert failed.stderr.count("\n") == 1


# --- the end


def test_a_reader_that_has_seen_enough_ends_it_without_noise() -> None:
    command = f"{sys.executable} -m eos_sink completion bash | head -c 1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""


def test_without_a_reader_the_exit_code_is_of_what_was_done() -> None:
    """A script must not take for refused what was carried out."""
    program = (
        "from eos_sink import cli; from eos_sink.cli import status_command as status; "
        "from eos_sink.cli.output import Report; "
        "status.run = lambda _: Report((), ('done',) * 9999, True, {}); "
        "import sys; sys.exit(cli.main(['status', '--bootstrap-server', 'x:1']))"
    )
    command = f"{sys.executable} -c {shlex.quote(program)} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_a_command_with_one_line(tmp_path: Path) -> None:
    fifo = tmp_path / "never.py"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-m", "eos_sink", "migrate", str(fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # It has opened the pipe, and waits for what never comes.
        writer = os.open(fifo, os.O_WRONLY)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=30)
        os.close(writer)
    assert (process.returncode, said) == (130, "")
    assert errors == "eos-sink: interrupted\n"


# Sends itself Ctrl-C when the module that $EOS_TEST_AT names is about to be imported.
SITECUSTOMIZE = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["EOS_TEST_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

# A background job of a shell ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize(
    "module", ["eos_sink.cli", "eos_sink.cli.watch_command", "eos_sink.ops.doctor"]
)
def test_an_interrupted_import_ends_quietly(module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    entry = setup["options.entry_points"]["console_scripts"].strip().split(" = ")[1]
    path, function = entry.split(":")
    # What pip writes into the script.
    script = f"import sys; from {path} import {function}; sys.exit({function}())"
    for start in (["-m", "eos_sink"], ["-c", script]):
        done = subprocess.run(
            [sys.executable, *start, "doctor", "--bootstrap-server", "127.0.0.1:1"],
            env={**os.environ, "EOS_TEST_AT": module, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr == "eos-sink: interrupted\n"


def test_the_package_runs_as_a_module_and_as_a_file() -> None:
    import eos_sink.__main__ as program

    assert run("--version").stdout.startswith("eos-sink ")
    done = subprocess.run(
        [sys.executable, str(program.__file__), "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("eos-sink "), done.stderr


# --- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_every_command(shell: str) -> None:
    report = completion_command.run(argparse.Namespace(shell=shell))
    (script,) = report.notes
    for name in NAMES:
        assert name in script


def test_bash_completes_with_it() -> None:
    (script,) = completion_command.run(argparse.Namespace(shell="bash")).notes
    typed = "COMP_WORDS=(eos-sink res); COMP_CWORD=1"
    asks = f"{script}\n{typed}; _shtab_eos_sink; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", asks], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["resolve"]


def test_without_its_library_completion_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"pip install 'eos-sink\[cli\]'"):
        completion_command.run(argparse.Namespace(shell="bash"))


def test_without_its_libraries_a_page_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["verify", "t", "--bootstrap-server", "b:1", "--html", "t.html"]) == 2
    assert "jinja2, matplotlib: pip install 'eos-sink[cli]'" in capsys.readouterr().err
