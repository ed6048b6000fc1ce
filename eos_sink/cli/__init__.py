"""The command line: one module per command, and one that prints what they report.

Each command is a module with NAME, HELP, EXAMPLES, `add_arguments` and `run`. `run` returns a
report, which is printed here, or None if the command has printed everything itself. Commands that
do not operate the sink are found by the entry points `eos_sink.commands`, so that this package
does not know them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import NoReturn, Protocol

from eos_sink.cli import (
    completion_command,
    doctor_command,
    explain_command,
    exporter_command,
    offsets_command,
    resolve_command,
    status_command,
    transactions_command,
    watch_command,
)
from eos_sink.cli.arguments import ENVIRONMENT, add_output
from eos_sink.cli.output import CommandError, Report, print_report, printable, signals_within_calls
from eos_sink.errors import EosSinkError
from eos_sink.ops import RefusedChoice


class Command(Protocol):
    """A module with a command."""

    NAME: str
    HELP: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the options of the command."""

    def run(self, arguments: argparse.Namespace, /) -> Report | None:
        """Run the command."""


_COMMANDS: tuple[Command, ...] = (
    doctor_command,
    status_command,
    watch_command,
    transactions_command,
    explain_command,
    exporter_command,
    offsets_command,
    resolve_command,
    completion_command,
)

_OK = 0
_FAILED = 1
_CANNOT_RUN = 2
_INTERRUPTED = 130
_EPILOG = f"""\
exit code:
  0  all is well
  1  the command ran, and something needs a look
  2  it could not run: wrong usage, no broker, no permission
  130  interrupted with Ctrl-C

environment, where the option is not given:
{chr(10).join(f"  {name:<26} {option}" for option, name in ENVIRONMENT.items())}
  {"NO_COLOR":<26} no colours, as when standard output is not a terminal

`eos-sink COMMAND --help` has examples.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, as the help of `eos-sink` lists them."""
    parsed = parser().parse_args(arguments)
    # The command reports errors itself; the log of the Kafka clients is for debugging.
    handler = logging.StreamHandler() if parsed.verbose else logging.NullHandler()
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_on_signal)
    report: Report | None = None
    try:
        with signals_within_calls():
            report = parsed.run(parsed)
        if report is None:
            return _OK
        print_report(report, as_json=parsed.json)
    except (CommandError, EosSinkError, RefusedChoice, ImportError) as error:
        said = str(error)
        if isinstance(error, ImportError):
            if (error.name or "").startswith("eos_sink"):
                raise  # a defect
            said = (
                f"{sys.executable} has no or an old library that eos-sink needs: {error}. "
                "Install eos-sink again with its libraries: pip install --upgrade eos-sink"
            )
        if parsed.json:
            print(json.dumps({"error": said}, indent=2))
        shown = printable(said, lines=isinstance(error, CommandError) and error.lines)
        if isinstance(error, EosSinkError):
            # Only its remedy has lines of its own: commands.
            shown = said.removeprefix(error.message)
            shown = printable(error.message) + printable(shown, lines=True)
        print(f"eos-sink: {shown}", file=sys.stderr)
        return _CANNOT_RUN
    except BrokenPipeError:
        # The reader of the pipe is gone. Python would report that again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if report is None:
            return _CANNOT_RUN
    if report.interrupted:
        return _INTERRUPTED
    return _OK if report.ok else _FAILED


@cache
def commands() -> tuple[Command, ...]:
    """Return all commands: those of the sink, then those of other installed packages, by name."""
    found = {entry.name: entry for entry in entry_points(group="eos_sink.commands")}
    return (*_COMMANDS, *(found[name].load() for name in sorted(found)))


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="eos-sink",
        description="Exactly-once sink from PySpark Structured Streaming to Kafka.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"eos-sink {_version()}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in commands():
        one = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP,
            epilog=command.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(one)
        add_output(one)
        one.set_defaults(run=command.run, json=False, verbose=False)
    return top


def _version() -> str:
    try:
        return version("eos-sink")
    except PackageNotFoundError:
        return "(not installed)"


def _exit_on_signal(number: int, _frame: object) -> NoReturn:
    """Exit through `finally` blocks, which end child processes and remove directories."""
    sys.exit(128 + number)
