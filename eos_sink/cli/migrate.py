"""`eos-sink migrate`: see what becomes of the options of a query that writes with Spark's sink."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eos_sink.cli.findings import Judged, report_of
from eos_sink.cli.report import CommandError, Report
from eos_sink.migrate.edits import diff_of, edited_options, edited_python, options_as_file
from eos_sink.migrate.model import Source, Way
from eos_sink.migrate.options_input import read_options_file, read_pairs
from eos_sink.migrate.python_file import read_python

NAME = "migrate"
HELP = "Tell of each option of a query what becomes of it with format('kafka-eos')."
EXAMPLES = """\
examples:
  eos-sink migrate job.py                        the queries of a Python file, which is not run
  eos-sink migrate sink.properties               options in a file, also spark-defaults.conf
  eos-sink migrate topic=readings kafka.acks=1   options as NAME=VALUE
  eos-sink migrate --python - < job.py           from standard input
  eos-sink migrate job.py --write new.py         and write what is sure to be needed

exit code: 0 all is fine; 1 something is refused, unknown, missing or cannot be read; 2 wrong usage
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
    add("--write", type=Path, metavar="OUT", help="write the migrated file; OUT must not be there")


def run(arguments: argparse.Namespace) -> Report:
    """Read, judge, and write where that is asked for.

    Raises:
        CommandError: an input cannot be read, or OUT not be written.
    """
    texts, pairs = _inputs(arguments.inputs)
    python = {name: arguments.python or name.endswith(".py") for name in texts}
    sources = [
        _python(text, name) if python[name] else read_options_file(text, name)
        for name, text in texts.items()
    ]
    if pairs:
        sources.append(read_pairs(pairs))
    defaults = [
        given
        for source in sources
        for query in source.queries
        if query.way is Way.DEFAULTS
        for given in query.options
    ]
    judged = [Judged(source, defaults) for source in sources]
    migrated = [_migrated(one, texts.get(one.source.name), python) for one in judged]
    if arguments.write is not None:
        _write(arguments.write, migrated)
    diffs = [
        diff_of(texts[one.source.name], new, one.source.name, one.findings)
        for one, new in zip(judged, migrated, strict=True)
        if python.get(one.source.name) and new != texts[one.source.name]
    ]
    return report_of(judged, [diff for diff in diffs if diff])


def _inputs(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    texts: dict[str, str] = {}
    pairs: list[str] = []
    for one in given:
        if one == _STDIN:
            texts[one] = sys.stdin.read()
        elif "=" in one and not Path(one).exists():
            pairs.append(one)
        elif Path(one).suffix in _PROGRAMS:
            raise CommandError(f"{one}: of programs only those in Python can be read")
        else:
            try:
                texts[one] = Path(one).read_bytes().decode()
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"{one}: {error}") from error
    return texts, pairs


def _python(text: str, name: str) -> Source:
    try:
        return read_python(text, name)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CommandError(f"{name} is no Python that this Python knows: {error}") from error


def _migrated(judged: Judged, text: str | None, python: dict[str, bool]) -> str:
    """The whole input, as it should be."""
    if text is None:
        return options_as_file(judged.source, judged.findings)
    if python[judged.source.name]:
        return edited_python(text, judged.source.name, judged.findings)
    return edited_options(text, judged.findings)


def _write(out: Path, migrated: Sequence[str]) -> None:
    if len(migrated) != 1:
        raise CommandError("--write takes one input at a time")
    try:
        with out.open("x", encoding="utf-8", newline="") as file:
            out.chmod(0o600)  # Options may hold secrets.
            file.write(migrated[0])
    except OSError as error:
        raise CommandError(f"--write {out}: {error.strerror}") from error
