"""The findings of `eos-sink migrate` as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eos_sink.cli.output import Cell, Mood, Report
from eos_sink.migrate.assess import assess_query, assess_session, find_lacking
from eos_sink.migrate.queries import Finding, Given, Query, Source, Verdict, Way

_COLUMNS = ("option", "value", "where", "verdict")
_WIDTH = 40
_WHAT = {
    Way.STREAM: "a stream",
    Way.BATCH: "a batch",
    Way.PIPELINE: "a sink of a pipeline",
    Way.OPTIONS: "options",
    Way.DEFAULTS: "defaults of the session",
}
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


class Assessment:
    """An input with the findings about it."""

    def __init__(self, source: Source, defaults: Sequence[Given]) -> None:
        self.source = source
        self.queries = [
            (query, assess_query(query, defaults if query.way.writes else ()))
            for query in source.queries
        ]
        self.session = list(assess_session(source))

    @property
    def findings(self) -> list[Finding]:
        return [*(found for _, each in self.queries for found in each), *self.session]


def build_report(assessed: Sequence[Assessment], diffs: Sequence[str]) -> Report:
    """A row for each option, and the actions to take below."""
    rows: list[tuple[Cell, ...]] = []
    for each in assessed:
        for query, findings in each.queries:
            rows += [_head(query), *map(_row, findings)]
        rows += map(_row, each.session)
    findings = [finding for each in assessed for finding in each.findings]
    queries = [query for each in assessed for query in each.source.queries]
    notes = (*_notes(findings, queries), *(f"\nChanges to make:\n{diff}" for diff in diffs))
    ok = all(finding.verdict.fine for finding in findings)
    document = {
        "queries": [
            {
                "way": query.way.value,
                "file": query.place.file,
                "line": query.place.line,
                "in_foreach_batch": query.inside or None,
                "findings": [_document(finding) for finding in findings],
            }
            for each in assessed
            for query, findings in each.queries
        ],
        "session": [_document(finding) for each in assessed for finding in each.session],
        "notes": list(notes),
        "ok": ok,
    }
    return Report(_COLUMNS, tuple(rows), notes, ok, document, left=len(_COLUMNS))


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
        lacking = find_lacking(query) if query.way is Way.OPTIONS else []
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


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "value": finding.value,
        "file": finding.place.file,
        "line": finding.place.line,
        "verdict": finding.verdict.value,
        "note": finding.note,
    }
