"""Times: what the query asks for, what the brokers allow, what batches have taken."""

from __future__ import annotations

from eos_sink.kafka.admin_interface import BrokerSetting
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.broker_versions import VERIFICATION
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.facts import Facts, LogFacts, Subject
from eos_sink.ops.doctor.finding import Check, Findings, failure, ok, unseen, warning
from eos_sink.protocol.rules import group_session_ms, vote_margin_ms

_MAX_TIMEOUT = "transaction.max.timeout.ms"
_MAX_SESSION = "group.max.session.timeout.ms"
_IDS = "transactional.id.expiration.ms"
_OWN = "eos.transaction.timeout.ms"
_DAY_MS = 24 * 3600 * 1000


def judge_timeout(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    wanted, most = subject.transaction_timeout_ms, facts.setting(_MAX_TIMEOUT)
    if isinstance(most, Unseen):
        yield unseen(Check.TIMEOUT, f"the brokers' {_MAX_TIMEOUT}", most, commands)
        return
    least, setting = _least(most)
    if least < wanted:
        yield failure(
            Check.TIMEOUT,
            f"{_OWN}={wanted}, and {_at(most, _MAX_TIMEOUT, least)}",
            "The query is refused at its start (INVALID_TRANSACTION_TIMEOUT).",
            f"Give the query {_OWN}={least}, if its batches are shorter, or: "
            + commands.set_brokers({_MAX_TIMEOUT: wanted}, fixed=setting.fixed),
        )
    else:
        yield ok(Check.TIMEOUT, f"{_OWN}={wanted}; the brokers allow {least}")


def judge_batches(subject: Subject, facts: Facts) -> Findings:
    """The age of the oldest transaction at the latest vote is what a batch took of its time-out."""
    if not isinstance(facts.log, LogFacts):
        return
    for query, written in sorted(facts.log.records.items()):
        stats = written.record.stats
        if subject.shown not in (None, query) or stats.left_ms is None or not stats.timeout_ms:
            continue
        took_ms = stats.timeout_ms - stats.left_ms
        # The time-out that is judged, where one query is; else each has its own.
        most = subject.transaction_timeout_ms if subject.query else stats.timeout_ms
        what = f"the last batch of {query} took {took_ms / 1000:.0f} s of {most / 1000:.0f} s"
        remedy = (
            f"Make batches smaller (maxOffsetsPerTrigger, maxFilesPerTrigger), or raise {_OWN} "
            f"and, on the brokers, {_MAX_TIMEOUT}."
        )
        if took_ms >= most - vote_margin_ms(most):
            yield failure(
                Check.TIMEOUT, what, "Such a batch is given up at the vote, each time.", remedy
            )
        elif took_ms > most // 2:
            yield warning(
                Check.TIMEOUT, what, "One that takes twice as long is given up at the vote.", remedy
            )


def judge_session(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    """The driver asks for the longest session that the brokers allow, and refuses to do with less
    than its transactions need."""
    wanted = group_session_ms(subject.transaction_timeout_ms)
    most = facts.setting(_MAX_SESSION)
    if isinstance(most, Unseen):
        yield unseen(Check.SESSION, f"the brokers' {_MAX_SESSION}", most, commands)
        return
    highest, setting = _least(most)
    if highest < wanted:
        lower = subject.transaction_timeout_ms - (wanted - highest)
        way = (
            f"Give the query {_OWN}={lower}, if its batches are shorter, or: " if lower > 0 else ""
        )
        yield failure(
            Check.SESSION,
            f"the driver needs {wanted} ms, a minute more than {_OWN}, and "
            f"{_at(most, _MAX_SESSION, highest)}",
            "The driver cannot join its group: the brokers answer INVALID_SESSION_TIMEOUT, and the "
            "query is refused at its start.",
            way + commands.set_brokers({_MAX_SESSION: wanted}, fixed=setting.fixed),
        )
    else:
        yield ok(Check.SESSION, f"the driver needs {wanted} ms; the brokers allow {highest}")


def judge_expiry(facts: Facts, commands: Commands) -> Findings:
    ids = facts.setting(_IDS)
    if isinstance(ids, Unseen):
        yield unseen(Check.EXPIRY, f"the brokers' {_IDS}", ids, commands)
        return
    kept, setting = _least(ids)
    if kept < _DAY_MS:
        yield warning(
            Check.EXPIRY,
            _at(ids, _IDS, kept),
            "A query that was down for longer can no longer ask a coordinator what became of its "
            "last batch: it reads that back from the topics, if they still have it.",
            commands.set_brokers({_IDS: 7 * _DAY_MS}, fixed=setting.fixed),
        )
    else:
        yield ok(Check.EXPIRY, f"coordinators remember transactional ids for {hours(kept)}")


def judge_verification(facts: Facts, commands: Commands) -> Findings:
    told = facts.setting(VERIFICATION)
    if isinstance(told, Unseen):
        yield unseen(Check.VERIFICATION, f"the brokers' {VERIFICATION}", told, commands)
        return
    off = {address: each for address, each in told.items() if each.value == "false"}
    if off:
        yield failure(
            Check.VERIFICATION,
            f"{VERIFICATION}=false on {', '.join(off)}",
            "The query is refused at its start: a row that arrives after its transaction was "
            "aborted would hold up readers, or be committed by the next attempt (KIP-890).",
            commands.set_brokers({VERIFICATION: "true"}, fixed=next(iter(off.values())).fixed),
        )
    else:
        yield ok(Check.VERIFICATION, f"{VERIFICATION}=true")


def _least(told: dict[str, BrokerSetting]) -> tuple[int, BrokerSetting]:
    """The smallest value of all brokers: whoever asks may meet any of them."""
    setting = min(told.values(), key=lambda each: int(each.value))
    return int(setting.value), setting


def _at(told: dict[str, BrokerSetting], name: str, value: int) -> str:
    """Which brokers have it, where not all are the same."""
    there = [address for address, each in told.items() if int(each.value) == value]
    who = "the brokers have" if len(there) == len(told) else f"{', '.join(there)} has"
    return f"{who} {name}={value}"


def hours(ms: int) -> str:
    """A long time, as a person says it."""
    count = ms / 3_600_000
    return f"{count:g} h" if count < 48 else f"{count / 24:g} days"
