"""`eos-sink resolve`: see why a query has stopped, and choose how it goes on."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from eos_sink.cli.confirm import confirm
from eos_sink.cli.connection import add_connection, sink_options
from eos_sink.cli.names import meant, queries_in
from eos_sink.cli.report import CommandError, Report
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.ops.resolve import Choice, Found
    from eos_sink.options import SinkOptions

NAME = "resolve"
HELP = "Show why a query needs a person, and carry out the person's choice."
EXAMPLES = """\
examples:
  eos-sink resolve readings --bootstrap-server kafka:9092             the evidence; changes nothing
  eos-sink resolve readings --bootstrap-server kafka:9092 --visible   what is in doubt is there
  eos-sink resolve readings --bootstrap-server kafka:9092 --lost --partitions 0,2 --yes

exit code: 0 nothing waits for a person, or the choice is carried out; 1 something waits;
2 the choice is refused, or Kafka says no
"""

_TAIL = 100_000
_CHOICES = {
    "visible": "what is in doubt is in Kafka: it is not written again",
    "lost": "what is in doubt is not in Kafka: the replay of the batch writes it again",
    "accept": "the decided batch stands as it is in Kafka: a replay writes nothing, whatever rows "
    "it has, and partitions that were lost stay lost",
    "forget": "the decision is dropped: what Spark runs next is written, also if it is there",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("query", metavar="QUERY", help="the query, as the error or the decision log names it")
    add_connection(parser)
    add("--tail", type=int, default=_TAIL, metavar="N", help="offsets to read of each partition")
    choice = parser.add_mutually_exclusive_group()
    for name, meaning in _CHOICES.items():
        choice.add_argument(
            f"--{name}", dest="choice", action="store_const", const=name, help=meaning
        )
    add("--partitions", type=_numbers, default=(), metavar="P,P", help="with --visible or --lost")
    add("--stream", metavar="ID", help="with --accept or --forget: its batch, not the latest one")
    add("--yes", action="store_true", help="do not ask for the query's name to confirm a choice")
    add("--take-over", action="store_true", help="choose although the last run is alive here")


def run(arguments: argparse.Namespace) -> Report:
    """Show, or show and carry out.

    Raises:
        CommandError: no such query, the choice is refused or not confirmed, or Kafka says no.
    """
    # Imported here: other commands do without the Kafka clients.
    from eos_sink.cli.evidence import report_of
    from eos_sink.ops.resolve import (
        Choice,
        RefusedChoice,
        carry_out,
        look,
        ruled,
        ruled_about,
    )

    deadline = Deadline(arguments.timeout)
    admin: ConfluentAdmin | None = None
    try:
        admin, options = _connect(arguments, deadline)
        evidence = look(admin, options, arguments.tail, deadline)
        if arguments.choice is None:
            return report_of(options, evidence)
        choice = Choice(arguments.choice)
        earlier = None
        if arguments.stream:
            decision, earlier = ruled_about(
                evidence, choice, arguments.partitions, arguments.stream
            )
        else:
            decision = ruled(evidence, choice, arguments.partitions)
        _confirm(arguments, options, evidence, choice)
        written = carry_out(
            admin.kafka, options, evidence, decision, Deadline(arguments.timeout), earlier
        )
        return report_of(options, evidence, choice, written)
    except (EosSinkError, RefusedChoice) as error:
        raise CommandError(str(error)) from error
    finally:
        if admin is not None:
            admin.close()


def _connect(
    arguments: argparse.Namespace, deadline: Deadline
) -> tuple[ConfluentAdmin, SinkOptions]:
    """A connection for the query that is meant.

    Raises:
        CommandError: the log has no such query.
    """
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin

    options = sink_options(arguments, arguments.query)
    admin = ConfluentAdmin(options)
    log = admin.read_log({}, deadline)
    known = queries_in(log.latest if log else None)
    names = meant(arguments.query, known, arguments.prefix)
    if names == options.names:
        return admin, options
    admin.close()
    options = replace(options, names=names)
    return ConfluentAdmin(options), options


def _confirm(
    arguments: argparse.Namespace, options: SinkOptions, evidence: Found, choice: Choice
) -> None:
    """Raises CommandError unless a person, or a script in a person's name, means it."""
    from eos_sink.driver.processes import runs_here

    owner = evidence.owner
    if owner is not None and not arguments.take_over and runs_here(owner):
        raise CommandError(
            f"the run that wrote last is alive: {owner}. Stop the query first; if that process is "
            "another one by now, or shall be replaced, add --take-over"
        )
    if arguments.yes:
        return
    query = options.names.query
    warnings = (
        f"--{choice.value}: {_CHOICES[choice.value]}.",
        f"A run of {query} that is alive is refused from then on.",
    )
    confirm(warnings, query, "the query's name", "--yes")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())
