"""The command line: one module per command, and one that prints what they report.

Each command is a module with NAME, HELP, EXAMPLES, EXIT_CODES, `add_arguments` and `run`. `run`
returns a report, which is printed here, or None if the command has printed everything itself.
Commands that do not operate the sink are found by the entry points `eos_sink.commands`, so that
this package does not know them.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import NoReturn, Protocol

from eos_sink.cli import (
    completion_command,
    doctor_command,
    exporter_command,
    offsets_command,
    resolve_command,
    status_command,
    watch_command,
)
from eos_sink.cli.arguments import ENVIRONMENT
from eos_sink.cli.command_parser import CommandParser
from eos_sink.cli.exit_codes import MEANINGS, ExitCode, describe_exit_codes
from eos_sink.cli.output import (
    CommandError,
    Report,
    print_error,
    print_report,
    printable,
    signals_within_calls,
)
from eos_sink.errors import EosSinkError
from eos_sink.ops import RefusedChoice
from eos_sink.version import VERSION


class Command(Protocol):
    """A module with a command."""

    NAME: str
    HELP: str
    EXAMPLES: str
    EXIT_CODES: dict[ExitCode, str]

    def add_arguments(self, parser: CommandParser, /) -> None:
        """Add the options of the command."""

    def run(self, arguments: argparse.Namespace, /) -> Report | None:
        """Run the command."""


_COMMANDS: tuple[Command, ...] = (
    doctor_command,
    status_command,
    watch_command,
    exporter_command,
    offsets_command,
    resolve_command,
    completion_command,
)

_EPILOG = f"""\
{describe_exit_codes(MEANINGS)}

environment, where the option is not given:
{chr(10).join(f"  {name:<26} {option}" for option, name in ENVIRONMENT.items())}
  {"NO_COLOR":<26} no colours, as when standard output is not a terminal

`eos-sink COMMAND --help` has options, examples and the command's own exit codes.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, as the help of `eos-sink` lists them."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name or a line of a table that the terminal's encoding lacks is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    top = parser()
    parsed = top.parse_args(arguments)
    if parsed.command is None:
        top.print_help()
        return ExitCode.OK
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
            return ExitCode.OK
        _print(report, as_json=parsed.json)
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
            print_error(said)
        shown = printable(said, lines=isinstance(error, CommandError) and error.lines)
        if isinstance(error, EosSinkError):
            # Only its remedy has lines of its own: commands.
            shown = said.removeprefix(error.message)
            shown = printable(error.message) + printable(shown, lines=True)
        print(f"eos-sink: {shown}", file=sys.stderr)
        return ExitCode.CANNOT_RUN
    except BrokenPipeError:
        # The reader of the pipe is gone.
        _drop_output()
        if report is None:
            return ExitCode.CANNOT_RUN
    return report.exit_code


@cache
def commands() -> tuple[Command, ...]:
    """Return all commands: those of the sink, then those of other installed packages, by name."""
    found = {entry.name: entry for entry in entry_points(group="eos_sink.commands")}
    return (*_COMMANDS, *(found[name].load() for name in sorted(found)))


def parser() -> CommandParser:
    """Build the parser of all commands."""
    top = CommandParser(
        prog="eos-sink",
        description="Exactly-once sink from PySpark Structured Streaming to Kafka.",
        epilog=_EPILOG,
    )
    help_ = "Show the version and exit."
    top.add_argument("--version", action="version", version=f"eos-sink {VERSION}", help=help_)
    top.add_commands()
    for command in commands():
        one = top.add_command(command.NAME, command.HELP, command.EXAMPLES, command.EXIT_CODES)
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    top.set_defaults(verbose=False)
    for each in top.commands:
        each.add_argument("--json", action="store_true", help="Print the result as JSON.")
    return top


def _print(report: Report, *, as_json: bool) -> None:
    """Raises:
    BrokenPipeError: the reader of the pipe is gone.
    CommandError: the disk is full, or standard output is closed.
    """
    try:
        print_report(report, as_json=as_json)
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        done = "What the command does is done, but its result cannot be printed"
        raise CommandError(f"{done}: {error.strerror}.") from error


def _drop_output() -> None:
    """Python would report the same error again when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_on_signal(number: int, _frame: object) -> NoReturn:
    """Exit through `finally` blocks, which end child processes and remove directories."""
    sys.exit(128 + number)
