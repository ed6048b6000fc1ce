"""One stream, one identity: what a query does that writes under a new one.

The claims of its stream name the identities that it had before. What is decided there is settled;
then the stream is retired there, under the identity's own membership and its driver's id, so that
no driver or task that is left of it can write.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing

from eos_sink.decision_log import DecisionRegister
from eos_sink.driver.group_claims import read_record
from eos_sink.driver.reconcile import Actor, bring_to_rest, settle_without_id
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Change, Decision, LogEntry, PlanToken
from eos_sink.protocol.reconcile import Role, View
from eos_sink.protocol.rules import check_former
from eos_sink.protocol.values import MemberRefused

_LOGGER = logging.getLogger("eos_sink.driver")
_SESSION_MS = 30_000


def leave_former_identities(  # noqa: PLR0913, PLR0917
    kafka: Kafka,
    token: PlanToken,
    decision: Decision,
    others: Sequence[QueryNames],
    group: str,
    deadline: Deadline,
) -> None:
    """Check that no other identity has decided the batch, and retire the stream there.

    Args:
        token: of the plan under the new identity.
        decision: that is about to be written.
        others: that have claimed its stream.
        group: that the query moves; "": none.

    Raises:
        OperatorNeededError: one has decided this batch, or a later one; or has lost a part of its
            last one.
        EosSinkError: one cannot be read, or be taken over.
    """
    records = {names: read_record(kafka, names, deadline) for names in others}
    # The one that the query has written last tells where it has to go on.
    for names in sorted(others, key=lambda each: records[each].is_left):
        if check_former(decision, names, records[names], group):
            _retire(kafka, names, token, decision, group, deadline)


def _retire(  # noqa: PLR0913, PLR0917
    kafka: Kafka,
    former: QueryNames,
    token: PlanToken,
    decision: Decision,
    group: str,
    deadline: Deadline,
) -> None:
    """The order is that of a recovery: join, open, settle, list, fence, abort."""
    with (
        closing(DecisionRegister(kafka, former)) as register,
        closing(kafka.member(former.group, former.driver, _SESSION_MS)) as member,
    ):
        try:
            metadata = member.join(deadline)
        except MemberRefused as refused:
            from eos_sink.protocol.refused import refused_member

            # The latest record is of the run that was left, and not of the one that has joined.
            raise refused_member(refused, token.run, None, _SESSION_MS) from refused
        settle_without_id(kafka, former, register, deadline)

        def retire(view: View) -> LogEntry:
            # A driver that is left may have decided until now.
            last = check_former(decision, former, view.record, group)
            if view.decision and view.lost:
                raise stop(
                    Reason.UNREPAIRED,
                    names=former,
                    batch=decision.batch,
                    decision=view.decision,
                    lost=view.lost,
                )
            # Its own run, so that the record still tells how the query was started there.
            entry, run = view.entry, view.record.run
            current = PlanToken(former, entry.seq, entry.position, metadata, run, _SESSION_MS)
            change = Change(view.decision, settled=view.seen, retires=last, group=group)
            return register.append(current, change, deadline)

        view = View.of(former, register.open(deadline))
        bring_to_rest(kafka, view, deadline, Actor(Role.GIVE_UP, retire))
    _LOGGER.warning(
        "Query %s: %s goes on here. Under its former identity, %s, it is refused from now on.",
        token.names.query,
        decision.batch,
        former.group,
    )
