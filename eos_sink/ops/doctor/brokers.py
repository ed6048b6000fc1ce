"""Checks of the brokers and controllers: address, version, clock, and limits on time."""

from __future__ import annotations

from eos_sink.errors import ClusterError
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.broker_versions import VERIFICATION, check_broker
from eos_sink.ops.doctor.facts import Facts
from eos_sink.ops.doctor.findings import Finding, Problems, Verdict, require
from eos_sink.protocol.rules import group_session_ms, vote_margin_ms
from eos_sink.protocol.values import RECORDED_MS, TransactionStatus

_FEATURES = ("metadata.version", "transaction.version", "group.version")
_MAX_TIMEOUT = "transaction.max.timeout.ms"
_MAX_SESSION = "group.max.session.timeout.ms"
ID_EXPIRATION = "transactional.id.expiration.ms"
_OWN_TIMEOUT = "eos.transaction.timeout.ms"
_DAY_MS = 24 * 3600 * 1000
# Clocks that NTP keeps agree within milliseconds.
_CLOCK_TOLERANCE_MS = 1_000


def check_brokers(facts: Facts) -> Verdict:
    """A wrong `advertised.listeners`: the bootstrap works, and every later request times out."""
    for broker in facts.brokers:
        if broker.unreachable:
            yield Finding.failure(
                f"broker {broker.id} cannot be reached at {broker.address}, which it advertises: "
                f"{broker.unreachable}",
                "Clients connect to that address, so its partitions and coordinators cannot be "
                "used from here, even though the bootstrap server answers.",
                f"Make advertised.listeners of broker {broker.id} an address that driver and "
                "executors can resolve and reach, or open the way: "
                f"nc -vz {broker.address.replace(':', ' ')}",
            )
    count = len(facts.brokers)
    addresses = ", ".join(f"{broker.address} (node {broker.id})" for broker in facts.brokers)
    return f"{count} broker{' answers' if count == 1 else 's answer'}: {addresses}"


def check_versions(facts: Facts) -> Verdict:
    for broker in facts.brokers:
        if isinstance(broker.newest, Unseen):
            continue  # `check_brokers` reports that it cannot be reached.
        try:
            check_broker(f"{broker.id} ({broker.address})", broker.newest)
        except ClusterError as error:
            what, remedy = error.message.rstrip("."), error.remedy
            refused = "The query is refused at its start."
            yield Finding.failure(what, refused, remedy.removesuffix(" Nothing was written."))
    if isinstance(facts.features, Unseen):
        return f"all requests are known; features: {facts.features.why}"
    known = [f"{name} {facts.features[name]}" for name in _FEATURES if name in facts.features]
    return f"all requests are known; {', '.join(known) or 'no features'}"


def check_controller(facts: Facts) -> Verdict:
    quorum = require(facts.quorum, "the leader of the controllers")
    if quorum.leader < 0:
        yield Finding.failure(
            "the controllers have no leader",
            "No topic can be created, and no partition gets a new leader when a broker fails.",
            f"kafka-metadata-quorum {facts.commands.connection} describe --status",
        )
    return f"node {quorum.leader} leads the controllers"


def check_clock(facts: Facts) -> Verdict:
    consequence_and_remedy = (
        "Commands, metrics and alerts on this machine show ages and remaining times that are "
        "wrong by as much. Batches are decided by the brokers' clocks alone.",
        "Synchronize both clocks (NTP); this shows the offset: chronyc tracking",
    )
    open_ = [] if isinstance(facts.transactions, Unseen) else facts.transactions
    starts = [each.started_ms for each in open_ if each.status is TransactionStatus.ONGOING]
    ahead_ms = max(starts, default=facts.now_ms) - facts.now_ms
    if ahead_ms >= _CLOCK_TOLERANCE_MS:
        yield Finding.warning(
            f"a broker's clock is at least {ahead_ms / 1000:.1f} s ahead of this machine's: an "
            "open transaction started in the future",
            *consequence_and_remedy,
        )
    what = "the difference between the cluster's clock and this one"
    clock = require(facts.quorum, what).clock
    if clock is None:
        yield Finding.unseen(what, Unseen("the controllers do not send their time"))
        return ""
    # The cluster's clock was read between `before_ms` and `after_ms` of this one.
    behind_ms = max(clock.theirs_ms - clock.after_ms, 0) or min(
        clock.theirs_ms - clock.before_ms, 0
    )
    if abs(behind_ms) >= _CLOCK_TOLERANCE_MS:
        way = "behind" if behind_ms > 0 else "ahead of"
        what = f"this machine is {abs(behind_ms) / 1000:.1f} s {way} {clock.whose}"
        yield Finding.warning(what, *consequence_and_remedy)
    within = (clock.after_ms - clock.before_ms) // 2 + _CLOCK_TOLERANCE_MS
    return f"that of {clock.whose} is the same as here, within {within} ms"


def _lowest(facts: Facts, name: str) -> tuple[int, str, bool]:
    """Return the lowest value of a setting, since a client may meet any broker; which brokers have
    it; and whether a change needs a restart."""
    settings = require(facts.setting(name), f"the brokers' {name}")
    value = min(int(each.value) for each in settings.values())
    at = [address for address, each in settings.items() if int(each.value) == value]
    who = "the brokers have" if len(at) == len(settings) else f"{', '.join(at)} has"
    return value, f"{who} {name}={value}", settings[at[0]].fixed


def check_timeout(facts: Facts) -> Verdict:
    yield from _check_batches(facts)
    meaning = "The query is refused at its start (INVALID_TRANSACTION_TIMEOUT)."
    # Those of the driver do not get shorter with the option.
    wanted = max(facts.subject.transaction_timeout_ms, RECORDED_MS)
    return (yield from _check_maximum(facts, _MAX_TIMEOUT, wanted, meaning))


def check_session(facts: Facts) -> Verdict:
    """The driver asks for the longest session that the brokers allow, and stops if that is shorter
    than its transactions need."""
    meaning = (
        f"The driver needs a minute more than {_OWN_TIMEOUT}. The brokers answer "
        "INVALID_SESSION_TIMEOUT, and the query is refused at its start."
    )
    session_ms = group_session_ms(facts.subject.transaction_timeout_ms)
    return (yield from _check_maximum(facts, _MAX_SESSION, session_ms, meaning))


def _check_maximum(facts: Facts, name: str, wanted: int, meaning: str) -> Verdict:
    timeout_ms = facts.subject.transaction_timeout_ms
    need = f"{_OWN_TIMEOUT}={timeout_ms} needs {wanted} ms"
    maximum, where, restart = _lowest(facts, name)
    if maximum < wanted:
        remedy = facts.commands.set_brokers(name, wanted, restart=restart)
        shorter = timeout_ms - (wanted - maximum)
        if shorter > 0 and maximum >= RECORDED_MS:
            fits = f"Give the query {_OWN_TIMEOUT}={shorter}, if its batches are shorter"
            remedy = f"{fits}, or: {remedy}"
        yield Finding.failure(f"{need}, and {where}", meaning, remedy)
    return f"{need}; the brokers allow {maximum}"


def _check_batches(facts: Facts) -> Problems:
    """The age of the oldest transaction at the last vote is what the batch used of its timeout."""
    subject = facts.subject
    for query, written in sorted(facts.records.items()):
        stats = written.record.stats
        if subject.shown not in (None, query) or stats.left_ms is None or not stats.timeout_ms:
            continue
        if written.decision is not None and not written.decision.prepared:
            continue  # It had no vote: the figure is of an older batch.
        took_ms = stats.timeout_ms - stats.left_ms
        # Each query has a timeout of its own, unless the options of one are given.
        limit_ms = subject.transaction_timeout_ms if subject.names else stats.timeout_ms
        what = f"the last batch of {query} took {took_ms / 1000:.0f} s of {limit_ms / 1000:.0f} s"
        remedy = (
            "Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger), or raise "
            f"{_OWN_TIMEOUT} and, on the brokers, {_MAX_TIMEOUT}."
        )
        if took_ms >= limit_ms - vote_margin_ms(limit_ms):
            meaning = "The vote gives such a batch up, each time."
            yield Finding.failure(what, meaning, remedy)
        elif took_ms > limit_ms // 2:
            meaning = "The vote gives a batch up that takes twice as long."
            yield Finding.warning(what, meaning, remedy)


def check_expiry(facts: Facts) -> Verdict:
    kept_ms, where, restart = _lowest(facts, ID_EXPIRATION)
    if kept_ms < _DAY_MS:
        yield Finding.warning(
            where,
            "After a longer downtime the coordinator no longer knows the outcome of the query's "
            "last batch: the query reads it back from the topics, if they still have it.",
            facts.commands.set_brokers(ID_EXPIRATION, 7 * _DAY_MS, restart=restart),
        )
    return f"coordinators remember transactional ids for {format_hours(kept_ms)}"


def check_verification(facts: Facts) -> Verdict:
    settings = require(facts.setting(VERIFICATION), f"the brokers' {VERIFICATION}")
    off = {address: each for address, each in settings.items() if each.value == "false"}
    if off:
        restart = any(each.fixed for each in off.values())
        yield Finding.failure(
            f"{VERIFICATION}=false on {', '.join(off)}",
            "The query is refused at its start: a row that arrives after its transaction was "
            "aborted would block readers, or be committed by the next attempt (KIP-890).",
            facts.commands.set_brokers(VERIFICATION, "true", restart=restart),
        )
    return f"{VERIFICATION}=true"


def format_hours(ms: int) -> str:
    """Format a long time in hours or days."""
    hours = ms / 3_600_000
    return f"{hours:g} h" if hours < 48 else f"{hours / 24:g} days"
