"""Brokers, controllers and their clock."""

from __future__ import annotations

from collections.abc import Sequence

from eos_sink.errors import ClusterError
from eos_sink.kafka.admin_interface import Broker, Clock
from eos_sink.kafka.interfaces import TransactionStatus, Unseen
from eos_sink.kafka_config.broker_versions import check_broker
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.facts import Facts
from eos_sink.ops.doctor.finding import Check, Findings, failure, ok, unseen, warning

_FEATURES = ("metadata.version", "transaction.version", "group.version")
# A clock that is set over the network is right to some milliseconds.
_APART_MS = 1_000
_MEANING = (
    "Ages and times left, as commands, metrics and alerts on this machine tell them, are off by as "
    "much. Batches are decided by the brokers' clocks alone."
)
_REMEDY = "Set both clocks over the network; this shows how far one is off: chronyc tracking"


def judge_brokers(brokers: Sequence[Broker]) -> Findings:
    """An address that brokers advertise and that leads nowhere from here is a classic: the
    bootstrap works, and all that follows waits."""
    for broker in brokers:
        if broker.unreachable:
            yield failure(
                Check.BROKERS,
                f"broker {broker.id} cannot be reached at {broker.address}, which it advertises: "
                f"{broker.unreachable}",
                "Clients are sent to that address, so its partitions and coordinators cannot be "
                "used from here, whatever the bootstrap server answers.",
                f"Make advertised.listeners of broker {broker.id} an address that driver and "
                "executors can resolve and reach, or open the way: "
                f"nc -vz {broker.address.replace(':', ' ')}",
            )
    reached = [
        f"{broker.address} (node {broker.id})" for broker in brokers if not broker.unreachable
    ]
    if len(reached) == len(brokers):
        noun = "broker answers" if len(reached) == 1 else "brokers answer"
        yield ok(Check.BROKERS, f"{len(reached)} {noun}: {', '.join(reached)}")


def judge_versions(facts: Facts) -> Findings:
    old = False
    for broker in facts.brokers:
        if isinstance(broker.newest, Unseen):
            continue  # It was told that it cannot be reached.
        try:
            check_broker(f"{broker.id} ({broker.address})", broker.newest)
        except ClusterError as error:
            old = True
            yield failure(
                Check.VERSIONS,
                error.message.rstrip("."),
                "The query is refused at its start.",
                error.remedy.removesuffix(" Nothing was written."),
            )
    if not old:
        features = facts.features
        if isinstance(features, Unseen):
            yield ok(Check.VERSIONS, f"all requests are known; features: {features.why}")
        else:
            told = ", ".join(f"{name} {features[name]}" for name in _FEATURES if name in features)
            yield ok(Check.VERSIONS, f"all requests are known; {told or 'no features'}")


def judge_controller(facts: Facts, commands: Commands) -> Findings:
    quorum = facts.quorum
    if isinstance(quorum, Unseen):
        yield unseen(Check.CONTROLLER, "who leads the controllers", quorum, commands)
    elif quorum.leader < 0:
        yield failure(
            Check.CONTROLLER,
            "the controllers have no leader",
            "No topic can be made and no partition finds a new leader when a broker fails.",
            f"kafka-metadata-quorum {commands.connection} describe --status",
        )
    else:
        yield ok(Check.CONTROLLER, f"node {quorum.leader} leads the controllers")


def judge_clock(facts: Facts, commands: Commands) -> Findings:
    ahead_ms = open_in_future(facts)
    if ahead_ms >= _APART_MS:
        yield warning(
            Check.CLOCK,
            f"a broker's clock is at least {ahead_ms / 1000:.1f} s ahead of this machine's: by it, "
            "a transaction that is open has yet to begin",
            _MEANING,
            _REMEDY,
        )
    clock = None if isinstance(facts.quorum, Unseen) else facts.quorum.clock
    if clock is None:
        why = facts.quorum if isinstance(facts.quorum, Unseen) else Unseen("no clock is told")
        yield unseen(Check.CLOCK, "how far the cluster's clock is from this one", why, commands)
        return
    behind = apart(clock)
    if abs(behind) < _APART_MS:
        unsure = (clock.after_ms - clock.before_ms) // 2
        yield ok(
            Check.CLOCK,
            f"that of {clock.whose} is the same as here, within {unsure + _APART_MS} ms",
        )
        return
    way = "behind" if behind > 0 else "ahead of"
    yield warning(
        Check.CLOCK,
        f"this machine is {abs(behind) / 1000:.1f} s {way} {clock.whose}",
        _MEANING,
        _REMEDY,
    )


def apart(clock: Clock) -> int:
    """By how many ms the cluster is ahead of this machine, at least; 0 if it may be the same."""
    if clock.theirs_ms > clock.after_ms:
        return clock.theirs_ms - clock.after_ms
    return min(0, clock.theirs_ms - clock.before_ms)


def open_in_future(facts: Facts) -> int:
    """By how many ms a coordinator's clock is ahead, at least, as its open transactions tell."""
    if isinstance(facts.transactions, Unseen):
        return 0
    started = [t.started_ms for t in facts.transactions if t.status is TransactionStatus.ONGOING]
    return max([0, *(start - facts.now_ms for start in started)])
