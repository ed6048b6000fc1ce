"""Checks of the decision log: its topic, and its records."""

from __future__ import annotations

from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import LogPosition, TopicDescription, Unseen
from eos_sink.kafka.log_topic import LOG_CONFIGURATION, LOG_PARTITIONS, home_of
from eos_sink.ops.doctor.facts import Facts, LogFacts
from eos_sink.ops.doctor.findings import Check, Finding, Findings
from eos_sink.ops.doctor.topics import MIN_IN_SYNC, check_copies, count_copies, fix_setting

_BYTES_PER_TASK = 100


def check_log(facts: Facts) -> Findings:
    topic = Check.LOG.require(facts.topics[facts.subject.log], facts.subject.log)
    if topic is None:
        yield _check_creation(facts)
        return
    found = [
        *_check_partitions(topic, facts),
        *check_copies(Check.LOG, topic, facts),
        *_check_settings(topic, facts),
    ]
    what = (
        f"{topic.name}: {len(topic.partitions)} partitions, compacted, "
        f"{count_copies(topic.replicas)}, all in sync"
    )
    yield from found or [Check.LOG.ok(what)]


def _check_creation(facts: Facts) -> Finding:
    name, log_copies = facts.subject.log, facts.subject.options.log_replication
    refusal = Check.LOG.require(facts.refusal, f"whether {name} can be created")
    copies = max(1, min(log_copies, len(facts.brokers)))
    if not refusal:
        return Check.LOG.ok(
            f"{name} is not there yet; the first start creates it with {LOG_PARTITIONS} "
            f"partitions and {count_copies(copies)}"
        )
    settings = {**LOG_CONFIGURATION, **({MIN_IN_SYNC: 2} if copies > 2 else {})}
    return Check.LOG.failure(
        f"{name} is not there, and cannot be created: {refusal.rstrip('.')}",
        "The query is refused at its start.",
        facts.commands.create_topic(name, LOG_PARTITIONS, copies, settings),
    )


def _check_partitions(topic: TopicDescription, facts: Facts) -> Findings:
    count = len(topic.partitions)
    if count == LOG_PARTITIONS:
        return
    remedy = "Name another topic with eos.log.topic (here: --log-topic); the sink creates it."
    if count < LOG_PARTITIONS and isinstance(facts.log, LogFacts) and not facts.log.count:
        # An empty log has no record that would be in the wrong partition.
        remedy = facts.commands.add_partitions(topic.name, LOG_PARTITIONS)
    yield Check.LOG.failure(
        f"{topic.name} has {count} partition{'' if count == 1 else 's'} instead of "
        f"{LOG_PARTITIONS}",
        "Decisions would be looked for in the wrong partition: the query is refused at its start.",
        remedy,
    )


def _check_settings(topic: TopicDescription, facts: Facts) -> Findings:
    if isinstance(topic.settings, Unseen):
        return
    commands, settings = facts.commands, {**LOG_CONFIGURATION, **topic.settings}
    name, wanted = "cleanup.policy", LOG_CONFIGURATION["cleanup.policy"]
    if settings[name] != wanted:
        meaning = (
            "Decisions would be deleted after a time: the query is refused at its start. If it has "
            "anything else, name another topic as the log: compaction would delete its rows."
        )
        yield Check.LOG.failure(*fix_setting(topic, name, wanted, meaning, commands))
    name, wanted = "max.message.bytes", LOG_CONFIGURATION["max.message.bytes"]
    if int(settings[name]) < int(wanted):
        meaning = (
            f"A decision takes some {_BYTES_PER_TASK} bytes per task, so a batch of more than "
            f"about {int(settings[name]) // _BYTES_PER_TASK:,} tasks cannot be decided."
        )
        yield Check.LOG.warning(*fix_setting(topic, name, wanted, meaning, commands))
    name, wanted = "segment.bytes", LOG_CONFIGURATION["segment.bytes"]
    if int(settings[name]) > int(wanted):
        meaning = "Replaced records stay until a segment is full, and each start reads them."
        yield Check.LOG.warning(*fix_setting(topic, name, wanted, meaning, commands))


def check_log_records(facts: Facts) -> Findings:
    if facts.log is None:
        return  # `check_log` reports that it is missing.
    log = Check.RECORDS.require(facts.log, "the records of the decision log")
    found = [*_check_unreadable(log), *_check_misplaced(log)]
    count = len(log.records)
    what = f"{count} quer{'y' if count == 1 else 'ies'}, all readable"
    yield from found or [Check.RECORDS.ok(what)]


def _check_unreadable(log: LogFacts) -> Findings:
    revoke = "Revoke Write on the topic from every principal that runs no query"
    for key, record in sorted(log.unreadable.items()):
        where = _format_position(record.position)
        if key in log.newer:
            yield Check.RECORDS.failure(
                f"the record of {key} ({where}) has format {log.newer[key]}",
                "A newer version of the sink wrote it: this version stops the query, and this "
                "command cannot check it.",
                "pip install --upgrade eos-sink",
            )
        elif QueryNames.of_shown(key):
            yield Check.RECORDS.failure(
                f"the record of {key} ({where}) is none of the sink's",
                "Another program writes to the decision log under that query's name: the query "
                "stops, and an operator has to find out what was decided (docs/resolve.md).",
                f"{revoke}; then start the query, whose error names the command that helps.",
            )
        else:
            yield Check.RECORDS.warning(
                f"the record under key {key!r} ({where}) is none of the sink's",
                "No query reads it, but a program that writes there can mislead every query.",
                f"{revoke} (kafka-acls --remove).",
            )


def _check_misplaced(log: LogFacts) -> Findings:
    for key, written in sorted(log.records.items()):
        home = home_of(QueryNames.of_record(key, written.record.prefix).query)
        if written.position.partition != home:
            yield Check.RECORDS.warning(
                f"the record of {key} is in {_format_position(written.position)} instead of "
                f"partition {home}",
                "It was copied there (a mirrored or restored topic), so the query does not see it.",
                "Start the query with a new log (eos.log.topic), or restore the topic partition "
                "by partition.",
            )


def _format_position(position: LogPosition) -> str:
    return f"partition {position.partition}, offset {position.offset}"


CHECKS = (check_log, check_log_records)
