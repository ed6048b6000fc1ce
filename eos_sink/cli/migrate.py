"""`eos-sink migrate`: assess the options of a query that writes with Spark's sink."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eos_sink.cli.migrate_report import Assessment, build_report
from eos_sink.cli.output import CommandError, Report
from eos_sink.migrate.edits import (
    diff_python,
    edit_options_file,
    edit_python,
    write_options_file,
)
from eos_sink.migrate.option_inputs import read_options_file, read_pairs
from eos_sink.migrate.python_queries import read_python
from eos_sink.migrate.queries import Source, Way

NAME = "migrate"
HELP = "Show how format('kafka-eos') treats each option of a query."
EXAMPLES = """\
examples:
  eos-sink migrate job.py                        the queries of a Python file, which is not run
  eos-sink migrate sink.properties               options in a file, also spark-defaults.conf
  eos-sink migrate topic=readings kafka.acks=1   options as NAME=VALUE
  eos-sink migrate --python - < job.py           from standard input
  eos-sink migrate job.py --write new.py         and write the migrated program

exit code: 0 no action is needed; 1 an option is refused, unknown, missing or cannot be read;
2 wrong usage
"""

_STDIN = "-"
_PROGRAMS = {".ipynb", ".java", ".jar", ".kt", ".r", ".scala", ".sql"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "inputs",
        nargs="+",
        metavar="FILE|NAME=VALUE",
        help="a Python file (.py), a properties file, - for standard input, or options",
    )
    add("--python", action="store_true", help="standard input, and files without .py, are Python")
    add("--write", type=Path, metavar="OUT", help="write the migrated file; OUT must not exist")


def run(arguments: argparse.Namespace) -> Report:
    """Read and assess the inputs, and write the migrated one to OUT.

    Raises:
        CommandError: an input cannot be read, or OUT cannot be written.
    """
    texts, pairs = _read_inputs(arguments.inputs)
    python = {name for name in texts if arguments.python or name.endswith(".py")}
    sources = [
        _read_python(text, name) if name in python else read_options_file(text, name)
        for name, text in texts.items()
    ]
    if pairs:
        sources.append(read_pairs(pairs))
    queries = [query for source in sources for query in source.queries]
    defaults = [given for query in queries if query.way is Way.DEFAULTS for given in query.options]
    assessed = [Assessment(source, defaults) for source in sources]
    migrated: list[str] = []
    diffs: list[str] = []
    for each in assessed:
        name, findings = each.source.name, each.findings
        if name in python:
            migrated.append(edit_python(texts[name], findings))
            diffs.append(diff_python(texts[name], migrated[-1], name, findings))
        elif name in texts:
            migrated.append(edit_options_file(texts[name], findings))
        else:
            migrated.append(write_options_file(each.source, findings))
    if arguments.write is not None:
        _write(arguments.write, migrated)
    return build_report(assessed, [diff for diff in diffs if diff])


def _read_inputs(inputs: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    texts: dict[str, str] = {}
    pairs: list[str] = []
    for name in inputs:
        if name == _STDIN:
            texts[name] = sys.stdin.read()
        elif "=" in name and not Path(name).exists():
            pairs.append(name)
        elif Path(name).suffix in _PROGRAMS:
            raise CommandError(f"{name}: of programs only those in Python can be read")
        else:
            try:
                texts[name] = Path(name).read_bytes().decode()
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"{name}: {error}") from error
    return texts, pairs


def _read_python(text: str, name: str) -> Source:
    try:
        return read_python(text, name)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CommandError(f"{name} is no Python that this Python knows: {error}") from error


def _write(out: Path, migrated: Sequence[str]) -> None:
    if len(migrated) != 1:
        raise CommandError("--write takes one input at a time")
    try:
        with out.open("x", encoding="utf-8", newline="") as file:
            out.chmod(0o600)  # Options may hold secrets.
            file.write(migrated[0])
    except OSError as error:
        raise CommandError(f"--write {out}: {error.strerror}") from error
