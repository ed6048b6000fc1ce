"""Lets an operator's command take a query over: as the group's member, like a run of the query.

Every older run of the query is refused from the command's first record on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from eos_sink.decision_log import DecisionRegister, LogEntry
from eos_sink.driver.processes import current_run, is_alive_here
from eos_sink.errors import SupersededError
from eos_sink.identity import Origin, QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, MemberDescription, Unseen
from eos_sink.messages import named
from eos_sink.ops import RefusedChoice
from eos_sink.protocol.model import Change, PlanToken, Run
from eos_sink.protocol.values import MemberRefused

_SESSION_MS = 30_000


def list_hosts(members: Sequence[MemberDescription] | Unseen) -> tuple[str, ...] | None:
    """The hosts of a group's members; None if the group could not be read."""
    if isinstance(members, Unseen):
        return None
    return tuple(sorted(member.host for member in members))


def may_be_alive(run: Run | None, hosts: Collection[str] | None) -> bool:
    """True if a run of the query may be alive, which a command's record would end.

    A member may be a newer run's than the one that wrote last, so it counts even if that one is
    known to have died.

    Args:
        run: the one that wrote last, if the log names it.
        hosts: of the group's members; None if the group could not be read.
    """
    if hosts is None or (run is not None and is_alive_here(run)):
        return True
    # A command's own membership outlives it.
    return bool(hosts) and not (run and run.tool)


def read_log(
    kafka: Kafka, names: QueryNames, deadline: Deadline, *, create: bool = False
) -> LogEntry | None:
    """The query's latest record as a driver reads it; None if there is no log.

    `Admin.read_log` neither waits for a decision that is being written, nor stops at a record that
    cannot be read.

    Args:
        create: create the log's topic if it does not exist.
    """
    topic = kafka.log_topic
    if not create and kafka.describe_topics([topic], deadline, settings=False)[topic] is None:
        return None
    with closing(DecisionRegister(kafka, names)) as register:
        return register.read(deadline)


def _moved(seq: int, entry: LogEntry) -> RefusedChoice:
    """The error of a command whose operator has seen another record than the latest one.

    Args:
        seq: of the record that was seen.
    """
    run = entry.record.run
    return RefusedChoice(
        f"The log has moved from seq {seq} to {entry.seq} meanwhile"
        + (f", by {run}" if run else "")
        + (
            ". Look again."
            if run and run.tool
            else ". If a run of the query is alive, stop it. Then look again."
        )
    )


def read_again(
    kafka: Kafka, names: QueryNames, seq: int, deadline: Deadline, *, create: bool = False
) -> LogEntry:
    """The latest record, which has to be the one that the operator has seen.

    Args:
        create: as in `read_log`.
    """
    entry = read_log(kafka, names, deadline, create=create)
    if entry is None:
        raise RefusedChoice(f"The decision log {kafka.log_topic} has gone meanwhile. Look again.")
    if entry.seq != seq:
        raise _moved(seq, entry)
    return entry


@contextmanager
def join_as_operator(
    kafka: Kafka, names: QueryNames, entry: LogEntry, tool: str, deadline: Deadline
) -> Iterator[Callable[[Change], LogEntry]]:
    """Join the query's group, and open the log to write the record after `entry`.

    Raises:
        RefusedChoice: a run of the query or another operator's command has taken over meanwhile.
    """
    register = DecisionRegister(kafka, names)
    member = kafka.member(names.group, names.driver, _SESSION_MS)
    try:
        last = entry.record.run
        # The record still tells how the query is started.
        run = replace(current_run(last.origin if last else Origin()), tool=tool)
        metadata = member.join(deadline)
        token = PlanToken(names, entry.seq, entry.position, metadata, run, _SESSION_MS)
        with named(names, kafka.log_topic):
            register.require_current(token, deadline)
            yield lambda change: register.append(token, change, deadline)
    except (MemberRefused, SupersededError) as refused:
        latest = register.try_read()
        if latest is not None and latest.seq > entry.seq:
            raise _moved(entry.seq, latest) from refused
        raise RefusedChoice(
            f"Another member has joined group {names.group} meanwhile, and has not written yet: a "
            "run of the query, or another operator's command. Nothing was written. Look again."
        ) from refused
    finally:
        member.close()
        register.close()
