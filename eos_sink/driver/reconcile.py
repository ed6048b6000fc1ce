"""Do what is left to do for a query, as `eos_sink.protocol.reconcile` says.

A refused EndTxn(commit) does not tell the outcome: a late attempt of a task may have taken the id
after the commit. The witness does: a read_committed reader gets that record or skips it. A refused
EndTxn(abort) is fine: the transaction has ended, or the id has a new one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.driver_id import describe_driver
from eos_sink.driver.evidence import ask_coordinators, ask_topic_ids, ask_topics
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.metrics.events import trace
from eos_sink.protocol.model import Decision, LogEntry, PlanToken
from eos_sink.protocol.outcome import Evidence, Source, missing
from eos_sink.protocol.reconcile import Role, Step, View, next_step
from eos_sink.protocol.rules import in_doubt, select_undecided
from eos_sink.protocol.values import (
    MAY_HAVE_COMMITTED,
    EndOutcome,
    FirstOpen,
    Place,
    Transaction,
    TransactionState,
    TransactionStatus,
)

# For the text of an error, after the step's own deadline.
_EXPLAIN_S = 5.0


def _refuse(view: View) -> NoReturn:
    raise NotImplementedError(f"{view.names.query}: its actor only settles")


@dataclass(frozen=True)
class Actor:
    """Who brings a query to rest, and how.

    Attributes:
        fence: writes the record of the view again, under the next number; returns it.
        look: ends what hangs.
        is_stable: waits a while for the group; returns whether it has no pending offsets.
    """

    role: Role = Role.SETTLE
    fence: Callable[[View], LogEntry] = _refuse
    look: Callable[[View], None] = _refuse
    is_stable: Callable[[View], bool] = _refuse


_SETTLER = Actor()


def bring_to_rest(kafka: Kafka, view: View, deadline: Deadline, actor: Actor = _SETTLER) -> View:
    """Do what is left to do; repeating it is harmless.

    Raises:
        UnfinishedError: something decided is still open at the deadline.
        OutcomeUnknownError: something that was given up is; or the group has pending offsets.
    """
    while (step := next_step(view, actor.role)) is not Step.REST:
        _trace(step, view, actor)
        view = _do(step, kafka, view.doing(step), deadline, actor)
    return view


def settle(kafka: Kafka, view: View, deadline: Deadline) -> View:
    """Make what is decided visible, as far as it is not lost.

    Raises:
        UnfinishedError: as `bring_to_rest`.
        OperatorNeededError: a part of it is in doubt.
    """
    view = bring_to_rest(kafka, view, deadline)
    if view.decision is not None and view.doubtful:
        raise in_doubt(view.decision, view.doubtful, view.made_again)
    return view


def settle_without_id(
    kafka: Kafka,
    names: QueryNames,
    register: DecisionRegister,
    deadline: Deadline,
    token: PlanToken | None = None,
) -> None:
    """Settle what the log says is decided, if the driver's id cannot be initialised yet: that may
    wait for a partition without a leader, and readers of other partitions need not. And make sure
    that the log can be read.

    Args:
        token: of a plan whose record has to be in the log.

    Raises:
        UnfinishedError: as `bring_to_rest`.
        OutcomeUnknownError, ClusterError: as `end_in_log`.
    """
    from eos_sink.decision_log.hanging import end_in_log

    end_in_log(kafka, [names.driver], register.connect(deadline).home, deadline)
    if describe_driver(kafka, names, deadline).is_ending:
        bring_to_rest(kafka, View.of(names, register.read(deadline, token)), deadline)


def list_undecided(
    kafka: Kafka, names: QueryNames, decision: Decision | None, deadline: Deadline
) -> list[Transaction]:
    """The query's open transactions that the decision does not name."""
    prefix, is_open = f"{names.group}-", TransactionStatus.ONGOING
    states = kafka.control().list_transactions(prefix, deadline, is_open)
    return select_undecided(names, states, decision)


def list_committed(kafka: Kafka, prefix: str, deadline: Deadline) -> list[TransactionState]:
    """The ids under a prefix whose state tells that a transaction of them was committed."""
    states = kafka.control().list_transactions(prefix, deadline, *MAY_HAVE_COMMITTED)
    return [each for each in states if each.has_committed]


def _trace(step: Step, view: View, actor: Actor) -> None:
    def concerned() -> Iterable[Transaction]:
        return view.listed if step is Step.ABORT else view.to_commit if step is Step.COMMIT else ()

    trace(view.names.group, step.value, concerned, role=actor.role.value, seq=view.entry.seq)


def _do(step: Step, kafka: Kafka, view: View, deadline: Deadline, actor: Actor) -> View:
    match step:
        case Step.ASK_TOPIC_IDS:
            view = replace(view, evidence=ask_topic_ids(kafka, view.evidence, deadline))
        case Step.ASK_COORDINATORS:
            view = replace(view, evidence=ask_coordinators(kafka, view.evidence, deadline))
        case Step.COMMIT:
            view = _commit(kafka, view, deadline)
        case Step.LOOK:
            actor.look(view)
        case Step.ASK_TOPICS:
            # Of a transaction whose EndTxn has no answer the topics are not asked.
            view = replace(view, evidence=ask_topics(kafka, view.evidence, deadline))
        case Step.STOP:
            raise _unfinished(kafka, view, deadline)
        case Step.LIST:
            found = list_undecided(kafka, view.names, view.decision, deadline)
            view = view.listing(frozenset(found))
        case Step.FENCE:
            view = replace(view, entry=actor.fence(view), fenced=True)
        case Step.ABORT:
            view = _abort(kafka, view, deadline)
        case Step.WAIT if not actor.is_stable(view):
            if deadline.passed:
                raise stop(Reason.PENDING_OFFSETS)
            view = view.again()
    return view


def _commit(kafka: Kafka, view: View, deadline: Deadline) -> View:
    control = kafka.control()
    ended = dict(control.end(view.to_commit, commit=True, deadline=deadline))
    if view.in_vain:
        aborted = control.end(view.in_vain, commit=False, deadline=deadline)
        ended |= {each: end for each, end in aborted.items() if end is EndOutcome.REFUSED}
    evidence = tuple(replace(each, end=ended.get(each.transaction)) for each in view.evidence)
    return replace(view, evidence=evidence)


def _abort(kafka: Kafka, view: View, deadline: Deadline) -> View:
    answered = kafka.control().end(view.listed, commit=False, deadline=deadline)
    if open_ := sorted(t.transactional_id for t in view.listed - answered.keys()):
        raise stop(Reason.STILL_OPEN, transactions=open_)
    return replace(view, aborted=view.aborted + len(view.listed))


def _unfinished(kafka: Kafka, view: View, deadline: Deadline) -> EosSinkError:
    if hidden := [each for each in view.unfinished if missing(each) is Source.WITNESS]:
        return _hidden(kafka, view, hidden, deadline)
    ids = sorted(each.transaction.transactional_id for each in view.unfinished)
    decision, seconds = view.decision, deadline.seconds
    return stop(Reason.UNFINISHED, decision=decision, transactions=ids, seconds=seconds)


def _hidden(
    kafka: Kafka, view: View, hidden: Sequence[Evidence], deadline: Deadline
) -> EosSinkError:
    """They have ended, but an open transaction keeps readers from seeing how."""
    witnesses = [each.entry.witness for each in hidden]
    places = sorted({(each.topic, each.partition) for each in witnesses})
    holders: dict[Place, FirstOpen | None] = {}
    with contextlib.suppress(EosSinkError):
        holders = kafka.control().find_holders(places, Deadline(_EXPLAIN_S))
    waits = {f"{t}[{n}]": _name(holders.get((t, n))) for t, n in places}
    return stop(
        Reason.HIDDEN,
        decision=view.decision,
        transactions=sorted(each.transaction.transactional_id for each in hidden),
        seconds=deadline.seconds,
        waits=", ".join(f"in {place} for {holder}" for place, holder in waits.items()),
        waits_for=waits,
    )


def _name(holder: FirstOpen | None) -> str:
    if holder is None:
        return "a leader"
    name = holder.transaction.transactional_id or "that no coordinator names"
    return f"the open transaction {name} (producer id {holder.transaction.producer_id})"
