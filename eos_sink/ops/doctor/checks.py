"""All checks of a cluster and of this machine, in the order in which they are told."""

from __future__ import annotations

from eos_sink.ops.doctor.brokers import (
    judge_brokers,
    judge_clock,
    judge_controller,
    judge_versions,
)
from eos_sink.ops.doctor.clients import Python, judge_clients
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.decision_log import judge_log, judge_records
from eos_sink.ops.doctor.facts import Facts, Subject
from eos_sink.ops.doctor.finding import Check, Finding, Findings, ok, warning
from eos_sink.ops.doctor.limits import (
    judge_batches,
    judge_expiry,
    judge_session,
    judge_timeout,
    judge_verification,
)
from eos_sink.ops.doctor.names import judge_names
from eos_sink.ops.doctor.permissions import judge_permissions
from eos_sink.ops.doctor.topics import judge_internal, judge_topics


def judge(subject: Subject, facts: Facts, python: Python, commands: Commands) -> list[Finding]:
    """What there is to say."""
    return [
        *judge_brokers(facts.brokers),
        *judge_versions(facts),
        *judge_controller(facts, commands),
        *judge_clock(facts, commands),
        *judge_permissions(subject, facts, commands),
        *judge_topics(subject, facts, commands),
        *judge_internal(facts, commands),
        *judge_log(subject, facts, commands),
        *judge_records(facts, commands),
        *judge_timeout(subject, facts, commands),
        *judge_batches(subject, facts),
        *judge_session(subject, facts, commands),
        *judge_expiry(facts, commands),
        *judge_verification(facts, commands),
        *judge_names(subject, facts, commands),
        *judge_options(subject),
        *judge_clients(python),
    ]


def judge_options(subject: Subject) -> Findings:
    """What the sink would say of them in its log at the start."""
    for text in subject.warnings:
        yield warning(
            Check.OPTIONS,
            text.rstrip("."),
            "The driver's log says so at each start.",
            "Remove or correct it: docs/kafka-settings.md has a row for each setting.",
        )
    if not subject.warnings:
        yield ok(Check.OPTIONS, "nothing is passed over")
