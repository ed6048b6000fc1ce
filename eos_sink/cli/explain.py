"""`eos-sink explain`: what became of one batch, task by task, and from what that is known."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from eos_sink.cli.connection import add_connection, command_line, sink_options
from eos_sink.cli.names import meant
from eos_sink.cli.report import Cell, CommandError, Mood, Report
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Numbering

if TYPE_CHECKING:
    from eos_sink.kafka.admin_interface import Admin
    from eos_sink.ops.explain import Case, TaskFate
    from eos_sink.ops.history import History
    from eos_sink.ops.snapshot import QueryStatus, Snapshot

NAME = "explain"
HELP = "Show what became of one batch, task by task, and from what evidence."
EXAMPLES = """\
examples:
  eos-sink explain readings 41 --bootstrap-server kafka:9092
  eos-sink explain readings 41 --bootstrap-server kafka:9092 --stream 7c1e0a52-...

exit code: 0 each task of the batch is committed or had no rows; 1 not so, or not known; 2 there is
no such query, or no broker answers
"""

_ALL_RECORDS = 1_000_000
_MOODS = {
    "committed": Mood.GOOD,
    "lost": Mood.BAD,
    "in doubt": Mood.BAD,
    "unknown": Mood.BAD,
    "aborted": Mood.WARN,
}
_COLUMNS = ("task", "rows", "fate", "known from")


@dataclass(frozen=True)
class Found:
    """What was gathered about the batch."""

    status: QueryStatus
    case: Case
    fates: tuple[TaskFate, ...]
    unseen: tuple[str, ...]
    streams: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("query", metavar="QUERY", help="the query, as the error or the decision log names it")
    add("batch", metavar="BATCH", type=int, help="Spark's number of the batch, or the txnVersion")
    add("--stream", metavar="ID", help="Spark's id of the query, if its checkpoint was replaced")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Look at the log, at coordinators and at topics.

    Raises:
        CommandError: no broker answers, or there is no such query.
    """
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin

    options = sink_options(arguments)
    admin = ConfluentAdmin(options)
    try:
        return report_of(gather(admin, arguments, Deadline(arguments.timeout)), arguments)
    except EosSinkError as error:
        raise CommandError(str(error)) from error
    finally:
        admin.close()


def gather(admin: Admin, arguments: argparse.Namespace, deadline: Deadline) -> Found:
    """Look.

    Raises:
        CommandError: there is no such query.
    """
    from eos_sink.driver.evidence import ask_all
    from eos_sink.ops.explain import case_of, evidence_of, fates_of, open_fates
    from eos_sink.ops.observer import Observer

    observer = Observer(admin, arguments.prefix)
    snapshot = observer.look(deadline, keep=_ALL_RECORDS)
    status, history = _query(snapshot, observer, arguments)
    case = case_of(history, arguments.batch, arguments.stream)
    unseen = [problem.what for problem in snapshot.problems]
    fates: list[TaskFate] = []
    if case.decision is not None:
        known = evidence_of(case, status.names)
        try:
            known = ask_all(admin.kafka, known, deadline)
        except EosSinkError as error:
            unseen.append(str(error))
        fates = fates_of(case, known)
    elif case.latest is not None and case.latest.batch < case.batch:
        try:
            states = admin.list_transactions(f"{status.names.group}-", deadline, ended=True)
            fates = open_fates(status.names, status.decision, states)
        except EosSinkError as error:
            unseen.append(str(error))
    others = tuple(stream for stream in history.streams if stream != case.stream)
    return Found(status, case, tuple(fates), tuple(dict.fromkeys(unseen)), others)


def report_of(found: Found, arguments: argparse.Namespace) -> Report:
    """A row a task; below it what the log says of the batch."""
    from eos_sink.ops.explain import Fate
    from eos_sink.protocol.outcome import Outcome

    good = {Outcome.COMMITTED, Fate.NO_ROWS, Fate.REWRITTEN}
    sure = bool(found.case.decision) or _is_past(found.case)
    rows = tuple(
        (
            Cell(str(each.partition)),
            Cell("-" if each.rows is None else f"{each.rows:,}"),
            Cell(each.fate.value, _MOODS.get(each.fate.value, Mood.PLAIN)),
            Cell("; ".join(each.evidence) or "nothing"),
        )
        for each in found.fates
    )
    notes = (*_told(found, arguments), *found.unseen)
    ok = sure and all(each.fate in good for each in found.fates)
    return Report(_COLUMNS if rows else (), rows, notes, ok, _document(found), left=4)


def _query(
    snapshot: Snapshot, observer: Any, arguments: argparse.Namespace
) -> tuple[QueryStatus, History]:
    known = [each.names for each in snapshot.queries] if snapshot.log else None
    names = meant(arguments.query, known, arguments.prefix)
    status = next((each for each in snapshot.queries if each.names == names), None)
    history = observer.history(status.query) if status else None
    if status is None or history is None:
        why = f" {snapshot.problems[0].what}" if snapshot.problems else ""
        raise CommandError(
            f"the decision log {arguments.log_topic} knows no query {names.shown}.{why}"
        )
    return status, history


def _is_past(case: Case) -> bool:
    from eos_sink.ops.explain import Known

    return case.known in (Known.GONE, Known.NOTHING)


def _told(found: Found, arguments: argparse.Namespace) -> Iterator[str]:
    from eos_sink.ops.alerts import reach_of
    from eos_sink.ops.explain import Known
    from eos_sink.protocol.outcome import Outcome

    case, status = found.case, found.status
    what = BatchId(case.stream, case.batch)
    yield f"Query {status.query}, {what}: {case.known.value}."
    if case.written is not None and case.decision is not None:
        place, total = case.written.position, case.decision.total
        yield (
            f"Decided in seq {case.written.record.seq} at {place.topic}[{place.partition}]@"
            f"{place.offset}, {_time(case.written.at_ms)}: {total.rows:,} rows, {total.bytes:,} "
            f"bytes, slot {case.decision.slot}, {case.decision.partitions} tasks."
        )
    if case.known is Known.LATEST and any(each.fate is Outcome.OPEN for each in found.fates):
        yield "What is decided and open is committed by the driver, or by the query's next start."
    if case.known is Known.GONE:
        yield _gone(case)
    elif case.known is Known.NOTHING:
        yield (
            "The log has every record from the batch before to the batch after it: it had no rows, "
            "so nothing had to be decided."
        )
    elif case.known is Known.NOT_DECIDED:
        latest = case.latest.batch if case.latest else None
        yield (
            f"The stream's latest decided batch is {latest}. Nothing of a later one is visible: "
            "it is being written, was aborted, or has not begun. Kafka does not tell of which "
            "batch an undecided transaction is; the table has those of the next batch's slot."
        )
    elif case.known is Known.NO_STREAM:
        yield "The log knows no decided batch of this stream, so nothing of it is visible."
    if any(each.fate in (Outcome.IN_DOUBT, Outcome.UNKNOWN) for each in found.fates):
        reach = reach_of(status.names, command_line(arguments))
        yield f"See also: eos-sink resolve {status.names.query} {reach}".rstrip()
    if found.streams:
        yield (
            f"Other streams ran under this query, with batches of their own (--stream): "
            f"{', '.join(found.streams)}."
        )


def _gone(case: Case) -> str:
    latest = case.latest.batch if case.latest else None
    if latest == case.batch:
        return (
            "It is the last decided batch of its stream. Other batches of the query were decided "
            "since, and none is planned before what is decided is settled: its rows are visible."
        )
    if what_numbers(case.stream) is Numbering.VERSION:
        return (
            f"Version {latest} is decided, so this one was committed before, or was never written: "
            "then it is skipped if it comes now."
        )
    return (
        f"Batch {latest} of the same stream is decided, and none is planned before the one before "
        "it is settled: all rows of this one are visible once, or it had none. A person's ruling "
        "(eos-sink resolve) is the exception, and compaction would have dropped that too."
    )


def what_numbers(stream: str) -> Numbering:
    """Who numbers the batches of a stream."""
    return BatchId(stream, 0).numbering


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _document(found: Found) -> dict[str, Any]:
    case, written = found.case, found.case.written
    return {
        "query": found.status.names.query,
        "stream": case.stream,
        "batch": case.batch,
        "known": case.known.value,
        "latest": case.latest.batch if case.latest else None,
        "seq": written.record.seq if written else None,
        "decided_at_ms": written.at_ms if written else None,
        "rows": case.decision.total.rows if case.decision else None,
        "tasks": [
            {
                "partition": each.partition,
                "rows": each.rows,
                "fate": each.fate.value,
                "evidence": list(each.evidence),
            }
            for each in found.fates
        ],
        "other_streams": list(found.streams),
        "not_seen": list(found.unseen),
    }
