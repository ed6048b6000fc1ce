"""`eos-sink doctor`: what is not as it should be, and the command that repairs it."""

from __future__ import annotations

import argparse
import importlib.util
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from eos_sink.cli.arguments import add_connection, sink_options
from eos_sink.cli.output import Cell, CommandError, Mood, Report
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.properties_file import read_properties

if TYPE_CHECKING:
    from eos_sink.kafka.admin.survey import ConfluentSurvey
    from eos_sink.ops.doctor.clients import Python
    from eos_sink.ops.doctor.commands import Commands
    from eos_sink.ops.doctor.facts import Facts, Subject
    from eos_sink.ops.doctor.finding import Finding
    from eos_sink.options import SinkOptions

NAME = "doctor"
HELP = "Look at a cluster, a query, this machine or a Spark session, and tell what to repair."
EXAMPLES = """\
examples:
  eos-sink doctor --bootstrap-server kafka:9092 --topic readings
  eos-sink doctor --options query.properties      a query, by the options that it is started with
  eos-sink doctor --bootstrap-server kafka:9092 --command-config client.properties --query readings
  spark-submit "$(python -c 'import eos_sink.__main__ as m; print(m.__file__)')" \\
      doctor --spark --options query.properties   inside Spark: executors too

It changes nothing.

exit code: 0 nothing fails, though there may be warnings; 1 something fails; 2 no broker answers,
or the login is refused
"""

_MS = 900_000
_TIMEOUT_S = 30.0
_LOG_S = 20.0
_NOBODY = "eos-sink-doctor"
_IDENTITY = {"eos.id", "checkpointlocation", "queryname", "txnappid"}
_VERSIONS = {"txnappid", "txnversion"}
_COLUMNS = ("", "check", "found")
_WIDTH = 90
_MOODS = {"ok": Mood.GOOD, "warning": Mood.WARN, "failure": Mood.BAD, "not seen": Mood.PLAIN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_connection(parser, needed=False, timeout=_TIMEOUT_S)
    add = parser.add_argument
    add("--options", type=Path, metavar="FILE", help="the query's own options, NAME=VALUE lines")
    add("--query", metavar="QUERY", help="the query, as status names it; its topics are looked at")
    add("--topic", action="append", default=[], help="a topic that rows go to; may be repeated")
    add(
        "--transaction-timeout-ms",
        type=_milliseconds,
        metavar="MS",
        help=f"the query's eos.transaction.timeout.ms ({_MS})",
    )
    add("--spark", action="store_true", help="look at the Spark session and its executors, too")


def run(arguments: argparse.Namespace) -> Report:
    """Look, judge, tell.

    Raises:
        CommandError: no broker answers, or the options are none that a query could start with.
    """
    # Imported here: other commands do without the Kafka clients.
    from eos_sink.kafka.admin.survey import ConfluentSurvey
    from eos_sink.ops.doctor.checks import judge
    from eos_sink.ops.doctor.gather import gather
    from eos_sink.ops.doctor.python import this_python

    deadline = Deadline(arguments.timeout)
    survey: ConfluentSurvey | None = None
    try:
        options = _options(arguments)
        survey = ConfluentSurvey(options)
        subject = _subject(arguments, options, survey, deadline)
        facts = gather(survey, subject, deadline)
        commands, here = _commands(options), this_python()
        findings = judge(subject, facts, here, commands)
        if arguments.spark:
            findings += _spark(here, facts, options, commands)
    except EosSinkError as error:
        raise CommandError(str(error)) from error
    finally:
        if survey is not None:
            survey.close()
    return report_of(findings, secured=commands.secured)


def _options(arguments: argparse.Namespace) -> SinkOptions:
    """Those of the query where they are given, else what the command line says of it.

    Raises:
        CommandError: there are no brokers to ask, or a file cannot be read.
        ConfigurationError: as the query would be told.
    """
    if arguments.options is None:
        if not arguments.bootstrap_server:
            raise CommandError("which brokers? --bootstrap-server HOST:PORT, or --options FILE")
        options = sink_options(arguments)
        return replace(options, transaction_timeout_ms=arguments.transaction_timeout_ms or _MS)
    # Imported here: other commands do without the Kafka clients.
    from eos_sink.options import parse_batch_options, parse_options

    given = _given(arguments.options)
    if arguments.bootstrap_server:
        given.setdefault("kafka.bootstrap.servers", arguments.bootstrap_server)
    if arguments.transaction_timeout_ms:
        given["eos.transaction.timeout.ms"] = str(arguments.transaction_timeout_ms)
    if _IDENTITY.isdisjoint(given):
        # The checkpoint is named in the program; --query says who it is.
        given["eos.id"] = _NOBODY
    batch = not _VERSIONS.isdisjoint(given)
    options = parse_batch_options(given).sink if batch else parse_options(given)
    return replace(options, step_timeout=arguments.timeout)


def _given(file: Path) -> dict[str, str]:
    """Options of a properties file, of which those of a session's defaults may be a part."""
    from eos_sink.options import SESSION_PREFIX

    try:
        entries = read_properties(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--options {file}: {error}") from error
    named = {entry.name.removeprefix(SESSION_PREFIX).lower(): entry.value for entry in entries}
    return {name: value for name, value in named.items() if not name.startswith("spark.")}


def _subject(
    arguments: argparse.Namespace,
    options: SinkOptions,
    survey: ConfluentSurvey,
    deadline: Deadline,
) -> Subject:
    from eos_sink.kafka_config import translate
    from eos_sink.ops.doctor.facts import Subject

    declared = options.destinations.topics if options.destinations else []
    topics = [*arguments.topic, *([options.topic] if options.topic else declared)]
    named = _query(arguments, options, survey, deadline)
    largest = translate(options.kafka).settings.get("message.max.bytes", "1000000")
    return Subject(
        prefix=(named or options.names).prefix,
        log=options.log_topic,
        transaction_timeout_ms=options.transaction_timeout_ms,
        query=named.query if named else None,
        topics=tuple(dict.fromkeys(topics)),
        destinations=options.destinations,
        log_copies=options.log_replication,
        own_times=options.timestamp_column is not None,
        largest=int(largest),
        warnings=options.warnings,
    )


def _query(
    arguments: argparse.Namespace,
    options: SinkOptions,
    survey: ConfluentSurvey,
    deadline: Deadline,
) -> QueryNames | None:
    """The query that is meant; None: all of them are."""
    if arguments.query is not None:
        from eos_sink.cli.query_name import find_query, list_queries

        known = list_queries(survey.records(deadline.within(_LOG_S)))
        return find_query(arguments.query, known, options.names.prefix)
    unnamed = arguments.options is None or options.origin.eos_id == _NOBODY
    return None if unnamed else options.names


def _spark(here: Python, facts: Facts, options: SinkOptions, commands: Commands) -> list[Finding]:
    """Raises CommandError where there is no Spark."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandError("--spark needs pyspark: pip install 'eos-sink[spark]', or spark-submit")
    from eos_sink.ops.doctor.session import judge_spark
    from eos_sink.ops.doctor.spark import look_at_spark

    addresses = [broker.address for broker in facts.brokers]
    return judge_spark(here, look_at_spark(addresses, options.kafka), commands)


def _commands(options: SinkOptions) -> Commands:
    from eos_sink.kafka_config import translate
    from eos_sink.ops.doctor.commands import Commands

    settings = translate(options.kafka).settings
    user = settings.get("sasl.username")
    return Commands(
        servers=options.kafka["bootstrap.servers"],
        secured=settings.get("security.protocol", "plaintext").lower() != "plaintext",
        principal=f"User:{user}" if user else "User:NAME",
    )


def report_of(findings: Sequence[Finding], *, secured: bool) -> Report:
    """A line for each finding, and below what it means and what repairs it."""
    rows = tuple(
        (
            Cell(found.level.value, _MOODS[found.level.value]),
            Cell(found.check.title),
            Cell(line),
        )
        if not number
        else (Cell(""), Cell(""), Cell(line))
        for found in findings
        for number, line in enumerate(
            wrap(found.what, _WIDTH, break_long_words=False, break_on_hyphens=False)
        )
    )
    counts = Counter(found.level.value for found in findings)
    notes = [*_notes(findings)]
    if secured and any("admin.properties" in line for f in findings for line in f.remedy):
        notes.append("\nadmin.properties stands for the login of whoever may change the cluster.")
    notes.append(
        "\n" + ", ".join(f"{counts[level]} {level}" for level in _MOODS if counts[level]) + "."
    )
    document = {
        "findings": [_document(found) for found in findings],
        "counts": {level: counts[level] for level in _MOODS},
    }
    return Report(_COLUMNS, rows, tuple(notes), not counts["failure"], document, left=len(_COLUMNS))


def _notes(findings: Sequence[Finding]) -> Iterator[str]:
    """The worst first; what one command shows is told once."""
    order = ["failure", "warning"]
    for level in order:
        for found in findings:
            if found.level.value == level:
                lines = [f"\n{level}, {found.check.title}: {found.what}", found.meaning]
                yield "\n".join([*filter(None, lines), *(f"  {line}" for line in found.remedy)])
    hidden: dict[tuple[str, ...], list[str]] = {}
    for found in findings:
        if found.level.value == "not seen" and found.remedy:
            hidden.setdefault(found.remedy, []).append(found.check.title)
    for remedy, titles in hidden.items():
        told = ", ".join(dict.fromkeys(titles))
        yield "\n".join(
            [f"\nnot seen, {told}: whoever runs this command may see it with"]
            + [f"  {line}" for line in remedy]
        )


def _document(found: Finding) -> dict[str, Any]:
    return {
        "level": found.level.value,
        "check": found.check.title,
        "what": found.what,
        "meaning": found.meaning,
        "remedy": list(found.remedy),
    }


def _milliseconds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of ms from 1000 on")
    return int(text)
