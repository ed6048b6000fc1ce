"""`eos-sink verify`: read a topic as an application does, and check each row."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from eos_sink.cli.arguments import (
    add_brokers,
    cluster_config,
    partition,
    positive,
    positive_seconds,
    seconds,
)
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Cell, CommandError, Mood, Report, TableRow, require_libraries
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink_lab.progress import Progress

if TYPE_CHECKING:
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
    from eos_sink.kafka.interfaces import TopicDescription
    from eos_sink_lab.verify.verify_model import VerifyOptions, VerifyResult

NAME = "verify"
HELP = "Read a topic as an application does; find lost, duplicated, out-of-order and blocked rows."
EXAMPLES = """\
examples:
  eos-sink verify orders --bootstrap-server kafka:9092 --command-config client.properties
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:id --number
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:id --expected 1000000
  eos-sink verify orders --bootstrap-server kafka:9092 --identity key --expected-from keys.txt
  eos-sink verify orders --bootstrap-server kafka:9092 --since 2026-11-01T00:00 --html orders.html
  eos-sink verify orders --bootstrap-server kafka:9092 --identity json:seq --group key

A place in a record is key, value, json:FIELD[.FIELD], header:NAME or regex:PATTERN, where the first
group of the pattern counts.
"""
EXIT_CODES = {
    ExitCode.OK: "no check failed",
    ExitCode.FAILED: "a check failed, or one that an option asks for was not made (see --partial)",
    ExitCode.INTERRUPTED: "Ctrl-C has ended the reading; the rows that were read are checked",
}

_STALL_S = 60.0
_MOODS = {"good": Mood.GOOD, "wrong": Mood.BAD, "no proof": Mood.WARN, "not checked": Mood.PLAIN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("topic", metavar="TOPIC", help="Topic to read.")
    add_brokers(parser)
    help_ = "Place of what identifies a row; places are listed below. Default: %(default)s."
    add("--identity", default="key", metavar="PLACE", help=help_)
    help_ = "Look for gaps: the identities are whole numbers."
    add("--number", action="store_true", help=help_)
    help_ = "Place of a row's group; the rows of each group have numbers of their own."
    add("--group", metavar="PLACE", help=help_)
    source = parser.add_mutually_exclusive_group().add_argument
    help_ = "Expect the numbers from 0 to N - 1."
    source("--expected", type=positive, metavar="N", help=help_)
    help_ = "Expect the identities in FILE, one per line."
    source("--expected-from", type=Path, metavar="FILE", help=help_)
    help_ = "Place of what must never decrease along a key."
    add("--order", metavar="PLACE", help=help_)
    help_ = "Read these partitions only, such as 0,4-7."
    add("--partitions", type=_partitions, metavar="P,P-P", help=help_)
    help_ = "Dead letter topic of the sink; rows in it are not lost."
    add("--dead-letters", metavar="TOPIC", help=help_)
    part = parser.add_mutually_exclusive_group().add_argument
    help_ = "Read the last N offsets of each partition only."
    part("--last", type=positive, metavar="N", help=help_)
    help_ = "Read rows since TIME only, such as 2026-11-01T00:00."
    part("--since", type=_time, metavar="TIME", help=help_)
    help_ = "Continue to read new rows for S seconds. Default: %(default)g."
    add("--follow", type=seconds, default=0.0, metavar="S", help=help_)
    help_ = (
        "Seconds that a transaction may stay open before it counts as blocking readers. "
        "Default: %(default)g."
    )
    add("--wait", type=seconds, default=10.0, metavar="S", help=help_)
    help_ = "Accept checks that cover a part of the rows, or that are not made."
    add("--partial", action="store_true", help=help_)
    help_ = "Read everything a second time to count the aborted rows."
    add("--aborted", action="store_true", help=help_)
    add("--html", type=Path, metavar="FILE", help="Write the report as a page with plots to FILE.")
    add("--quiet", action="store_true", help="Show no progress.")
    help_ = "Give up after S seconds without any answer from Kafka. Default: %(default)g."
    add("--stall-timeout", type=positive_seconds, default=_STALL_S, metavar="S", help=help_)


def run(arguments: argparse.Namespace) -> Report:
    """Read and check the topic.

    Raises:
        CommandError: the topic cannot be read, or the arguments contradict each other.
    """
    # Imported here: other commands do without numpy and the Kafka clients.
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
    from eos_sink_lab.testing.topic_scan import ReaderError
    from eos_sink_lab.verify.row_columns import SourceFileError
    from eos_sink_lab.verify.row_identity import PlaceError
    from eos_sink_lab.verify.verify_topic import verify_topic

    _check_arguments(arguments)
    try:
        with closing(ConfluentAdmin(cluster_config(arguments), arguments.stall_timeout)) as admin:
            topics = filter(None, (arguments.dead_letters, arguments.topic))
            *_, topic = (_describe_topic(name, admin, arguments.stall_timeout) for name in topics)
            options = _build_options(arguments, admin, topic)

            def find_holders(stable: Mapping[int, int]) -> Mapping[int, str]:
                deadline = Deadline(arguments.stall_timeout)
                # Without the names, what was read is still worth a report.
                with suppress(EosSinkError):
                    places = [(arguments.topic, number) for number in stable]
                    found = admin.control().find_holders(places, deadline)
                    first = {n: each for (_, n), each in found.items() if each}
                    return {n: str(e.transaction) for n, e in first.items() if e.start == stable[n]}
                return {}

            with Progress(None if arguments.quiet else sys.stderr) as meter:
                result = verify_topic(options, meter, find_holders)
    except ReaderError as error:
        raise CommandError(
            f"topic {arguments.topic} on {options.source.bootstrap} could not be read to its end, "
            f"so it is not checked: {error}. Run it again when all its partitions have leaders"
        ) from error
    except (EosSinkError, SourceFileError) as error:
        raise CommandError(str(error)) from error
    except PlaceError as error:
        raise CommandError(f"--identity, --group or --order: {error}") from error
    if arguments.html is not None:
        from eos_sink_lab.verify.verify_page import render_verify_page

        try:
            arguments.html.write_text(render_verify_page(result), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--html {arguments.html}: {error.strerror}") from error
    return build_report(result, arguments.html)


def build_report(result: VerifyResult, html: Path | None = None) -> Report:
    """Build a table with a row for each check, and the notes below it."""
    rows: list[TableRow] = [
        {
            "check": check.name,
            "outcome": Cell(check.status.value, _MOODS[check.status.value]),
            "found": check.shown,
            "what was looked at": check.told,
        }
        for check in result.checks
    ]
    notes = [f"{each.name}: {'; '.join(each.examples)}" for each in result.checks if each.examples]
    if any(each.failed and not each.shown for each in result.checks):
        notes.append(
            "A check that an option asks for was not made, which is a failure: --partial accepts it"
        )
    notes += result.notes
    partitions = len(result.partitions)
    notes.append(
        f"{result.rows:,} rows of {partitions} partition{'s' * (partitions != 1)} of "
        f"{result.topic} were read in {result.seconds:.1f} s, identified by {result.identity}."
    )
    if result.interrupted:
        notes.append("INTERRUPTED: rows that were not read are not checked.")
    if html is not None:
        notes.append(f"Page: {html}")
    return Report(
        rows,
        notes,
        result.good,
        result.document(),
        left=4,
        interrupted=result.interrupted,
    )


def _check_arguments(arguments: argparse.Namespace) -> None:
    """Raises CommandError for what would fail after the topic was read."""
    if arguments.group and arguments.expected_from:
        raise CommandError("--expected-from has no groups: leave out --group")
    if arguments.html is None:
        return
    require_libraries("--html", "cli", "jinja2", "matplotlib")
    place = arguments.html if arguments.html.exists() else arguments.html.absolute().parent
    if arguments.html.is_dir() or not os.access(place, os.W_OK):
        raise CommandError(f"--html {arguments.html} cannot be written")


def _describe_topic(name: str, admin: ConfluentAdmin, timeout_s: float) -> TopicDescription:
    """Raises CommandError if the topic does not exist, EosSinkError if it may not be read."""
    from eos_sink.kafka.interfaces import Unseen

    deadline = Deadline(timeout_s)
    topic = admin.describe_topics([name], deadline)[name]
    if isinstance(topic, Unseen):
        raise topic.error(f"Topic {name} cannot be seen")
    if topic is None:
        names = admin.topic_ids(None, deadline)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
        similar = f"Similar names: {', '.join(near)}." if near else "No topic has a similar name."
        servers = admin.clients.connection["bootstrap.servers"]
        raise CommandError(
            f"topic {name!r} does not exist on {servers}, or may not be seen. {similar}"
        )
    missing = topic.lacking([Acl("Read", Resource.TOPIC, name)])
    if missing:
        raise permission_error(f"Topic {name} cannot be read", missing, of_query=False)
    return topic


def _build_options(
    arguments: argparse.Namespace, admin: ConfluentAdmin, topic: TopicDescription
) -> VerifyOptions:
    from eos_sink_lab.testing.topic_scan import Source
    from eos_sink_lab.verify.verify_model import VerifyOptions

    unknown = sorted((arguments.partitions or frozenset()) - topic.partitions.keys())
    if unknown:
        raise CommandError(
            f"--partitions: {arguments.topic} has {len(topic.partitions)} partitions, from 0 on, "
            f"and no {', '.join(map(str, unknown))}"
        )
    connection = admin.clients.connection
    policy = topic.setting("cleanup.policy")
    return VerifyOptions(
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
        partial=arguments.partial,
        compacted=None if policy is None else "compact" in policy,
        stall_s=arguments.stall_timeout,
        dead_letters=Source(connection["bootstrap.servers"], arguments.dead_letters, connection)
        if arguments.dead_letters
        else None,
    )


def _partitions(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(partition(first), partition(last or first) + 1))
    return frozenset(found)


def _time(text: str) -> int:
    """Milliseconds since the epoch; without a time zone, that of this machine applies."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)
