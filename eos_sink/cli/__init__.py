"""The command line: `eos-sink COMMAND`.

Each command is a module with NAME, HELP, `add_arguments` and `run`, and EXAMPLES if it has any;
`run` returns a report, which is printed here and nowhere else.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from eos_sink.cli import bench, demo, migrate, resolve
from eos_sink.cli.render import render
from eos_sink.cli.report import CommandError

COMMANDS = (demo, bench, resolve, migrate)

_FAILED = 1
_CANNOT_RUN = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all is well, 1 if not, 2 if it could not run, 130 on Ctrl-C."""
    parsed = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        report = parsed.run(parsed)
    except CommandError as error:
        print(f"eos-sink: {error}", file=sys.stderr)
        return _CANNOT_RUN
    except KeyboardInterrupt:
        print("eos-sink: interrupted", file=sys.stderr)
        return _INTERRUPTED
    print(render(report, colour=sys.stdout.isatty()))
    return 0 if report.ok else _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="eos-sink", description="Exactly-once sink from PySpark Structured Streaming to Kafka."
    )
    parser.add_argument("--version", action="version", version=f"eos-sink {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        one = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP,
            epilog=getattr(command, "EXAMPLES", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    return parser


def _version() -> str:
    try:
        return version("eos-sink")
    except PackageNotFoundError:
        return "(not installed)"


def _leave(number: int, _frame: object) -> NoReturn:
    """Let `finally` blocks run: children are ended and directories removed."""
    sys.exit(128 + number)
