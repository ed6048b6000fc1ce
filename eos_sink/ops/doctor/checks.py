"""The table of checks of a cluster and of this machine."""

from __future__ import annotations

from eos_sink.ops.doctor import brokers, decision_log, permissions, topics
from eos_sink.ops.doctor.facts import Facts
from eos_sink.ops.doctor.findings import Checks, Finding, Verdict
from eos_sink.ops.doctor.python import check_clients
from eos_sink.ops.doctor.source import check_source


def check_options(facts: Facts) -> Verdict:
    for text in facts.subject.cluster.client.warnings:
        yield Finding.warning(
            text.rstrip("."),
            "The driver logs this at each start.",
            "Remove or correct it: docs/options.md#kafka-settings lists each setting.",
        )
    return "no setting is ignored or adjusted"


CHECKS: Checks[Facts] = {
    "brokers": brokers.check_brokers,
    "versions": brokers.check_versions,
    "controller": brokers.check_controller,
    "clock": brokers.check_clock,
    "permissions": permissions.check_permissions,
    "topic": topics.check_topics,
    "reading back": topics.check_read_back,
    "readers": topics.check_readers,
    "internal topics": topics.check_internal_topics,
    "decision log": decision_log.check_log,
    "log records": decision_log.check_log_records,
    "transaction timeout": brokers.check_timeout,
    "group session": brokers.check_session,
    "expiry": brokers.check_expiry,
    "verification": brokers.check_verification,
    "names": permissions.check_names,
    "source": check_source,
    "options": check_options,
    "clients": lambda facts: check_clients(facts.python),
}
