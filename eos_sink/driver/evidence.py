"""Gather evidence about decided transactions: coordinators, then witnesses, then markers.

The sink and the operator commands ask the same questions in the same order. Read only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.outcome import Evidence, Source, is_proven, missing
from eos_sink.protocol.values import Visibility

# Another producer's open transaction may hide a witness until its timeout.
_PERSON_S = 10.0
# A transaction's marker is behind all its rows of the partition, which may be many.
_MARKERS_S = 20.0


def ask_all(kafka: Kafka, known: Iterable[Evidence], deadline: Deadline) -> tuple[Evidence, ...]:
    """All evidence that can be had in the time that a person waits."""
    known = ask_coordinators(kafka, known, deadline)
    known = ask_topic_ids(kafka, known, deadline)
    return ask_topics(kafka, known, deadline, patience_s=_PERSON_S)


def ask_coordinators(
    kafka: Kafka, known: Iterable[Evidence], deadline: Deadline
) -> tuple[Evidence, ...]:
    """Add the coordinators' states where they are missing."""
    known = tuple(known)
    wanted = [e.transaction.transactional_id for e in known if missing(e) is Source.COORDINATOR]
    states = kafka.control().describe(wanted, deadline) if wanted else {}
    return tuple(
        replace(each, state=states[each.transaction.transactional_id])
        if missing(each) is Source.COORDINATOR
        else each
        for each in known
    )


def ask_topic_ids(
    kafka: Kafka, known: Iterable[Evidence], deadline: Deadline
) -> tuple[Evidence, ...]:
    """Note which witnesses were in a topic that was deleted and made again: nothing of what their
    transactions have written there is in the topic of that name."""
    known = tuple(known)
    topics = {each.entry.witness.topic for each in known if each.topic_id and not is_proven(each)}
    ids = kafka.topic_ids(topics, deadline) if topics else {}
    return tuple(
        replace(each, made_again=True, witness=Visibility.UNREADABLE)
        if ids.get(each.entry.witness.topic, each.topic_id) != each.topic_id
        else each
        for each in known
    )


def ask_topics(
    kafka: Kafka, known: Iterable[Evidence], deadline: Deadline, *, patience_s: float = inf
) -> tuple[Evidence, ...]:
    """Add what the witnesses show, and the markers behind unreadable ones.

    Args:
        patience_s: how long to wait for witnesses that an open transaction hides.
    """
    known = tuple(known)
    witnesses = {e.entry.witness: e.transaction for e in known if missing(e) is Source.WITNESS}
    if witnesses:
        seen = kafka.visibility(witnesses, deadline.within(patience_s))
        known = tuple(replace(e, witness=seen.get(e.entry.witness, e.witness)) for e in known)
    unreadable = {e.entry.witness: e.transaction for e in known if missing(e) is Source.MARKER}
    if unreadable:
        markers = kafka.markers(unreadable, deadline.within(_MARKERS_S))
        known = tuple(replace(e, marker=markers.get(e.entry.witness, e.marker)) for e in known)
    return known
