"""What is left to do for a write without a number that has lost rows right after its decision."""

from __future__ import annotations

from dataclasses import replace

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol import lost_writes
from eos_sink.protocol.model import Decision, Entry, PlanToken

_DROP_S = 10.0


def give_up(
    register: DecisionRegister,
    token: PlanToken,
    entry: Entry,
    decision: Decision,
    lost: frozenset[int],
) -> EosSinkError:
    """The write's error. If nothing of it is visible, its decision is dropped, so that the write
    can be run again; otherwise the next write stops."""
    names, log = token.names, token.position.topic
    if not decision.is_invisible(lost):
        return lost_writes.this_write(names, log, decision, lost)
    try:
        current = replace(token, seq=entry.seq, position=entry.position)
        register.write(current, None, Deadline(_DROP_S))
    except EosSinkError as error:
        # Another session may find the loss too, and its user write the rows again.
        return lost_writes.this_write(names, log, decision, lost, error.message)
    return lost_writes.dropped(names, decision)
