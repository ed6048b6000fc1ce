"""Checks of the brokers and controllers: address, version, clock, and limits on time."""

from __future__ import annotations

from dataclasses import dataclass

from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster_facts import Clock, Unseen
from eos_sink.kafka.interfaces import TransactionStatus
from eos_sink.kafka_config.broker_versions import VERIFICATION, check_broker
from eos_sink.ops.doctor.facts import Facts, LogFacts
from eos_sink.ops.doctor.findings import Check, Finding, Findings
from eos_sink.protocol.rules import group_session_ms, vote_margin_ms

_FEATURES = ("metadata.version", "transaction.version", "group.version")
_MAX_TIMEOUT = "transaction.max.timeout.ms"
_MAX_SESSION = "group.max.session.timeout.ms"
ID_EXPIRATION = "transactional.id.expiration.ms"
_OWN_TIMEOUT = "eos.transaction.timeout.ms"
_DAY_MS = 24 * 3600 * 1000
# Clocks that NTP keeps agree within milliseconds.
_CLOCK_TOLERANCE_MS = 1_000


def check_brokers(facts: Facts) -> Findings:
    """A wrong `advertised.listeners`: the bootstrap works, and every later request times out."""
    for broker in facts.brokers:
        if broker.unreachable:
            yield Check.BROKERS.failure(
                f"broker {broker.id} cannot be reached at {broker.address}, which it advertises: "
                f"{broker.unreachable}",
                "Clients connect to that address, so its partitions and coordinators cannot be "
                "used from here, whatever the bootstrap server answers.",
                f"Make advertised.listeners of broker {broker.id} an address that driver and "
                "executors can resolve and reach, or open the way: "
                f"nc -vz {broker.address.replace(':', ' ')}",
            )
    if not any(broker.unreachable for broker in facts.brokers):
        count = len(facts.brokers)
        addresses = ", ".join(f"{broker.address} (node {broker.id})" for broker in facts.brokers)
        yield Check.BROKERS.ok(f"{count} broker{' answers' if count == 1 else 's answer'}: {addresses}")


def check_versions(facts: Facts) -> Findings:
    old: list[Finding] = []
    for broker in facts.brokers:
        if isinstance(broker.newest, Unseen):
            continue  # `check_brokers` reports that it cannot be reached.
        try:
            check_broker(f"{broker.id} ({broker.address})", broker.newest)
        except ClusterError as error:
            old.append(
                Check.VERSIONS.failure(
                    error.message.rstrip("."),
                    "The query is refused at its start.",
                    error.remedy.removesuffix(" Nothing was written."),
                )
            )
    if isinstance(facts.features, Unseen):
        features = f"features: {facts.features.why}"
    else:
        known = [f"{name} {facts.features[name]}" for name in _FEATURES if name in facts.features]
        features = ", ".join(known) or "no features"
    yield from old or [Check.VERSIONS.ok(f"all requests are known; {features}")]


def check_controller(facts: Facts) -> Findings:
    quorum = Check.CONTROLLER.require(facts.quorum, "the leader of the controllers")
    if quorum.leader < 0:
        yield Check.CONTROLLER.failure(
            "the controllers have no leader",
            "No topic can be created, and no partition gets a new leader when a broker fails.",
            f"kafka-metadata-quorum {facts.commands.connection} describe --status",
        )
    else:
        yield Check.CONTROLLER.ok(f"node {quorum.leader} leads the controllers")


def check_clock(facts: Facts) -> Findings:
    def differ(what: str) -> Finding:
        return Check.CLOCK.warning(
            what,
            "Commands, metrics and alerts on this machine show ages and remaining times that are "
            "wrong by as much. Batches are decided by the brokers' clocks alone.",
            "Synchronize both clocks (NTP); this shows the offset: chronyc tracking",
        )

    ahead_ms = open_in_future_ms(facts)
    if ahead_ms >= _CLOCK_TOLERANCE_MS:
        yield differ(
            f"a broker's clock is at least {ahead_ms / 1000:.1f} s ahead of this machine's: an "
            "open transaction started in the future"
        )
    what = "the difference between the cluster's clock and this one"
    clock = Check.CLOCK.require(facts.quorum, what).clock
    if clock is None:
        yield Check.CLOCK.unseen(what, Unseen("the controllers do not send their time"))
        return
    behind_ms = clock_difference_ms(clock)
    if abs(behind_ms) < _CLOCK_TOLERANCE_MS:
        within = (clock.after_ms - clock.before_ms) // 2 + _CLOCK_TOLERANCE_MS
        yield Check.CLOCK.ok(f"that of {clock.whose} is the same as here, within {within} ms")
    else:
        way = "behind" if behind_ms > 0 else "ahead of"
        yield differ(f"this machine is {abs(behind_ms) / 1000:.1f} s {way} {clock.whose}")


def clock_difference_ms(clock: Clock) -> int:
    """Return by how much the cluster is ahead of this machine, at least; 0 if maybe not at all."""
    if clock.theirs_ms > clock.after_ms:
        return clock.theirs_ms - clock.after_ms
    return min(0, clock.theirs_ms - clock.before_ms)


def open_in_future_ms(facts: Facts) -> int:
    """Return by how much a coordinator's clock is ahead, at least, going by open transactions."""
    if isinstance(facts.transactions, Unseen):
        return 0
    starts = [t.started_ms for t in facts.transactions if t.status is TransactionStatus.ONGOING]
    return max([0, *(start - facts.now_ms for start in starts)])


@dataclass(frozen=True)
class _Limit:
    """The lowest value of a broker setting: a client may meet any of the brokers."""

    value: int
    where: str
    restart: bool


def _lowest(check: Check, facts: Facts, name: str) -> _Limit:
    settings = check.require(facts.setting(name), f"the brokers' {name}")
    value = min(int(each.value) for each in settings.values())
    at = [address for address, each in settings.items() if int(each.value) == value]
    who = "the brokers have" if len(at) == len(settings) else f"{', '.join(at)} has"
    return _Limit(value, f"{who} {name}={value}", settings[at[0]].fixed)


def check_timeout(facts: Facts) -> Findings:
    wanted = facts.subject.transaction_timeout_ms
    limit = _lowest(Check.TIMEOUT, facts, _MAX_TIMEOUT)
    if limit.value < wanted:
        change = facts.commands.set_brokers({_MAX_TIMEOUT: wanted}, restart=limit.restart)
        yield Check.TIMEOUT.failure(
            f"{_OWN_TIMEOUT}={wanted}, and {limit.where}",
            "The query is refused at its start (INVALID_TRANSACTION_TIMEOUT).",
            f"Give the query {_OWN_TIMEOUT}={limit.value}, if its batches are shorter, or: {change}",
        )
    else:
        yield Check.TIMEOUT.ok(f"{_OWN_TIMEOUT}={wanted}; the brokers allow {limit.value}")


def check_batches(facts: Facts) -> Findings:
    """The age of the oldest transaction at the last vote is what the batch used of its time-out."""
    subject = facts.subject
    records = facts.log.records if isinstance(facts.log, LogFacts) else {}
    for query, written in sorted(records.items()):
        stats = written.record.stats
        if subject.shown not in (None, query) or stats.left_ms is None or not stats.timeout_ms:
            continue
        took_ms = stats.timeout_ms - stats.left_ms
        # Each query has a time-out of its own, unless the options of one are given.
        limit_ms = subject.transaction_timeout_ms if subject.query else stats.timeout_ms
        what = f"the last batch of {query} took {took_ms / 1000:.0f} s of {limit_ms / 1000:.0f} s"
        remedy = (
            "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger), or raise "
            f"{_OWN_TIMEOUT} and, on the brokers, {_MAX_TIMEOUT}."
        )
        if took_ms >= limit_ms - vote_margin_ms(limit_ms):
            meaning = "The vote gives such a batch up, each time."
            yield Check.TIMEOUT.failure(what, meaning, remedy)
        elif took_ms > limit_ms // 2:
            meaning = "The vote gives a batch up that takes twice as long."
            yield Check.TIMEOUT.warning(what, meaning, remedy)


def check_session(facts: Facts) -> Findings:
    """The driver asks for the longest session that the brokers allow, and stops if that is shorter
    than its transactions need."""
    own = facts.subject.transaction_timeout_ms
    wanted = group_session_ms(own)
    limit = _lowest(Check.SESSION, facts, _MAX_SESSION)
    if limit.value < wanted:
        change = facts.commands.set_brokers({_MAX_SESSION: wanted}, restart=limit.restart)
        shorter = own - (wanted - limit.value)
        yield Check.SESSION.failure(
            f"the driver needs {wanted} ms, a minute more than {_OWN_TIMEOUT}, and {limit.where}",
            "The driver cannot join its group: the brokers answer INVALID_SESSION_TIMEOUT, and the "
            "query is refused at its start.",
            f"Give the query {_OWN_TIMEOUT}={shorter}, if its batches are shorter, or: {change}"
            if shorter > 0
            else change,
        )
    else:
        yield Check.SESSION.ok(f"the driver needs {wanted} ms; the brokers allow {limit.value}")


def check_expiry(facts: Facts) -> Findings:
    limit = _lowest(Check.EXPIRY, facts, ID_EXPIRATION)
    if limit.value < _DAY_MS:
        yield Check.EXPIRY.warning(
            limit.where,
            "After a longer downtime the coordinator no longer knows the outcome of the query's "
            "last batch: the query reads it back from the topics, if they still have it.",
            facts.commands.set_brokers({ID_EXPIRATION: 7 * _DAY_MS}, restart=limit.restart),
        )
    else:
        kept = long_time(limit.value)
        yield Check.EXPIRY.ok(f"coordinators remember transactional ids for {kept}")


def check_verification(facts: Facts) -> Findings:
    what = f"the brokers' {VERIFICATION}"
    settings = Check.VERIFICATION.require(facts.setting(VERIFICATION), what)
    off = {address: each for address, each in settings.items() if each.value == "false"}
    if off:
        restart = any(each.fixed for each in off.values())
        yield Check.VERIFICATION.failure(
            f"{VERIFICATION}=false on {', '.join(off)}",
            "The query is refused at its start: a row that arrives after its transaction was "
            "aborted would block readers, or be committed by the next attempt (KIP-890).",
            facts.commands.set_brokers({VERIFICATION: "true"}, restart=restart),
        )
    else:
        yield Check.VERIFICATION.ok(f"{VERIFICATION}=true")


def long_time(ms: int) -> str:
    """Format hours or days."""
    hours = ms / 3_600_000
    return f"{hours:g} h" if hours < 48 else f"{hours / 24:g} days"
