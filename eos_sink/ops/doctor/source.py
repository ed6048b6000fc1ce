"""Checks of the source of a query with `eos.source.group.id`."""

from __future__ import annotations

from eos_sink.ops.doctor.brokers import format_hours
from eos_sink.ops.doctor.facts import SOURCE_TOPICS, Facts, SourceFacts
from eos_sink.ops.doctor.findings import Finding, Problems, Verdict, judge, require, shorten

_RETENTION = "offsets.retention.minutes"
_RETENTION_DEFAULT = 7 * 24 * 60
_MINUTE_MS = 60_000


def check_source(facts: Facts) -> Verdict:
    source = facts.source
    if source is None:
        return ""
    yield from judge(
        _check_topics(facts, source),
        _check_members(facts, source),
        _check_retention(facts, source),
    )
    topics = ", ".join(require(source.topics, SOURCE_TOPICS)) or "topics that no option names"
    return f"{topics}, committed to group {source.group}, which has no members"


def _check_topics(facts: Facts, source: SourceFacts) -> Problems:
    topics = require(source.topics, SOURCE_TOPICS)
    yield from judge(*(_check_topic(name, facts) for name in topics))


def _check_topic(name: str, facts: Facts) -> Problems:
    if require(facts.topics[name], name) is None:
        yield Finding.failure(
            f"{name} of the source does not exist on this cluster",
            "A transaction reaches one cluster only: the query is refused at its first batch.",
            "Correct the source's option, or remove eos.source.group.id.",
        )


def _check_members(facts: Facts, source: SourceFacts) -> Problems:
    members = require(facts.source_members, f"the members of group {source.group}")
    if members:
        named = shorten(f"{each.client} on {each.host.lstrip('/')}" for each in members)
        yield Finding.failure(
            f"group {source.group} has members: {named}",
            "The query would overwrite their offsets, and is refused at its start.",
            "Stop these consumers, or give the query a group of its own: eos.source.group.id.",
        )


def _check_retention(facts: Facts, source: SourceFacts) -> Problems:
    values = require(facts.setting(_RETENTION), _RETENTION)
    least = min(int(each.value) for each in values.values())
    if least < _RETENTION_DEFAULT:
        yield Finding.warning(
            f"{_RETENTION} is {least}: {format_hours(least * _MINUTE_MS)}",
            f"If the query stops for longer, the offsets of group {source.group} expire, and a new "
            "checkpoint stops. The decision log keeps them: eos-sink offsets --use record commits "
            "them again.",
            facts.commands.set_brokers(_RETENTION, _RETENTION_DEFAULT, restart=True),
        )
