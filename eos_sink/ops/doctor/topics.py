"""The topics that a query writes to, and those that Kafka keeps for its coordinators."""

from __future__ import annotations

from collections.abc import Mapping

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.copies import MIN_IN_SYNC, counted, judge_copies
from eos_sink.ops.doctor.facts import INTERNAL, TRANSACTIONS, Facts, Subject
from eos_sink.ops.doctor.finding import (
    Check,
    Finding,
    Findings,
    failure,
    ok,
    unseen,
    warning,
)
from eos_sink.ops.doctor.limits import hours

_IDS = "transactional.id.expiration.ms"
_IDS_DEFAULT_MS = 7 * 24 * 3600 * 1000
_PARTITIONS = 6
# How many copies an internal topic gets when it is made.
_COPIES_OF = {
    TRANSACTIONS: "transaction.state.log.replication.factor",
    "__consumer_offsets": "offsets.topic.replication.factor",
}


def judge_topics(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    if not facts.named:
        why = Unseen("name it with --topic, or the query with --query or --options")
        yield unseen(Check.TOPIC, "where the rows go", why, commands)
    for name in facts.named:
        topic = facts.topics[name]
        if topic is None:
            yield _missing(name, len(facts.brokers), commands)
        elif isinstance(topic, Unseen):
            yield unseen(Check.TOPIC, name, topic, commands)
        else:
            found = [
                *judge_copies(Check.TOPIC, topic, len(facts.brokers), commands),
                *_declared(subject, topic, commands),
                *_takes(subject, topic, commands),
            ]
            yield from found or [ok(Check.TOPIC, _described(topic))]
            yield from _readable(topic, facts, commands)


def judge_internal(facts: Facts, commands: Commands) -> Findings:
    brokers = len(facts.brokers)
    for name in INTERNAL:
        topic = facts.topics[name]
        if isinstance(topic, Unseen):
            yield unseen(Check.INTERNAL, name, topic, commands)
        elif topic is None:
            yield _to_be_made(name, brokers, facts)
        else:
            found = list(judge_copies(Check.INTERNAL, topic, brokers, commands))
            yield from found or [ok(Check.INTERNAL, _described(topic))]


def _to_be_made(name: str, brokers: int, facts: Facts) -> Finding:
    told = facts.setting(_COPIES_OF[name])
    wanted = 0 if isinstance(told, Unseen) else max(int(each.value) for each in told.values())
    if wanted > brokers:
        return failure(
            Check.INTERNAL,
            f"{name} is not there yet and wants {wanted} copies; there are {brokers} brokers",
            "It cannot be made, so no transaction can begin.",
            f"Start {wanted} brokers, or set {_COPIES_OF[name]}={brokers} in server.properties of "
            "each broker, and restart them in turn.",
        )
    return ok(Check.INTERNAL, f"{name} is not there yet; Kafka makes it when it is first needed")


def _missing(name: str, brokers: int, commands: Commands) -> Finding:
    copies = max(1, min(3, brokers))
    settings = {MIN_IN_SYNC: 2} if copies == 3 else {}
    return failure(
        Check.TOPIC,
        f"{name} does not exist",
        "The query is refused at its start; a row for it in column topic fails its batch.",
        commands.make_topic(name, _PARTITIONS, copies, settings),
    )


def _declared(subject: Subject, topic: TopicDescription, commands: Commands) -> Findings:
    ranges = subject.destinations.ranges.get(topic.name, ()) if subject.destinations else ()
    needed = max((part.stop for part in ranges), default=0)
    if needed > len(topic.partitions):
        yield failure(
            Check.TOPIC,
            f"{topic.name} has {len(topic.partitions)} partitions, and eos.destinations declares "
            f"partition {needed - 1}",
            "The query is refused at its start.",
            commands.widen_topic(topic.name, needed),
        )


def _takes(subject: Subject, topic: TopicDescription, commands: Commands) -> Findings:
    if isinstance(topic.settings, Unseen):
        return
    most = int(topic.settings.get("max.message.bytes", subject.largest))
    if most < subject.largest:
        yield warning(
            Check.TOPIC,
            f"{topic.name} has max.message.bytes={most}; the query's client sends up to "
            f"{subject.largest}",
            "A row, or a batch of rows, that is larger fails its batch, each time it is repeated.",
            commands.set_topic(topic.name, {"max.message.bytes": subject.largest}),
        )
    if subject.own_times and topic.settings.get("message.timestamp.type") == "LogAppendTime":
        yield warning(
            Check.TOPIC,
            f"{topic.name} has message.timestamp.type=LogAppendTime",
            "Records get the time of their writing, whatever eos.timestamp.column says.",
            commands.set_topic(topic.name, {"message.timestamp.type": "CreateTime"}),
        )


def _readable(topic: TopicDescription, facts: Facts, commands: Commands) -> Findings:
    """A record of a transaction is its witness: where a crash has left the outcome open, reading
    there tells it, for as long as a coordinator would know the id."""
    name, settings = topic.name, topic.settings
    if isinstance(settings, Unseen):
        yield unseen(Check.WITNESS, f"cleanup.policy and retention of {name}", settings, commands)
        return
    policy = settings.get("cleanup.policy", "delete")
    found: list[Finding] = []
    if "compact" in policy:
        found.append(
            warning(
                Check.WITNESS,
                f"{name} has cleanup.policy={policy}",
                "A record that is not there may have been compacted away, so where a crash leaves "
                "an outcome open a person is asked (docs/resolve.md).",
                "If the topic need not be compacted: "
                + commands.set_topic(name, {"cleanup.policy": "delete"}),
            )
        )
    if "delete" in policy:
        found += _kept(name, settings, _remembered_ms(facts), commands)
    yield from found or [ok(Check.WITNESS, f"{name} keeps its records for long enough")]


def _kept(
    name: str, settings: Mapping[str, str], needed_ms: int, commands: Commands
) -> list[Finding]:
    meaning = (
        "A query that was down for longer may find the record gone that would tell what a crash "
        "has left open, and a person is asked (docs/resolve.md)."
    )
    found = []
    kept_ms = int(settings.get("retention.ms", "-1"))
    if 0 <= kept_ms < needed_ms:
        what = f"{name} keeps records for {hours(kept_ms)}, coordinators ids for "
        found.append(
            warning(
                Check.WITNESS,
                what + f"{hours(needed_ms)} ({_IDS})",
                meaning,
                commands.set_topic(name, {"retention.ms": needed_ms}),
            )
        )
    if int(settings.get("retention.bytes", "-1")) >= 0:
        found.append(
            warning(
                Check.WITNESS,
                f"{name} has retention.bytes={settings['retention.bytes']}",
                meaning,
                commands.set_topic(name, {"retention.bytes": -1}),
            )
        )
    return found


def _remembered_ms(facts: Facts) -> int:
    told = facts.setting(_IDS)
    if isinstance(told, Unseen):
        return _IDS_DEFAULT_MS
    return max(int(each.value) for each in told.values())


def _described(topic: TopicDescription) -> str:
    needed = "" if isinstance(topic.settings, Unseen) else topic.settings.get(MIN_IN_SYNC, "")
    count = len(topic.partitions)
    return (
        f"{topic.name}: {count} partition{'' if count == 1 else 's'}, {counted(topic.replicas)}, "
        f"all in sync, {MIN_IN_SYNC}={needed or 'not seen'}"
    )
