"""`eos-sink migrate`: assess the options of a query that writes with Spark's Kafka sink."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Cell, CommandError, Mood, Report, TableRow
from eos_sink_lab.migrate.assess import assess_query, assess_session, find_lacking
from eos_sink_lab.migrate.python_queries import read_python
from eos_sink_lab.migrate.queries import (
    Finding,
    Query,
    Source,
    Verdict,
    Way,
    read_options_file,
    read_pairs,
)

NAME = "migrate"
HELP = "Show how format('kafka-eos') treats each option of a query."
EXAMPLES = """\
examples:
  eos-sink migrate job.py                        the queries of a Python file, which is not run
  eos-sink migrate sink.properties               options in a file, also spark-defaults.conf
  eos-sink migrate topic=readings kafka.acks=1   options as NAME=VALUE
  eos-sink migrate --python - < job.py           from standard input
"""
EXIT_CODES = {
    ExitCode.OK: "at most the format needs a change",
    ExitCode.FAILED: "an option is refused, unknown, missing or cannot be read",
}

_WIDTH = 40
_WHAT = {
    Way.STREAM: "a stream",
    Way.BATCH: "a batch",
    Way.PIPELINE: "a sink of a pipeline",
    Way.OPTIONS: "options",
    Way.DEFAULTS: "defaults of the session",
}
_TO_READERS = (
    "Readers of the topics must set isolation.level=read_committed; otherwise they see rows of "
    "aborted attempts."
)
_TO_KAFKA = (
    "The sink needs more Kafka permissions than Spark's, and eos-sink in the Python of driver and "
    "executors: docs/connect.md, docs/get-started.md."
)
_TO_BATCHES = (
    "A batch that is written again is in the topic twice, as with Spark's sink, unless txnAppId "
    "and txnVersion number it: docs/batch.md."
)
_TO_SESSIONS = (
    "Settings spark.datasource.kafka-eos.* are defaults of options only where "
    "eos_sink.register(spark) is called: docs/deployment.md."
)
_TO_FOREACH_BATCH = (
    "In foreachBatch each write is exactly once by itself, under an eos.id of its own: "
    "docs/batch.md."
)
_TO_OLDER_SPARK = (
    "Spark 3.5 has no data sources in Python, and calls eos_sink.write(frame, options) in place "
    "of the format: docs/spark-3.5.md."
)
_STDIN = "-"
_PROGRAMS = {".ipynb", ".java", ".jar", ".kt", ".r", ".scala", ".sql"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "inputs",
        nargs="+",
        metavar="FILE|NAME=VALUE",
        help="A Python file (.py), a properties file, - for standard input, or an option.",
    )
    help_ = "Standard input, and files without .py, are Python."
    add("--python", action="store_true", help=help_)


def run(arguments: argparse.Namespace) -> Report:
    """Read and assess the inputs.

    Raises:
        CommandError: an input cannot be read.
    """
    sources: list[Source] = []
    pairs: list[str] = []
    for name in arguments.inputs:
        if name != _STDIN and "=" in name and not Path(name).exists():
            pairs.append(name)
            continue
        python = arguments.python or name.endswith(".py")
        sources.append((_read_python if python else read_options_file)(_read_text(name), name))
    if pairs:
        sources.append(read_pairs(pairs))
    queries = [query for source in sources for query in source.queries]
    defaults = [given for query in queries if query.way is Way.DEFAULTS for given in query.options]
    assessed = [
        (query, assess_query(query, defaults if query.way.writes else ())) for query in queries
    ]
    session = [finding for source in sources for finding in assess_session(source)]
    return _build_report(assessed, session)


def _read_text(name: str) -> str:
    if name == _STDIN:
        return sys.stdin.read()
    if Path(name).suffix in _PROGRAMS:
        raise CommandError(f"{name}: only programs in Python can be read")
    try:
        return Path(name).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name}: {error}") from error


def _read_python(text: str, name: str) -> Source:
    try:
        return read_python(text, name)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not Python that this Python reads: {error}") from error


def _build_report(
    assessed: Sequence[tuple[Query, list[Finding]]],
    session: Sequence[Finding],
) -> Report:
    rows: list[TableRow] = []
    for query, some in assessed:
        what = _WHAT[query.way] + (f" in foreachBatch, {query.inside}" if query.inside else "")
        rows.append({"option": f"-- {what}", "value": "", "where": f"{query.place}", "verdict": ""})
        rows += map(_row, some)
    rows += map(_row, session)
    findings = [*(finding for _, some in assessed for finding in some), *session]
    notes = tuple(_write_notes(findings, [query for query, _ in assessed]))
    ok = all(finding.verdict.fine for finding in findings)
    document = {
        "queries": [
            {
                "way": query.way.value,
                "file": query.place.file,
                "line": query.place.line,
                "in_foreach_batch": query.inside or None,
                "findings": [_document(finding) for finding in some],
            }
            for query, some in assessed
        ],
        "session": [_document(finding) for finding in session],
        "notes": notes,
        "ok": ok,
    }
    return Report(rows, notes, ok, document, left=4, lines=True)


def _row(finding: Finding) -> TableRow:
    value = finding.value if len(finding.value) <= _WIDTH else finding.value[: _WIDTH - 3] + "..."
    mood = Mood.GOOD if finding.verdict.fine else Mood.BAD
    return {
        "option": finding.name,
        "value": " ".join(value.split()),
        "where": str(finding.place),
        "verdict": Cell(finding.verdict.value, mood),
    }


def _write_notes(findings: Sequence[Finding], queries: Sequence[Query]) -> Iterator[str]:
    if not queries and not findings:
        yield "No query that writes to Kafka was found."
        return
    for finding in findings:
        if finding.note and finding.verdict is not Verdict.SAME:
            yield f"{finding.place} {finding.name}: {finding.note}"
    for query in queries:
        lacking = find_lacking(query) if query.way is Way.OPTIONS else []
        if query.inside and not {given.key for given in query.options} & {"eos.id", "txnversion"}:
            yield f"{query.place}: a write in foreachBatch needs an eos.id of its own."
        if lacking:
            names = ", ".join(lacking).replace("eos.id", "an absolute checkpointLocation or eos.id")
            yield f"{query.place}: the query also needs {names}."
    batches = [query for query in queries if query.way is Way.BATCH]
    if any(query.inside for query in batches):
        yield _TO_FOREACH_BATCH
    numbered = [q for q in batches if any(given.key == "txnversion" for given in q.options)]
    if any(not query.inside and query not in numbered for query in batches):
        yield _TO_BATCHES
    if any(query.way is Way.DEFAULTS for query in queries):
        yield _TO_SESSIONS
    yield _TO_READERS
    yield _TO_KAFKA
    if any(query.way in (Way.STREAM, Way.BATCH) for query in queries):
        yield _TO_OLDER_SPARK


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "value": finding.value,
        "file": finding.place.file,
        "line": finding.place.line,
        "verdict": finding.verdict.value,
        "note": finding.note,
    }
