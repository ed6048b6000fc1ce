"""`eos-sink resolve`: see why a query has stopped, and choose how it goes on."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eos_sink.cli.connection import add_connection, sink_options
from eos_sink.cli.report import CommandError, Report
from eos_sink.deadline import Deadline
from eos_sink.errors import EosSinkError
from eos_sink.identity import query_identity

if TYPE_CHECKING:
    from eos_sink.clients.inspection import ConfluentInspection
    from eos_sink.driver.resolve import Choice, Evidence
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

_WHOLE_NAME = re.compile(r"[A-Za-z0-9._]+-[0-9a-f]{10}")
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
    add("--yes", action="store_true", help="do not ask for the query's name to confirm a choice")
    add("--take-over", action="store_true", help="choose although the last run is alive here")


def run(arguments: argparse.Namespace) -> Report:
    """Show, or show and carry out.

    Raises:
        CommandError: no such query, the choice is refused or not confirmed, or Kafka says no.
    """
    # Imported here: other commands do without the Kafka clients.
    from eos_sink.cli.evidence import report_of
    from eos_sink.driver.resolve import Choice, RefusedChoice, carry_out, look, ruled

    deadline = Deadline(arguments.timeout)
    kafka: ConfluentInspection | None = None
    try:
        kafka, options = _connect(arguments, deadline)
        evidence = look(kafka, options, arguments.tail, deadline)
        if arguments.choice is None:
            return report_of(options, evidence)
        choice = Choice(arguments.choice)
        decision = ruled(evidence, choice, arguments.partitions)
        _confirm(arguments, options, evidence, choice)
        written = carry_out(kafka, options, evidence, decision, Deadline(arguments.timeout))
        return report_of(options, evidence, choice, written)
    except (EosSinkError, RefusedChoice) as error:
        raise CommandError(str(error)) from error
    finally:
        if kafka is not None:
            kafka.close()


def _connect(
    arguments: argparse.Namespace, deadline: Deadline
) -> tuple[ConfluentInspection, SinkOptions]:
    """A connection for the query that is meant.

    Raises:
        CommandError: the log has no such query.
    """
    from eos_sink.clients.inspection import ConfluentInspection

    options = sink_options(arguments, arguments.query)
    kafka = ConfluentInspection(options)
    known = kafka.queries(deadline)
    query = meant(arguments.query, known)
    if query == options.names.query:
        return kafka, options
    kafka.close()
    options = sink_options(arguments, query)
    return ConfluentInspection(options), options


def meant(given: str, known: Sequence[str] | None) -> str:
    """The query of the log that is meant: by its whole name, by the readable part of it, or by the
    `eos.id`, checkpoint location or query name that it follows from. One that the log does not
    know has to be named in full, since its record may be what is missing.

    Raises:
        CommandError: there is none, or more than one.
    """
    if _WHOLE_NAME.fullmatch(given):
        return given
    names = {given, query_identity(given, None, None), query_identity(None, None, given)}
    if given.startswith("/") or ":/" in given:
        names.add(query_identity(None, given, None))
    found = [name for name in known or () if name in names]
    found = found or [name for name in known or () if name.rpartition("-")[0] == given]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(f"{given!r} may be {' or '.join(found)}: give the whole name")
    if known is None:
        raise CommandError(
            f"there is no such log topic (--log-topic), so give the query's whole name instead of "
            f"{given!r}, as its error names it"
        )
    near = difflib.get_close_matches(given, known, n=3, cutoff=0.3) or list(known)[:3]
    hint = f"; it knows {', '.join(near)}" if near else ", nor any other"
    raise CommandError(f"the decision log knows no query {given!r}{hint}")


def _confirm(
    arguments: argparse.Namespace, options: SinkOptions, evidence: Evidence, choice: Choice
) -> None:
    """Raises CommandError unless a person, or a script in a person's name, means it."""
    from eos_sink.driver.resolve import runs_here

    owner = evidence.owner
    if owner is not None and not arguments.take_over and runs_here(owner):
        raise CommandError(
            f"the run that wrote last is alive: {owner}. Stop the query first; if that process is "
            "another one by now, or shall be replaced, add --take-over"
        )
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError("nobody is there to confirm: add --yes")
    query = options.names.query
    print(f"--{choice.value}: {_CHOICES[choice.value]}.", file=sys.stderr)
    print(f"A run of {query} that is alive is refused from then on.", file=sys.stderr)
    print("Type the query's name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != query:
        raise CommandError("not confirmed; nothing was changed")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())
