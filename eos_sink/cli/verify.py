"""`eos-sink verify`: what an application is given of a topic, row by row."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from eos_sink.cli.connection import add_brokers, add_timeout, sink_options
from eos_sink.cli.numbers import positive, seconds
from eos_sink.cli.progress import progress
from eos_sink.cli.report import Cell, CommandError, Mood, Report
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.kafka.interfaces import TopicDescription
    from eos_sink.verify.question import Question
    from eos_sink.verify.verify_result import Check, Result

NAME = "verify"
HELP = "Read a topic as an application does: nothing lost, doubled, out of order or held up?"
EXAMPLES = """\
examples:
  eos-sink verify orders --bootstrap-server kafka:9092 --command-config client.properties
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:id --number
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:id --expected 1000000
  eos-sink verify orders --bootstrap-server kafka:9092 --identity key --expected-from keys.txt
  eos-sink verify orders --bootstrap-server kafka:9092 --since 2026-11-01T00:00 --html orders.html
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:seq --group key

A place in a record is key, value, json:FIELD[.FIELD], header:NAME or regex:PATTERN; of a pattern
its first group counts. Ctrl-C ends the reading, and what was read is judged.
"""

_STALL_S = 60.0
_MOODS = {"good": Mood.GOOD, "wrong": Mood.BAD, "no proof": Mood.WARN, "not checked": Mood.PLAIN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("topic", metavar="TOPIC", help="the topic")
    add_brokers(parser)
    add("--identity", default="key", metavar="PLACE", help="what tells rows apart (key)")
    add("--number", action="store_true", help="identities are whole numbers: look for gaps")
    add("--group", metavar="PLACE", help="numbers count anew in each group (with --number)")
    add("--expected", type=positive, metavar="N", help="rows are numbered from 0 to N - 1")
    add("--expected-from", type=Path, metavar="FILE", help="the source's identities, one a line")
    add("--order", metavar="PLACE", help="must never fall along a key")
    add("--partitions", type=_partitions, metavar="P,P-P", help="only these")
    add("--last", type=positive, metavar="N", help="only the last N offsets of each partition")
    add("--since", type=_time, metavar="TIME", help="only rows since then (2026-11-01T00:00)")
    add("--follow", type=seconds, default=0.0, metavar="S", help="go on reading for S seconds")
    add(
        "--wait",
        type=seconds,
        default=10.0,
        metavar="S",
        help="how long a transaction may be open before it holds readers up (10)",
    )
    add("--aborted", action="store_true", help="read everything again, to count aborted rows")
    add("--html", type=Path, metavar="FILE", help="write a page with plots")
    add("--quiet", action="store_true", help="show no progress")
    add_timeout(parser, _STALL_S, "give up after S seconds without any answer")


def run(arguments: argparse.Namespace) -> Report:
    """Read and tell.

    Raises:
        CommandError: the topic cannot be read, or the arguments contradict each other.
    """
    # Imported here: other commands do without numpy and the Kafka clients.
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.testing.topic_scan import ReaderError
    from eos_sink.verify.examine import examine
    from eos_sink.verify.row_identity import PlaceError
    from eos_sink.verify.source_file import SourceFileError

    _check(arguments)
    admin: ConfluentAdmin | None = None
    try:
        admin = ConfluentAdmin(sink_options(arguments))
        topic = _describe(admin, arguments)
        question = _question(arguments, admin, topic)

        def holders(stable: Mapping[int, int]) -> Mapping[int, str]:
            """Which transactions hold readers up, which only their coordinators know."""
            deadline = Deadline(arguments.timeout)
            return admin.blocking_transactions(arguments.topic, stable, deadline)

        with progress(quiet=arguments.quiet) as meter:
            result = examine(question, meter, holders)
    except (EosSinkError, ReaderError, SourceFileError) as error:
        raise CommandError(str(error)) from error
    except PlaceError as error:
        raise CommandError(f"--identity, --group or --order: {error}") from error
    finally:
        if admin is not None:
            admin.close()
    if arguments.html is not None:
        _write(arguments.html, result)
    return report_of(result, arguments.html)


def report_of(result: Result, html: Path | None = None) -> Report:
    """A line for each check, and what has to be known to read them."""
    rows = tuple(
        (
            Cell(check.name),
            Cell(check.status.value, _MOODS[check.status.value]),
            Cell(f"{check.found:,}" if check.status.value != "not checked" else ""),
            Cell(check.told),
        )
        for check in result.checks
    )
    notes = [*_examples(result.checks), *result.notes]
    partitions = len(result.stretches)
    notes.append(
        f"{result.rows:,} rows of {partitions} partition{'s' * (partitions != 1)} of "
        f"{result.topic} were read in {result.seconds:.1f} s, told apart by {result.identity}."
    )
    if result.interrupted:
        notes.append("It was INTERRUPTED: nothing holds for what was not read.")
    if html is not None:
        notes.append(f"Page: {html}")
    heads = ("check", "outcome", "found", "what was looked at")
    return Report(
        heads,
        rows,
        tuple(notes),
        result.good,
        result.document(),
        left=len(heads),
        interrupted=result.interrupted,
    )


def _examples(checks: tuple[Check, ...]) -> list[str]:
    return [f"{check.name}: {'; '.join(check.examples)}" for check in checks if check.examples]


def _check(arguments: argparse.Namespace) -> None:
    """Raises CommandError before anything is read, where that would be in vain."""
    if arguments.group and arguments.expected_from:
        raise CommandError("--expected-from knows no groups: leave out --group")
    if arguments.expected and arguments.expected_from:
        raise CommandError("--expected and --expected-from: one of them")
    if arguments.last and arguments.since:
        raise CommandError("--last and --since: one of them")
    if arguments.html is None:
        return
    missing = [name for name in ("jinja2", "matplotlib") if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"--html needs {', '.join(missing)}: pip install 'eos-sink[cli]'")
    place = arguments.html if arguments.html.exists() else arguments.html.absolute().parent
    if arguments.html.is_dir() or not os.access(place, os.W_OK):
        raise CommandError(f"--html {arguments.html} cannot be written")


def _describe(admin: ConfluentAdmin, arguments: argparse.Namespace) -> TopicDescription:
    """Raises CommandError if the topic does not exist or may not be read."""
    from eos_sink.kafka.interfaces import Unseen
    from eos_sink.kafka_config.acls import Acl, Resource, permission_error

    name, deadline = arguments.topic, Deadline(arguments.timeout)
    topic = admin.kafka.describe_topics([name], deadline)[name]
    if isinstance(topic, Unseen):
        raise topic.error(f"Topic {name} cannot be seen")
    if topic is None:
        near = difflib.get_close_matches(name, admin.topic_names(deadline), n=3, cutoff=0.3)
        hint = f"Similar names: {', '.join(near)}." if near else "No topic has a similar name."
        raise CommandError(
            f"Topic {name!r} does not exist on {arguments.bootstrap_server}, or may not be seen. "
            f"{hint}"
        )
    missing = topic.lacking([Acl("Read", Resource.TOPIC, name)])
    if missing:
        raise permission_error(f"Topic {name} cannot be read", missing, of_query=False)
    return topic


def _question(
    arguments: argparse.Namespace, admin: ConfluentAdmin, topic: TopicDescription
) -> Question:
    from eos_sink.testing.topic_scan import Source
    from eos_sink.verify.question import Question

    unknown = sorted((arguments.partitions or frozenset()) - topic.partitions.keys())
    if unknown:
        raise CommandError(
            f"--partitions: {arguments.topic} has {len(topic.partitions)} partitions, from 0 on, "
            f"and no {', '.join(map(str, unknown))}"
        )
    connection = admin.kafka.clients.connection
    policy = topic.setting("cleanup.policy")
    return Question(
        source=Source(connection["bootstrap.servers"], arguments.topic, connection),
        identity=arguments.identity,
        group=arguments.group,
        order=arguments.order,
        numbered=bool(arguments.number or arguments.group or arguments.expected),
        expected=arguments.expected,
        expected_from=arguments.expected_from,
        partitions=arguments.partitions or frozenset(),
        last=arguments.last,
        since_ms=arguments.since,
        follow_s=arguments.follow,
        wait_s=arguments.wait,
        count_aborted=arguments.aborted,
        compacted=None if policy is None else "compact" in policy,
        stall_s=arguments.timeout,
    )


def _write(file: Path, result: Result) -> None:
    from eos_sink.verify.verify_page import render_verify_page

    try:
        file.write_text(render_verify_page(result), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--html {file}: {error.strerror}") from error


def _partitions(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _time(text: str) -> int:
    """Milliseconds since the epoch; a time without a zone is of this machine's."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)
