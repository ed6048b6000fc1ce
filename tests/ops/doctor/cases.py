"""Facts about a cluster without faults, and pieces with faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import Broker, BrokerSetting, Clock, Quorum
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import MemberDescription, PartitionState, TopicDescription
from eos_sink.kafka.log_topic import LOG_CONFIGURATION, LOG_PARTITIONS, home_of
from eos_sink.kafka_config.broker_versions import NEEDED
from eos_sink.kafka_config.cluster_config import ClusterConfig, Translation
from eos_sink.metrics.stats import Stats
from eos_sink.ops.doctor.checks import CHECKS
from eos_sink.ops.doctor.facts import Facts, LogFacts, SourceFacts, Subject
from eos_sink.ops.doctor.findings import Finding, Level, run_checks
from eos_sink.ops.doctor.python import Python
from eos_sink.ops.history import Written
from eos_sink.protocol.model import BatchId, Decision, LogRecord, Prepared, RowDigest
from eos_sink.protocol.values import Position, Transaction, TransactionState, TransactionStatus
from tests.fakes.admin import FakeAdmin
from tests.fakes.cluster import FakeCluster

LOG, QUERY, OTHER = "__eos_sink_log", "readings-0123456789", "copies-0123456789"
NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 3600 * 1000
EVERYTHING = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})
SETTINGS = {
    "transaction.max.timeout.ms": "900000",
    "group.max.session.timeout.ms": "1800000",
    "group.min.session.timeout.ms": "6000",
    "transactional.id.expiration.ms": str(7 * DAY_MS),
    "transaction.partition.verification.enable": "true",
    "transaction.state.log.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.retention.minutes": "10080",
}
FIXED = {"transaction.max.timeout.ms", "group.max.session.timeout.ms"}
CLUSTER = ClusterConfig(Translation({"bootstrap.servers": "kafka:9092"}), log_topic=LOG)
SUBJECT = Subject(CLUSTER, QueryNames("eos-sink-", QUERY), ("readings",))
COMMANDS = SUBJECT.commands
PYTHON = Python(
    ("host-1",),
    "/opt/venv/bin/python",
    "3.12.1",
    {"eos-sink": "0.1.0", "confluent-kafka": "2.16.1", "pyarrow": "18.0.0", "pyspark": ""},
    "2.16.0",
    native=True,
)


def broker(number: int = 1, unreachable: str = "", **settings: str) -> Broker:
    """`settings` with `_` for `.`."""
    named = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
    return Broker(
        number,
        f"kafka-{number}:9092",
        unreachable,
        {ability.key: ability.version for ability in NEEDED},
        {name: BrokerSetting(value, name in FIXED) for name, value in named.items()},
    )


def brokers(**settings: str) -> tuple[Broker, ...]:
    return tuple(broker(number, **settings) for number in (1, 2, 3))


def topic(name: str, partitions: int = 6, copies: int = 3, **settings: str) -> TopicDescription:
    """`settings` with `_` for `.`."""
    base = {"min.insync.replicas": "2", "cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}
    named = base | {name.replace("_", "."): value for name, value in settings.items()}
    parts = {number: PartitionState(1, copies, copies) for number in range(partitions)}
    return TopicDescription(name, parts, named, EVERYTHING)


def log_topic(partitions: int = LOG_PARTITIONS, **settings: str) -> TopicDescription:
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    made = topic(LOG, partitions)
    assert isinstance(made.settings, dict)
    return replace(made, settings={**made.settings, **LOG_CONFIGURATION, **changed})


def written(query: str = QUERY, partition: int | None = None, **changes: Any) -> Written:
    """Of a decision; `changes` are of it, `stats` of the record."""
    stats = changes.pop("stats", Stats())
    topic = changes.pop("topic", "readings")
    changes.setdefault("topics", {topic: "id"})
    prepared = Prepared(0, 1, 0, RowDigest(1), Position(topic, 0, 1))
    decision = replace(Decision(BatchId("stream", 4), 0, 1, RowDigest(1), (prepared,)), **changes)
    record = LogRecord(5, decision, "w", stats=stats)
    home = home_of(query) if partition is None else partition
    return Written(query, record, Position(LOG, home, 7), NOW_MS)


def log(*records: Written) -> LogFacts:
    known = records or (written(),)
    return LogFacts(len(known), {each.query: each for each in known})


def state(name: str, status: TransactionStatus, started_ms: int = -1) -> TransactionState:
    return TransactionState(Transaction(name, 1, 0), status, started_ms, 900_000)


def facts(**changes: Any) -> Facts:
    """Facts without faults, but for the changes; `topics` are added to its own."""
    known = {
        "readings": topic("readings"),
        "payments": topic("payments"),
        "__transaction_state": topic("__transaction_state"),
        "__consumer_offsets": topic("__consumer_offsets"),
        LOG: log_topic(),
    } | changes.pop("topics", {})
    well: dict[str, Any] = {
        "features": {"metadata.version": 30, "transaction.version": 2},
        "quorum": Quorum(1, Clock("controller 1", NOW_MS, NOW_MS - 5, NOW_MS + 5)),
        "topics": known,
        "named": ("readings",),
        "may_write": True,
        "may_join": True,
        "log": log(),
        "refusal": "",
        "groups": [f"eos-sink-{QUERY}"],
        "members": {
            f"eos-sink-{QUERY}": [MemberDescription(f"eos-sink-{QUERY}-driver", "c", "/h")]
        },
        "transactions": [state(f"eos-sink-{QUERY}-0-3", TransactionStatus.COMPLETE_COMMIT)],
        "holders": {},
        "source": SourceFacts("readers", ("payments",)),
        "source_members": (),
        "may_commit": True,
        "now_ms": NOW_MS,
        "python": PYTHON,
    }
    subject = changes.pop("subject", SUBJECT)
    seen = Facts(FakeAdmin(FakeCluster()), subject, Deadline(30), changes.pop("brokers", brokers()))
    vars(seen).update({**well, **changes})
    return seen


def findings(seen: Facts, subject: Subject | None = None) -> dict[str, list[Finding]]:
    if subject is not None:
        known = {**vars(seen), "subject": subject}
        seen = replace(seen)
        vars(seen).update(known)
    return run_checks(CHECKS, seen, seen.commands.grant)


def levels(found: Mapping[str, list[Finding]]) -> set[Level]:
    return {each.level for some in found.values() for each in some}


def of(check: str, found: Mapping[str, list[Finding]]) -> dict[Level, list[Finding]]:
    """Those of a check, by level."""
    by_level: dict[Level, list[Finding]] = {}
    for each in found[check]:
        by_level.setdefault(each.level, []).append(each)
    return by_level
