"""Asks a cluster for all that is judged. One thing that cannot be seen does not hide the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from eos_sink.decision_log.codec import FORMAT
from eos_sink.errors import EosSinkError
from eos_sink.identity import QueryNames
from eos_sink.kafka.cluster_facts import MemberFacts, Survey, Unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionState
from eos_sink.kafka.observing import LogLine, LogPage
from eos_sink.kafka_config.acls import Acl, Permissions, Resource
from eos_sink.ops.doctor.facts import (
    INTERNAL,
    OFFSETS,
    TRANSACTIONS,
    Facts,
    LogFacts,
    Subject,
)
from eos_sink.ops.history import read_records

T = TypeVar("T")

# Of each question, so that one that is not answered leaves time for the others.
_ANSWER_S = 10.0
_SOME_TOPICS, _SOME_GROUPS = 50, 200
_NOT_YET = Unseen("there is none before the first transaction")


def gather(survey: Survey, subject: Subject, deadline: Deadline) -> Facts:
    """Look at everything once.

    Raises:
        ClusterError: no broker answers, or the login is refused.
    """
    brokers = survey.brokers(deadline)

    def soon() -> Deadline:
        return deadline.within(_ANSWER_S)

    half = deadline.within(max(_ANSWER_S, deadline.left / 2))
    log = _seen(
        lambda: read_log(survey.log_lines({}, half)),
        Permissions(subject.prefix, subject.log).log_read,
    )
    named = subject.topics or _decided_topics(log, subject.shown)
    everything = [*named, *INTERNAL, subject.log]
    topics = _seen(lambda: survey.topics(everything, soon()))
    known = dict.fromkeys(everything, topics) if isinstance(topics, Unseen) else dict(topics)
    refusal: str | Unseen = ""
    if known[subject.log] is None:
        copies = max(1, min(subject.log_copies, len(brokers)))
        refusal = _seen(lambda: survey.refusal_to_make(subject.log, copies, soon()))
    members: dict[str, Sequence[MemberFacts] | Unseen] = {}
    if known[OFFSETS] is not None:
        # To look for a group would make the topic.
        for group in _groups(log, subject):
            members[group] = _seen(partial(survey.group_members, group, soon()))
    transactions: Sequence[TransactionState] | Unseen = _NOT_YET
    if known[TRANSACTIONS] is not None:
        needed = Acl("Describe", Resource.TRANSACTIONAL_ID, subject.start, prefixed=True)
        transactions = _seen(lambda: survey.transactions(subject.start, soon(), ended=True), needed)
    now_ms = int(time.time() * 1000)
    return Facts(
        brokers=brokers,
        features=_seen(lambda: survey.features(soon())),
        quorum=_seen(lambda: survey.quorum(soon())),
        topics=known,
        named=named,
        may_write=_seen(lambda: survey.may_write(subject.probe, soon())),
        may_join=_seen(lambda: survey.may_join(subject.probe, soon())),
        log=log,
        refusal=refusal,
        groups=_seen(lambda: survey.groups(subject.prefix, soon())),
        members=members,
        transactions=transactions,
        now_ms=now_ms,
    )


def read_log(page: LogPage | None) -> LogFacts | None:
    """What the lines of the log say; None: there is no log."""
    if page is None:
        return None
    records, unreadable = read_records(page.lines)
    latest = {written.query: written for written in records}
    hidden = {
        each.key: each
        for each in unreadable
        if (written := latest.get(QueryNames.of_record(each.key, "").shown)) is None
        or each.position.offset > written.position.offset
    }
    formats = {line.key: _newer_format(line) for line in page.lines if line.key in hidden}
    newer = {key: found for key, found in formats.items() if found}
    return LogFacts(len(page.lines), latest, hidden, newer)


def _newer_format(line: LogLine) -> int:
    with suppress(ValueError, TypeError, KeyError):
        stated = json.loads(line.value)["format"]
        if isinstance(stated, int) and stated > FORMAT:
            return stated
    return 0


def _decided_topics(log: LogFacts | Unseen | None, query: str | None) -> tuple[str, ...]:
    if not isinstance(log, LogFacts):
        return ()
    found = (w.record.decision for name, w in log.records.items() if query in (None, name))
    topics = {topic for decision in found if decision for topic in decision.topics}
    return tuple(sorted(topics)[:_SOME_TOPICS])


def _groups(log: LogFacts | Unseen | None, subject: Subject) -> list[str]:
    if subject.query:
        return [subject.start]
    known = log.names(subject.prefix) if isinstance(log, LogFacts) else {}
    return sorted(names.group for names in known.values())[:_SOME_GROUPS]


def _seen(ask: Callable[[], T], needed: Acl | None = None) -> T | Unseen:
    """The answer, or why there is none; `needed` is what the question has to be permitted."""
    try:
        return ask()
    except EosSinkError as error:
        if "missing" in error.data and needed is not None:
            return Unseen(f"this principal lacks {needed}", (needed,))
        return Unseen(error.message.rstrip("."))
