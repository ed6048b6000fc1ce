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

# Another producer's open transaction may hide a witness until its timeout, but not the marker.
_PERSON_S = 10.0
_HIDDEN_S = 1.0, 5.0, inf
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
    """Add what the witnesses show, and the markers behind those that are unreadable, or that an
    open transaction of another producer hides.

    Args:
        patience_s: how long to wait for the hidden ones.
    """
    known, patience = tuple(known), deadline.within(patience_s)
    for wait in _HIDDEN_S:
        known = _ask_witnesses(kafka, known, patience.within(wait))
        known = _ask_markers(kafka, known, deadline.within(_MARKERS_S))
    return known


def _ask_witnesses(
    kafka: Kafka, known: tuple[Evidence, ...], deadline: Deadline
) -> tuple[Evidence, ...]:
    asked = {e.entry.witness: e.transaction for e in known if missing(e) is Source.WITNESS}
    seen = kafka.read_back().visibility(asked, deadline) if asked else {}
    return tuple(replace(e, witness=seen.get(e.entry.witness, e.witness)) for e in known)


def _ask_markers(
    kafka: Kafka, known: tuple[Evidence, ...], deadline: Deadline
) -> tuple[Evidence, ...]:
    sources = Source.WITNESS, Source.MARKER
    asked = {e.entry.witness: e.transaction for e in known if missing(e) in sources}
    told = kafka.read_back().markers(asked, deadline) if asked else {}
    return tuple(replace(e, marker=told.get(e.entry.witness, e.marker)) for e in known)
