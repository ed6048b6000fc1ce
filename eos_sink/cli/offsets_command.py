"""`eos-sink offsets`: where a query stands in its source, and whose offsets count."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import add_connection
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.live_run import add_change, check_driver
from eos_sink.cli.output import CommandError, Report, TableRow
from eos_sink.cli.query_name import add_query, confirm, find_history
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import as_json
from eos_sink.ops.documents import source_document
from eos_sink.ops.operator_run import list_hosts
from eos_sink.ops.source_position import Drop, SourceState, Use, choose, read_source
from eos_sink.protocol.values import Place

NAME = "offsets"
HELP = "Show where a query stands in its Kafka source, as JSON for startingOffsets."
EXAMPLES = """\
examples:
  eos-sink offsets payments --bootstrap-server kafka:9092                what a new checkpoint needs
  eos-sink offsets payments --bootstrap-server kafka:9092 --use group    a reset of the group counts
  eos-sink offsets payments --bootstrap-server kafka:9092 --use record   the group gets them again
  eos-sink offsets payments --bootstrap-server kafka:9092 --drop orders   orders was created again
  eos-sink offsets payments --bootstrap-server kafka:9092 --give-up-state   lose what waits in state
"""
EXIT_CODES = {
    ExitCode.OK: "the log and the group agree, or the choice is carried out",
    ExitCode.FAILED: "they differ, or it is not known where the query stands",
}
_CONSEQUENCES = {
    "record": "the group gets the offsets of the decision log, which repeats and skips no row, "
    "unless the query has written under another identity, which has moved the group",
    "group": "a new checkpoint begins at the offsets of the group: rows before them that are not "
    "visible are skipped, rows after them that are visible are written again",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_connection(parser)
    add = parser.add_argument
    help_ = "The query's eos.source.group.id, if the decision log does not have it yet."
    add("--group", metavar="GROUP", help=help_)
    help_ = "Choose whose offsets count: those of the group, or those of the log's record."
    add("--use", choices=sorted(_CONSEQUENCES), help=help_)
    help_ = (
        "Give up what is gone of these topics: rows that were deleted, partitions, or the whole "
        "topic, which may have been created again. The query goes on at the first row there is."
    )
    parser.add_argument("--drop", metavar="TOPIC[,TOPIC]", help=help_)
    help_ = (
        "Let a new checkpoint go on without what only the old one has: state, whose waiting rows "
        "are lost, and the offsets of other sources."
    )
    parser.add_argument("--give-up-state", action="store_true", help=help_)
    add_change(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Show the offsets, or carry out a choice."""
    deadline = Deadline(arguments.timeout)
    with connect(arguments, arguments.timeout) as admin:
        names, _ = find_history(admin, arguments.query, arguments.prefix, deadline)
        state = read_source(admin, names, arguments.group, deadline)
        chosen = _parse_choice(arguments)
        if chosen is None:
            return make_report(names, state)
        members = admin.describe_groups([names.group], deadline)[names.group]
        run, hosts = state.entry.record.run, list_hosts(members)
        check_driver(names, run, hosts, take_over=arguments.take_over)
        if not arguments.yes:
            confirm([*_warn(chosen)], names.shown)
        deadline = Deadline(arguments.timeout)
        choose(admin, names, state, chosen, deadline)
        return make_report(names, read_source(admin, names, arguments.group, deadline))


def _parse_choice(arguments: argparse.Namespace) -> Use | Drop | None:
    dropped, state = arguments.drop or "", arguments.give_up_state
    if arguments.use and (dropped or state):
        raise CommandError("--use and giving up rows are two choices: give one")
    if dropped or state:
        topics = filter(None, (topic.strip() for topic in dropped.split(",")))
        return Drop(frozenset(topics), state)
    return Use(arguments.use) if arguments.use else None


def _warn(chosen: Use | Drop) -> Iterator[str]:
    if isinstance(chosen, Use):
        yield f"--use {chosen.value}: {_CONSEQUENCES[chosen.value]}."
        return
    if chosen.topics:
        topics = ", ".join(sorted(chosen.topics))
        yield f"--drop: rows of {topics} that were not read before they were deleted are given up."
    if chosen.state:
        yield "--give-up-state: rows that wait in the state of the old checkpoint are lost."


def _make_row(place: Place, offset: int | None, committed: int | None, end: int | None) -> TableRow:
    lag = None if offset is None or end is None else end - offset
    figures = {"next offset": offset, "group": committed, "end": end, "lag": lag}
    shown = {name: "" if value is None else f"{value:,}" for name, value in figures.items()}
    return {"partition": f"{place[0]}[{place[1]}]", **shown}


def make_report(names: QueryNames, state: SourceState) -> Report:
    """A row for each partition, and the JSON of all."""
    position = state.position
    reached = position.reached if position else {}
    is_known = position is not None and not position.stale
    # Spark refuses offsets of topics that it does not read.
    read = {topic for topic, _ in position.end} if position else set()
    begins = {place: offset for place, offset in reached.items() if place[0] in read}
    starting = json.dumps(as_json(begins)) if is_known else None
    rows = [
        _make_row(place, reached.get(place), state.committed.get(place), state.ends.get(place))
        for place in sorted({*reached, *state.committed})
    ]
    notes = [f"startingOffsets: {starting}"] if starting else []
    if not is_known:
        notes.append(
            "Where the query stands is not known: its last batch was decided without "
            "eos.source.group.id. Continue with its checkpoint, or set the group's offsets and add "
            "--use group."
        )
    elif state.differs:
        notes.append(
            f"Group {state.group} has other offsets than the log, so a new checkpoint stops. Add "
            "--use record or --use group."
        )
    if position is not None and position.given_up:
        notes.append("A new checkpoint may go on without what only the old one has.")
    document = {
        "query": names.query,
        **source_document(state.group, position, state.lag),
        "starting_offsets": starting,
        "offsets": as_json(reached),
        "committed": as_json(state.committed),
    }
    return Report(rows, notes, is_known and not state.differs, document)
