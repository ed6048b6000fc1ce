"""`eos-sink migrate`: see what becomes of the options of a query that writes with Spark's sink."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eos_sink.cli.report import Cell, CommandError, Mood, Report
from eos_sink.migrate.edits import diff_of, edited_options, edited_python, options_as_file
from eos_sink.migrate.judge import lacking_of, of_query
from eos_sink.migrate.model import Finding, Given, Query, Source, Verdict, Way
from eos_sink.migrate.options_input import read_options_file, read_pairs
from eos_sink.migrate.python_file import read_python
from eos_sink.migrate.session import of_session

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
_WHAT = {
    Way.STREAM: "a stream",
    Way.BATCH: "a batch",
    Way.PIPELINE: "a sink of a pipeline",
    Way.OPTIONS: "options",
    Way.DEFAULTS: "defaults of the session",
}
_COLUMNS = ("option", "value", "where", "verdict")
_WIDTH = 40
_TO_READERS = (
    "Readers of the topics: set isolation.level=read_committed, or they see rows of attempts that "
    "were thrown away."
)
_TO_KAFKA = (
    "Kafka has to permit more than before, and the Python of driver and executors needs eos-sink: "
    "docs/security.md, docs/get-started.md."
)
_TO_BATCHES = (
    "A batch that is written again is there twice, as before, unless txnAppId and txnVersion "
    "number it: docs/batch.md."
)
_TO_SESSIONS = (
    "Settings spark.datasource.kafka-eos.* are defaults of options only where "
    "eos_sink.register(spark) is called: docs/ways.md."
)
_TO_FOREACH_BATCH = (
    "In foreachBatch each write is there once by itself; several frames to one topic need an "
    "eos.id each: docs/batch.md."
)


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
    add("--json", action="store_true", help="print JSON instead of text")


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
    return report_of(judged, [diff for diff in diffs if diff], as_json=arguments.json)


class Judged:
    """An input with what is said of it."""

    def __init__(self, source: Source, defaults: Sequence[Given]) -> None:
        self.source = source
        self.queries = [
            (query, of_query(query, defaults if query.way.writes else ()))
            for query in source.queries
        ]
        self.session = of_session(source)

    @property
    def findings(self) -> list[Finding]:
        return [*(found for _, each in self.queries for found in each), *self.session]


def report_of(judged: Sequence[Judged], diffs: Sequence[str], *, as_json: bool = False) -> Report:
    """A row for each option, and below what there is to do."""
    rows: list[tuple[Cell, ...]] = []
    for one in judged:
        for query, findings in one.queries:
            rows.append(_head(query))
            rows += [_row(finding) for finding in findings]
        rows += [_row(finding) for finding in one.session]
    findings = [finding for one in judged for finding in one.findings]
    queries = [query for one in judged for query in one.source.queries]
    notes = [*_notes(findings, queries), *(f"\nSure to be needed:\n{diff}" for diff in diffs)]
    ok = all(finding.verdict.fine for finding in findings)
    document = _document(judged, notes, ok=ok) if as_json else None
    return Report(_COLUMNS, tuple(rows), tuple(notes), ok, document, left=len(_COLUMNS))


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


def _head(query: Query) -> tuple[Cell, ...]:
    what = _WHAT[query.way]
    if query.inside:
        what = f"{what} in foreachBatch, {query.inside}"
    return (Cell(f"-- {what}"), Cell(""), Cell(str(query.place)), Cell(""))


def _row(finding: Finding) -> tuple[Cell, ...]:
    value = finding.value if len(finding.value) <= _WIDTH else finding.value[: _WIDTH - 3] + "..."
    mood = Mood.GOOD if finding.verdict.fine else Mood.BAD
    return (
        Cell(finding.name),
        Cell(" ".join(value.split())),
        Cell(str(finding.place)),
        Cell(finding.verdict.value, mood),
    )


def _notes(findings: Sequence[Finding], queries: Sequence[Query]) -> Iterator[str]:
    if not queries and not findings:
        yield "Nothing here writes to Kafka, as far as can be seen."
        return
    for finding in findings:
        if finding.note and finding.verdict is not Verdict.SAME:
            yield f"{finding.place} {finding.name}: {finding.note}"
    for query in queries:
        lacking = lacking_of(query) if query.way is Way.OPTIONS else []
        if lacking:
            yield f"{query.place}: the query needs besides {', '.join(map(_needed, lacking))}."
    batches = [query for query in queries if query.way is Way.BATCH]
    if any(query.inside for query in batches):
        yield _TO_FOREACH_BATCH
    if any(not query.inside and not _numbered(query) for query in batches):
        yield _TO_BATCHES
    if any(query.way is Way.DEFAULTS for query in queries):
        yield _TO_SESSIONS
    yield _TO_READERS
    yield _TO_KAFKA


def _numbered(query: Query) -> bool:
    return any((given.name or "").lower() == "txnversion" for given in query.options)


def _needed(name: str) -> str:
    return "an absolute checkpointLocation or eos.id" if name == "eos.id" else name


def _document(judged: Sequence[Judged], notes: Sequence[str], *, ok: bool) -> dict[str, Any]:
    return {
        "queries": [
            {
                "way": query.way.value,
                "file": query.place.file,
                "line": query.place.line,
                "in_foreach_batch": query.inside or None,
                "findings": [_finding(finding) for finding in findings],
            }
            for one in judged
            for query, findings in one.queries
        ],
        "session": [_finding(finding) for one in judged for finding in one.session],
        "notes": list(notes),
        "ok": ok,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "value": finding.value,
        "file": finding.place.file,
        "line": finding.place.line,
        "verdict": finding.verdict.value,
        "note": finding.note,
    }
