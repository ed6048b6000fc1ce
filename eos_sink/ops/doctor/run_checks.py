"""The table of checks of a cluster and of this machine."""

from __future__ import annotations

from dataclasses import replace

from eos_sink.ops.doctor import brokers, decision_log, permissions, topics
from eos_sink.ops.doctor.facts import Facts
from eos_sink.ops.doctor.findings import Check, Finding, Problems, Verdict, judge
from eos_sink.ops.doctor.python import Python, check_clients
from eos_sink.ops.doctor.source import check_source


def run_checks(facts: Facts, python: Python) -> dict[Check, list[Finding]]:
    """Run every check, and add the commands that grant missing permissions."""
    table: dict[Check, Verdict | Problems] = {
        Check.BROKERS: brokers.check_brokers(facts),
        Check.VERSIONS: brokers.check_versions(facts),
        Check.CONTROLLER: brokers.check_controller(facts),
        Check.CLOCK: brokers.check_clock(facts),
        Check.PERMISSIONS: permissions.check_permissions(facts),
        Check.TOPIC: topics.check_topics(facts),
        Check.WITNESS: topics.check_read_back(facts),
        Check.READERS: topics.check_readers(facts),
        Check.INTERNAL: topics.check_internal_topics(facts),
        Check.LOG: decision_log.check_log(facts),
        Check.RECORDS: decision_log.check_log_records(facts),
        Check.TIMEOUT: brokers.check_timeout(facts),
        Check.SESSION: brokers.check_session(facts),
        Check.EXPIRY: brokers.check_expiry(facts),
        Check.VERIFICATION: brokers.check_verification(facts),
        Check.NAMES: permissions.check_names(facts),
        Check.SOURCE: check_source(facts),
        Check.OPTIONS: check_options(facts),
        Check.CLIENTS: check_clients(python),
    }
    grant = facts.commands.grant
    return {
        check: [
            replace(found, remedy=(*found.remedy, *grant(found.missing)))
            for found in judge(verdict)
        ]
        for check, verdict in table.items()
    }


def check_options(facts: Facts) -> Verdict:
    for text in facts.subject.cluster.client.warnings:
        yield Finding.warning(
            text.rstrip("."),
            "The driver logs this at each start.",
            "Remove or correct it: docs/options.md#kafka-settings lists each setting.",
        )
    return "no setting is ignored or adjusted"
