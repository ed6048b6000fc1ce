"""All checks of a cluster and of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eos_sink.ops.doctor import brokers, decision_log, permissions, topics
from eos_sink.ops.doctor.facts import Facts
from eos_sink.ops.doctor.findings import Check, Finding, Findings, collect
from eos_sink.ops.doctor.python import Python, check_clients

CHECKS = (*brokers.CHECKS, *topics.CHECKS, *decision_log.CHECKS, *permissions.CHECKS)


def run_checks(facts: Facts, python: Python) -> list[Finding]:
    """Run every check, and add the commands that grant missing permissions."""
    found = [finding for check in CHECKS for finding in collect(check(facts))]
    found += [*check_options(facts.subject.options.warnings), *check_clients(python)]
    grant = facts.commands.grant
    return [replace(each, remedy=(*each.remedy, *grant(each.missing))) for each in found]


def check_options(warnings: Sequence[str]) -> Findings:
    for text in warnings:
        yield Check.OPTIONS.warning(
            text.rstrip("."),
            "The driver logs this at each start.",
            "Remove or correct it: docs/kafka-settings.md has a row for each setting.",
        )
    if not warnings:
        yield Check.OPTIONS.ok("no setting is ignored or adjusted")
