"""`eos-sink doctor`: what is wrong, and the command that repairs it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from eos_sink.cli.arguments import (
    add_connection,
    add_timeout,
    cluster_config,
    positive,
    read_settings,
)
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Cell, CommandError, Mood, Report, printable, require_libraries
from eos_sink.cli.query_name import FOUND_BY, find_history
from eos_sink.identity import SESSION_PREFIX
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.doctor.facts import Facts, Subject
from eos_sink.ops.doctor.findings import Finding, Level, Results, run_checks
from eos_sink.options import parse_batch_options, parse_common_options, parse_options
from eos_sink.sink_options import SinkOptions

NAME = "doctor"
HELP = "Check a cluster, a query, this machine or a Spark session, and say what to repair."
EXAMPLES = """\
examples:
  eos-sink doctor --bootstrap-server kafka:9092 --topic readings
  eos-sink doctor --options query.properties      a query, by the options that it is started with
  eos-sink doctor --bootstrap-server kafka:9092 --command-config client.properties --query readings
  spark-submit "$(python -c 'import eos_sink.__main__ as m; print(m.__file__)')" \\
      doctor --spark --options query.properties   inside Spark: executors too

It changes nothing.
"""
EXIT_CODES = {
    ExitCode.OK: "no check fails, though there may be warnings, and all was seen",
    ExitCode.FAILED: "a check fails",
    ExitCode.NOT_SEEN: "none does in what could be seen, and something could not",
}

_TIMEOUT_S = 30.0
_READ_LOG_S = 20.0
_IDENTITY = {"eos.id", "checkpointlocation", "queryname"}
_BATCH_WRITE = {"txnappid", "txnversion"}
_MOODS = {
    Level.OK: Mood.GOOD,
    Level.WARNING: Mood.WARN,
    Level.FAILURE: Mood.BAD,
    Level.UNSEEN: Mood.PLAIN,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_connection(parser, needed=False)
    add_timeout(parser, _TIMEOUT_S, limits=", apart from the job that --spark runs")
    add = parser.add_argument
    add(
        "--options",
        type=Path,
        metavar="FILE",
        help="File with the options of the query, a line NAME=VALUE for each. It may name the "
        "brokers.",
    )
    add("--query", metavar="QUERY", help=f"Check this query, with its topics. {FOUND_BY}")
    add(
        "--topic",
        action="append",
        default=[],
        help="Check a topic that rows go to. The option may be repeated.",
    )
    add(
        "--transaction-timeout-ms",
        type=positive,
        metavar="MS",
        help="The query's eos.transaction.timeout.ms. Default: 900000.",
    )
    add("--spark", action="store_true", help="Check the Spark session and its executors too.")


def run(arguments: argparse.Namespace) -> Report:
    """Run the checks, which ask the cluster for facts.

    Raises:
        CommandError: the options are incomplete, or pyspark is missing.
        EosSinkError: no broker answers, or a query could not start with these options.
    """
    # Imported here: other commands do without the Kafka clients.
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
    from eos_sink.ops.doctor.checks import CHECKS

    if arguments.spark:
        require_libraries("--spark (without spark-submit)", "spark", "pyspark")
    deadline = Deadline(arguments.timeout)
    subject = _read_subject(arguments)
    with closing(ConfluentAdmin(subject.cluster, arguments.timeout)) as admin:
        if arguments.query is not None:
            soon = deadline.within(_READ_LOG_S)
            names, _ = find_history(admin, arguments.query, subject.prefix, soon)
            subject = replace(subject, names=names)
        facts = Facts(admin, subject, deadline, admin.describe_brokers(deadline))
        findings = run_checks(CHECKS, facts, facts.commands.grant)
    if arguments.spark:
        from eos_sink.ops.doctor.spark import SPARK_CHECKS, look_at_spark

        addresses = [broker.address for broker in facts.brokers]
        spark = look_at_spark(facts.python, addresses, subject.cluster.client)
        findings |= run_checks(SPARK_CHECKS, spark, facts.commands.grant)
    return report_of(findings, secured=facts.commands.secured)


def _read_subject(arguments: argparse.Namespace) -> Subject:
    """Read what the options or the command line say of the query.

    Raises:
        CommandError: the brokers are not given, or the file cannot be read.
        ConfigurationError: the query would be refused for the same reason.
    """
    topics, timeout_ms = tuple(dict.fromkeys(arguments.topic)), arguments.transaction_timeout_ms
    if arguments.options is None:
        if not arguments.bootstrap_server:
            raise CommandError("which brokers? --bootstrap-server HOST:PORT, or --options FILE")
        subject = Subject(cluster_config(arguments), topics=topics)
        return replace(subject, transaction_timeout_ms=timeout_ms) if timeout_ms else subject
    options, named = _read_options(arguments)
    return Subject(
        options.cluster,
        options.names if named else None,
        tuple(dict.fromkeys([*topics, *sorted(options.named_topics)])),
        options.transaction_timeout_ms,
        options.destinations,
        options.dead_letter_topic,
        options.timestamp_column,
        options.source,
    )


def _read_options(arguments: argparse.Namespace) -> tuple[SinkOptions, bool]:
    """Return the options in the file, and True if they name the query."""
    # The file may have the defaults of a session, among other settings of Spark.
    entries = read_settings("--options", arguments.options).items()
    given = {name.removeprefix(SESSION_PREFIX).lower(): value for name, value in entries}
    given = {name: value for name, value in given.items() if not name.startswith("spark.")}
    if arguments.bootstrap_server:
        given.setdefault("kafka.bootstrap.servers", arguments.bootstrap_server)
    if arguments.transaction_timeout_ms:
        given["eos.transaction.timeout.ms"] = str(arguments.transaction_timeout_ms)
    if not _BATCH_WRITE.isdisjoint(given):
        return parse_batch_options(given).sink, True
    if not _IDENTITY.isdisjoint(given):
        return parse_options(given), True
    # The checkpoint is named in the program; --query names the query.
    return parse_common_options(given), False


def report_of(results: Results, *, secured: bool) -> Report:
    """Make a table of all findings, with consequence and remedy of the bad ones below it."""
    findings = [(check, found) for check, each in results.items() for found in each]
    counts = Counter(found.level for _, found in findings)
    levels = {level.value: counts[level] for level in _MOODS}
    notes = [*_explain(findings)]
    if secured and any("admin.properties" in line for _, f in findings for line in f.remedy):
        notes.append("\nadmin.properties stands for the login of a cluster administrator.")
    notes.append("\n" + ", ".join(f"{n} {level}" for level, n in levels.items() if n) + ".")
    return Report(
        rows=[
            {"": Cell(f.level.value, _MOODS[f.level]), "check": check, "found": f.what}
            for check, f in findings
        ],
        notes=notes,
        ok=not counts[Level.FAILURE],
        unseen=bool(counts[Level.UNSEEN]),
        document={
            "findings": [
                {
                    "level": found.level.value,
                    "check": check,
                    "what": found.what,
                    "meaning": found.meaning,
                    "remedy": list(found.remedy),
                }
                for check, found in findings
            ],
            "counts": levels,
        },
        left=3,
        wrap=90,
        lines=True,
    )


def _explain(findings: Sequence[tuple[str, Finding]]) -> Iterator[str]:
    """Failures first. Findings that one command would show are listed together."""
    for level in (Level.FAILURE, Level.WARNING):
        for check, found in findings:
            if found.level is level:
                lines = [f"{level.value}, {check}: {found.what}", found.meaning]
                yield _join([*lines, *(f"  {line}" for line in found.remedy)])
    hidden: dict[tuple[str, ...], list[str]] = {}
    for check, found in findings:
        if found.level is Level.UNSEEN and found.remedy:
            hidden.setdefault(found.remedy, []).append(check)
    for remedy, checks in hidden.items():
        lines = [f"not seen, {', '.join(dict.fromkeys(checks))}: this shows it to the principal"]
        yield _join([*lines, *(f"  {line}" for line in remedy)])


def _join(lines: Sequence[str]) -> str:
    """A paragraph. Names in a line have no line breaks of their own."""
    return "\n".join(["", *map(printable, lines)])
