"""Checks of the decision log: its topic, and its records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka.log_topic import LOG_CONFIGURATION, LOG_PARTITIONS, home_of
from eos_sink.ops.doctor.facts import Facts, LogFacts
from eos_sink.ops.doctor.findings import Finding, Level, Problems, Verdict, require
from eos_sink.ops.doctor.topics import MIN_IN_SYNC, check_copies, count_copies, wrong_setting
from eos_sink.protocol.values import Position

_BYTES_PER_TASK = 100


_SETTINGS: tuple[tuple[str, Callable[[str, str], bool], Level, str], ...] = (
    (
        "cleanup.policy",
        lambda has, wanted: has != wanted,
        Level.FAILURE,
        "Decisions would be deleted after a time: the query is refused at its start. If it has "
        "anything else, name another topic as the log: compaction would delete its rows.",
    ),
    (
        "max.message.bytes",
        lambda has, wanted: int(has) < int(wanted),
        Level.WARNING,
        f"A decision takes some {_BYTES_PER_TASK} bytes per task, so a batch of more than about "
        "{tasks:,} tasks cannot be decided.",
    ),
    (
        "segment.bytes",
        lambda has, wanted: int(has) > int(wanted),
        Level.WARNING,
        "Replaced records stay until a segment is full, and each start reads them.",
    ),
    (
        "message.timestamp.type",
        lambda has, wanted: has != wanted,
        Level.WARNING,
        "A driver whose clock is more than an hour ahead cannot decide a batch on Kafka 4.",
    ),
)


def check_log(facts: Facts) -> Verdict:
    topic = require(facts.topics[facts.subject.log], facts.subject.log)
    if topic is None:
        return (yield from _check_creation(facts))
    yield from _check_partitions(topic, facts)
    yield from check_copies(topic, facts)
    settings = {} if isinstance(topic.settings, Unseen) else topic.settings
    for name, wrong, level, meaning in _SETTINGS:
        if name in settings and wrong(settings[name], LOG_CONFIGURATION[name]):
            most = int(settings.get("max.message.bytes", 0)) // _BYTES_PER_TASK
            told = meaning.format(tasks=most)
            found = wrong_setting(facts, topic, name, LOG_CONFIGURATION[name], told)
            yield replace(found, level=level)
    return (
        f"{topic.name}: {len(topic.partitions)} partitions, compacted, "
        f"{count_copies(topic.replicas)}, all in sync"
    )


def _check_creation(facts: Facts) -> Verdict:
    name, log_copies = facts.subject.log, facts.subject.cluster.log_replication
    refusal = require(facts.refusal, f"whether {name} can be created")
    copies = max(1, min(log_copies, len(facts.brokers)))
    if refusal:
        settings = {**LOG_CONFIGURATION, **({MIN_IN_SYNC: 2} if copies > 2 else {})}
        yield Finding.failure(
            f"{name} is not there, and cannot be created: {refusal.rstrip('.')}",
            "The query is refused at its start.",
            facts.commands.create_topic(name, LOG_PARTITIONS, copies, settings),
        )
    # Kafka may give copies to brokers that are down.
    least = "at least " if copies < log_copies else ""
    return (
        f"{name} is not there yet; the first start creates it with {LOG_PARTITIONS} "
        f"partitions and {least}{count_copies(copies)}"
    )


def _check_partitions(topic: TopicDescription, facts: Facts) -> Problems:
    count = len(topic.partitions)
    if count >= LOG_PARTITIONS:
        return
    remedy = "Name another topic with eos.log.topic (here: --log-topic); the sink creates it."
    if isinstance(facts.log, LogFacts) and not facts.log.count:
        # An empty log has no record that would be in the wrong partition.
        remedy = facts.commands.add_partitions(topic.name, LOG_PARTITIONS)
    yield Finding.failure(
        f"{topic.name} has {count} partition{'' if count == 1 else 's'} instead of "
        f"{LOG_PARTITIONS}",
        "Decisions would be looked for in the wrong partition: the query is refused at its start.",
        remedy,
    )


def check_log_records(facts: Facts) -> Verdict:
    if facts.log is None:
        return ""  # `check_log` reports that it is missing.
    log = require(facts.log, "the records of the decision log")
    yield from _check_unreadable(log)
    yield from _check_misplaced(log)
    for partition, why in sorted(log.unread.items()):
        yield Finding.unseen(f"the records of partition {partition}", Unseen(why))
    return f"{len(log.records)} quer{'y' if len(log.records) == 1 else 'ies'}, all readable"


def _check_unreadable(log: LogFacts) -> Problems:
    revoke = "Revoke Write on the topic from every principal that runs no query"
    for query, record in sorted(log.hidden.items()):
        where = _format_position(record.position)
        if record.newer:
            yield Finding.failure(
                f"the record of {query} ({where}) has format {record.newer}",
                "A newer version of the sink wrote it: this version stops the query, and this "
                "command cannot check it.",
                "pip install --upgrade eos-sink",
            )
        else:
            yield Finding.failure(
                f"the record of {query} ({where}) is none of the sink's",
                "Another program writes to the decision log under that query's name: the query "
                "stops, and an operator has to find out what was decided (docs/resolve.md).",
                f"{revoke}; then restore the query's last record.",
            )
    for key, record in sorted(log.foreign.items()):
        yield Finding.warning(
            f"the record under key {key!r} ({_format_position(record.position)}) is none of the "
            "sink's",
            "No query reads it, but a program that writes there can mislead every query.",
            f"{revoke} (kafka-acls --remove).",
        )


def _check_misplaced(log: LogFacts) -> Problems:
    for key, written in sorted(log.records.items()):
        home = home_of(QueryNames.of_record(key, written.record.prefix).query)
        if written.position.partition != home:
            yield Finding.warning(
                f"the record of {key} is in {_format_position(written.position)} instead of "
                f"partition {home}",
                "It was copied there (a mirrored or restored topic), so the query does not see it.",
                "Restore the topic partition by partition, before you start the query.",
            )


def _format_position(position: Position) -> str:
    return f"partition {position.partition}, offset {position.offset}"
