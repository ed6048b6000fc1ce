"""The decision log: as the sink makes it, with records that can be read."""

from __future__ import annotations

from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import LogPosition, TopicDescription, Unseen
from eos_sink.kafka.log_topic import LOG_CONFIGURATION, LOG_PARTITIONS, home_of
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.copies import MIN_IN_SYNC, counted, judge_copies
from eos_sink.ops.doctor.facts import Facts, LogFacts, Subject
from eos_sink.ops.doctor.finding import (
    Check,
    Finding,
    Findings,
    failure,
    ok,
    unseen,
    warning,
)

_POLICY, _LARGEST, _SEGMENT = "cleanup.policy", "max.message.bytes", "segment.bytes"
_BYTES_A_TASK = 100


def judge_log(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    name, topic = subject.log, facts.topics[subject.log]
    if topic is None:
        yield _to_be_made(subject, facts, commands)
        return
    if isinstance(topic, Unseen):
        yield unseen(Check.LOG, name, topic, commands)
        return
    found = [
        *_shape(topic, facts, commands),
        *judge_copies(Check.LOG, topic, len(facts.brokers), commands),
        *_settings(topic, commands),
    ]
    copies = counted(topic.replicas)
    described = f"{name}: {len(topic.partitions)} partitions, compacted, {copies}, all in sync"
    yield from found or [ok(Check.LOG, described)]


def _to_be_made(subject: Subject, facts: Facts, commands: Commands) -> Finding:
    name, brokers = subject.log, len(facts.brokers)
    copies = max(1, min(subject.log_copies, brokers))
    if isinstance(facts.refusal, Unseen):
        return unseen(Check.LOG, f"whether {name} can be made", facts.refusal, commands)
    if not facts.refusal:
        return ok(
            Check.LOG,
            f"{name} is not there yet; the first start makes it with {LOG_PARTITIONS} partitions "
            f"and {counted(copies)}",
        )
    in_sync = {MIN_IN_SYNC: 2} if copies > 2 else {}
    return failure(
        Check.LOG,
        f"{name} is not there, and cannot be made: {facts.refusal.rstrip('.')}",
        "The query is refused at its start.",
        commands.make_topic(name, LOG_PARTITIONS, copies, {**LOG_CONFIGURATION, **in_sync}),
    )


def _shape(topic: TopicDescription, facts: Facts, commands: Commands) -> Findings:
    count = len(topic.partitions)
    if count == LOG_PARTITIONS:
        return
    empty = isinstance(facts.log, LogFacts) and not facts.log.count
    if empty and count < LOG_PARTITIONS:
        # Nothing is in a wrong place yet.
        remedy = commands.widen_topic(topic.name, LOG_PARTITIONS)
    else:
        remedy = "Name another topic with eos.log.topic (here: --log-topic); the sink makes it."
    yield failure(
        Check.LOG,
        f"{topic.name} has {count} partition{'' if count == 1 else 's'} instead of "
        f"{LOG_PARTITIONS}",
        "Decisions would be looked for in the wrong place: the query is refused at its start.",
        remedy,
    )


def _settings(topic: TopicDescription, commands: Commands) -> Findings:
    if isinstance(topic.settings, Unseen):
        return
    name, settings = topic.name, topic.settings
    policy = settings.get(_POLICY, LOG_CONFIGURATION[_POLICY])
    if policy != LOG_CONFIGURATION[_POLICY]:
        yield failure(
            Check.LOG,
            f"{name} has {_POLICY}={policy}",
            "Decisions would be deleted with time: the query is refused at its start.",
            commands.set_topic(name, {_POLICY: LOG_CONFIGURATION[_POLICY]}),
        )
    wanted = int(LOG_CONFIGURATION[_LARGEST])
    largest = int(settings.get(_LARGEST, wanted))
    if largest < wanted:
        yield warning(
            Check.LOG,
            f"{name} has {_LARGEST}={largest} instead of {wanted}",
            f"A decision takes some {_BYTES_A_TASK} bytes a task, so a batch of more than about "
            f"{largest // _BYTES_A_TASK:,} tasks cannot be decided.",
            commands.set_topic(name, {_LARGEST: wanted}),
        )
    wanted = int(LOG_CONFIGURATION[_SEGMENT])
    segment = int(settings.get(_SEGMENT, wanted))
    if segment > wanted:
        yield warning(
            Check.LOG,
            f"{name} has {_SEGMENT}={segment} instead of {wanted}",
            "Records that were replaced stay until a segment is full, and each start reads them.",
            commands.set_topic(name, {_SEGMENT: wanted}),
        )


def judge_records(facts: Facts, commands: Commands) -> Findings:
    log = facts.log
    if log is None:
        return  # That it is not there was told.
    if isinstance(log, Unseen):
        yield unseen(Check.RECORDS, "what the decision log says", log, commands)
        return
    found = [*_unreadable(log), *_misplaced(log)]
    count = len(log.records)
    fine = f"{count} quer{'y' if count == 1 else 'ies'}, all readable"
    yield from found or [ok(Check.RECORDS, fine)]


def _unreadable(log: LogFacts) -> Findings:
    for key, record in sorted(log.unreadable.items()):
        where = _place(record.position)
        if key in log.newer:
            yield failure(
                Check.RECORDS,
                f"the record of {key} ({where}) has format {log.newer[key]}",
                "A newer version of the sink wrote it: an older one stops that query, and this "
                "command says nothing about it.",
                "pip install --upgrade eos-sink",
            )
        elif QueryNames.of_shown(key):
            yield failure(
                Check.RECORDS,
                f"the record of {key} ({where}) is none of the sink's",
                "Something else writes to the decision log under that query's name: the query "
                "stops, and a person has to find out what was decided (docs/resolve.md).",
                "Take Write on the topic from whoever is no query; then start the query again, "
                "which names the command that helps.",
            )
        else:
            yield warning(
                Check.RECORDS,
                f"the record under key {key!r} ({where}) is none of the sink's",
                "No query reads it, but whoever writes there can mislead every query.",
                "Take Write on the topic from whoever is no query (kafka-acls --remove).",
            )


def _misplaced(log: LogFacts) -> Findings:
    """Of queries, since where foreign records lie is nobody's business."""
    for key, written in sorted(log.records.items()):
        home = home_of(QueryNames.of_record(key, written.record.prefix).query)
        if written.position.partition == home:
            continue
        yield warning(
            Check.RECORDS,
            f"the record of {key} lies in {_place(written.position)}, and is looked for in "
            f"partition {home}",
            "It was copied there (a mirrored or restored topic), so the query does not see it.",
            "Let the query start on a log of its own (eos.log.topic), or restore the topic "
            "partition by partition.",
        )


def _place(position: LogPosition) -> str:
    return f"partition {position.partition}, offset {position.offset}"
