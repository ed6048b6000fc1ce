"""`eos-sink transactions`: see the queries' transactions, and end single ones."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eos_sink.cli.confirm import confirm
from eos_sink.cli.connection import add_connection, command_line, sink_options
from eos_sink.cli.ledger import describe_report, done_report, list_report
from eos_sink.cli.report import CommandError, Report
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    from eos_sink.kafka.admin_interface import Admin
    from eos_sink.ops.snapshot import QueryStatus, Snapshot
    from eos_sink.ops.transactions import Line
    from eos_sink.options import SinkOptions

NAME = "transactions"
HELP = "List the queries' transactions, describe one, or end single ones."
EXAMPLES = """\
examples:
  eos-sink transactions list --bootstrap-server kafka:9092 --open
  eos-sink transactions describe eos-sink-readings-1f0c9a7e42-0-3 --bootstrap-server kafka:9092
  eos-sink transactions abort eos-sink-readings-1f0c9a7e42-1-3 --bootstrap-server kafka:9092
  eos-sink transactions commit eos-sink-readings-1f0c9a7e42-0-3 --bootstrap-server kafka:9092

What the latest decision names is committed, never aborted. What it does not name is aborted;
--force commits it all the same, and asks for its id: on a terminal, or as --yes --confirm ID. Both
abort and commit --force end the right of every older run of the query to write, as a new start of
it does.

exit code: 0 as wanted; 1 a transaction was not ended, or not all could be seen; 2 it is refused, or
no broker answers
"""

_ACTIONS = ("list", "describe", "abort", "commit")
_NEAR_IDS = 3


@dataclass(frozen=True)
class Sight:
    """What was seen before anything is done."""

    snapshot: Snapshot
    lines: tuple[Line, ...]

    def line(self, transactional_id: str) -> Line:
        """Raises CommandError: no coordinator and no decision knows the id."""
        for line in self.lines:
            if line.state.transaction.transactional_id == transactional_id:
                return line
        known = [line.state.transaction.transactional_id for line in self.lines]
        near = difflib.get_close_matches(transactional_id, known, n=_NEAR_IDS, cutoff=0.6)
        hint = f"; near to it: {', '.join(near)}" if near else ""
        raise CommandError(
            f"no coordinator knows the transactional id {transactional_id}: it was never used, or "
            f"has expired (transactional.id.expiration.ms){hint}"
        )

    def status(self, line: Line) -> QueryStatus:
        """Raises CommandError: the id is of no query of the log."""
        found = self.snapshot.query(line.query) if line.query else None
        if found is None:
            raise CommandError(
                f"{line.state.transaction.transactional_id} is of no query of this decision log: "
                "give the --log-topic of its query. What is not of the sink is not ended here "
                "(Kafka's own tool is kafka-transactions)"
            )
        return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("action", choices=_ACTIONS, metavar="ACTION", help=", ".join(_ACTIONS))
    add("ids", nargs="*", metavar="ID", help="transactional ids, as list shows them")
    add("--open", action="store_true", help="list: open transactions only")
    add("--yes", action="store_true", help="do not ask for a confirmation")
    add("--take-over", action="store_true", help="end what a live run of the query has open")
    add("--force", action="store_true", help="commit without a decision; rows may come twice")
    add("--confirm", metavar="ID", help="with --force and --yes: the id once more")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Show, or show and carry out.

    Raises:
        CommandError: it is refused or not confirmed, or no broker answers.
    """
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.ops.resolve import RefusedChoice

    check(arguments)
    made: list[ConfluentAdmin] = []

    def connect(options: SinkOptions) -> ConfluentAdmin:
        made.append(ConfluentAdmin(options))
        return made[-1]

    try:
        return carry_out(connect, arguments)
    except (EosSinkError, RefusedChoice) as error:
        raise CommandError(str(error)) from error
    finally:
        for admin in made:
            admin.close()


def carry_out(connect: Callable[[SinkOptions], Admin], arguments: argparse.Namespace) -> Report:
    """Look, and do what is asked for.

    Args:
        connect: makes the clients of one query: they write to that one's part of the log.
        arguments: checked ones.

    Raises:
        CommandError, RefusedChoice, EosSinkError: nothing is done.
    """
    deadline = Deadline(arguments.timeout)
    sight = look(connect(sink_options(arguments)), arguments, deadline)
    if arguments.action == "list":
        return list_report(sight.snapshot, sight.lines)
    lines = [sight.line(each) for each in arguments.ids]
    if arguments.action == "describe":
        return describe_report(sight.snapshot, lines[0], arguments)
    if arguments.action == "commit" and not arguments.force:
        return _commit(connect, sight, lines, arguments)
    return _end(connect, sight, lines, arguments)


def look(admin: Admin, arguments: argparse.Namespace, deadline: Deadline) -> Sight:
    """What coordinators and the log say."""
    from eos_sink.ops.observer import Observer
    from eos_sink.ops.transactions import lines_of

    observer = Observer(admin, arguments.prefix)
    snapshot = observer.look(deadline)
    histories = {q.query: h for q in snapshot.queries if (h := observer.history(q.query))}
    ended = not arguments.open
    states = admin.list_transactions(arguments.prefix, deadline, ended=ended)
    given = [each for each in arguments.ids if not each.startswith(arguments.prefix)]
    for prefix in given:
        states += admin.list_transactions(prefix, deadline, ended=ended)
    return Sight(snapshot, tuple(lines_of(states, histories, arguments.prefix)))


def check(arguments: argparse.Namespace) -> None:
    """Raises CommandError: what is given does not go together."""
    action, ids = arguments.action, arguments.ids
    if action == "list" and ids:
        raise CommandError("transactions list takes no ID")
    if action != "list" and not ids:
        raise CommandError(f"transactions {action} needs an ID, as transactions list shows it")
    if action == "describe" and len(ids) > 1:
        raise CommandError("transactions describe takes one ID")
    if arguments.open and action != "list":
        raise CommandError("--open is for transactions list")
    if arguments.force and (action != "commit" or len(ids) > 1):
        raise CommandError("--force is for transactions commit, with one ID")


def _commit(
    connect: Callable[[SinkOptions], Admin],
    sight: Sight,
    lines: Sequence[Line],
    arguments: argparse.Namespace,
) -> Report:
    from eos_sink.ops.end_transactions import commit_decided

    status, options = _one_query(sight, lines, arguments)
    transactions = [line.state.transaction for line in lines]
    for line in lines:
        if not line.decided:
            raise CommandError(
                f"{line.state.transaction.transactional_id}: no decision names this transaction "
                f"({line.state.status.value}, epoch {line.state.transaction.epoch}). Once "
                "committed, its rows would come twice when its batch is replayed. Abort it, or "
                "start the query; --force commits it nevertheless"
            )
    _confirm(arguments, status.query, "commit", "makes the rows of a decided batch visible")
    outcomes = commit_decided(
        connect(options).kafka, options, transactions, Deadline(arguments.timeout)
    )
    return done_report("committed", transactions, outcomes, None)


def _end(
    connect: Callable[[SinkOptions], Admin],
    sight: Sight,
    lines: Sequence[Line],
    arguments: argparse.Namespace,
) -> Report:
    """Abort; or commit without a decision."""
    from eos_sink.ops.end_transactions import end_undecided

    status, options = _one_query(sight, lines, arguments)
    for line in lines:
        name = line.state.transaction.transactional_id
        if line.decided and arguments.force:
            raise CommandError(f"{name} is decided: it is committed without --force")
        if line.decided:
            command = f"eos-sink transactions commit {name} {command_line(arguments)}".rstrip()
            raise CommandError(
                f"{name} is decided: it must become visible, and is never aborted. To commit it: "
                f"{command}"
            )
    _check_driver(status, arguments)
    if arguments.force:
        _confirm_force(arguments, lines[0])
    else:
        what = "ends it unseen; the query's next start writes the batch again"
        _confirm(arguments, status.query, "abort", what)
    transactions = [line.state.transaction for line in lines]
    written, outcomes = end_undecided(
        connect(options).kafka,
        options,
        status.seq,
        transactions,
        Deadline(arguments.timeout),
        commit=arguments.force,
    )
    done = "committed without a decision" if arguments.force else "aborted"
    return done_report(done, transactions, outcomes, written.seq)


def _one_query(
    sight: Sight, lines: Sequence[Line], arguments: argparse.Namespace
) -> tuple[QueryStatus, SinkOptions]:
    found = {status.query: status for status in (sight.status(line) for line in lines)}
    if len(found) > 1:
        raise CommandError(f"the IDs are of several queries, one at a time: {', '.join(found)}")
    (status,) = found.values()
    if status.hidden is not None:
        raise CommandError(
            f"the latest record of {status.query}, at {status.hidden.where}, is not one that this "
            f"version reads ({status.hidden.why}): nobody can tell what is decided"
        )
    names = lines[0].names
    assert names is not None
    return status, replace(sink_options(arguments), names=names)


def _check_driver(status: QueryStatus, arguments: argparse.Namespace) -> None:
    """A run that is alive is not replaced by mistake; it would be safe, but it would stop."""
    from eos_sink.driver.processes import runs_here
    from eos_sink.ops.snapshot import Driver

    owner = status.owner
    alive = owner is not None and runs_here(owner)
    member = bool(status.hosts) and not (owner and owner.tool)
    if arguments.take_over or not (alive or member or status.driver is Driver.UNKNOWN):
        return
    who = f" {owner}" if owner else ""
    ended = " Its process on this machine has ended." if status.driver is Driver.GONE else ""
    raise CommandError(
        f"a run of {status.query} is alive, or died within its session (half an hour unless the "
        f"brokers' group.max.session.timeout.ms says otherwise):{who}.{ended} Stop it, "
        "and its next start aborts what is undecided; or add --take-over, after "
        "which that run can decide nothing any more"
    )


def _confirm(arguments: argparse.Namespace, query: str, verb: str, what: str) -> None:
    """Raises CommandError unless a person, or a script in a person's name, means it."""
    if arguments.yes:
        return
    warning = f"{verb} {len(arguments.ids)} of {query}: {what}."
    confirm([warning], query, "the query's name", "--yes")


def _confirm_force(arguments: argparse.Namespace, line: Line) -> None:
    """The whole id, typed or as --confirm: --yes alone is what scripts give without a thought."""
    name = line.state.transaction.transactional_id
    warning = (
        f"No decision names {name}. Once committed, its rows stay visible, the other tasks' of its "
        "batch may not, and when the query replays the batch they come a second time."
    )
    if not arguments.yes:
        confirm([warning], name, "the transactional id", f"--yes --confirm {name}")
    elif arguments.confirm != name:
        raise CommandError(f"--force needs --confirm {name} beside --yes; nothing was changed")
    else:
        print(warning, file=sys.stderr)
