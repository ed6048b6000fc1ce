"""Each fault has a finding with a level and a remedy; without faults every check is ok."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.kafka.admin_interface import Clock, Quorum
from eos_sink.kafka.interfaces import MemberDescription, PartitionState, Unseen
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.destinations import Destinations
from eos_sink.metrics.stats import Stats
from eos_sink.ops.doctor.checks import CHECKS
from eos_sink.ops.doctor.facts import Facts, LogFacts, Subject
from eos_sink.ops.doctor.findings import Level
from eos_sink.ops.history import Unreadable
from eos_sink.ops.holders import Holder
from eos_sink.protocol.model import BatchId, Inlined, RowDigest
from eos_sink.protocol.values import Position, Transaction, TransactionStatus
from tests.ops.doctor.cases import (
    CLUSTER,
    COMMANDS,
    DAY_MS,
    LOG,
    NOW_MS,
    OTHER,
    QUERY,
    SUBJECT,
    broker,
    brokers,
    facts,
    findings,
    levels,
    log,
    log_topic,
    of,
    state,
    topic,
    written,
)

WARNING, FAILURE, UNSEEN = Level.WARNING, Level.FAILURE, Level.UNSEEN
TRANSACTIONS = "__transaction_state"
NO_CONFIGS = Unseen(
    "this principal lacks DescribeConfigs on the cluster",
    (Acl("DescribeConfigs", Resource.CLUSTER, "kafka-cluster"),),
)


def test_without_faults_every_check_is_ok() -> None:
    found = findings(facts())
    assert levels(found) == {Level.OK}
    assert list(found) == list(CHECKS)
    every = [each for some in found.values() for each in some]
    assert all(each.what and not each.meaning and not each.remedy for each in every)
    assert all(found.values())


def holder(status: TransactionStatus, age_ms: int = 1_000) -> dict[str, Any]:
    name = f"eos-sink-{QUERY}-0-3"
    its = state(name, status, NOW_MS - age_ms)
    return {"holders": {"readings": [Holder("readings", 2, 40, Transaction(name, 7, 0), its)]}}


def test_an_open_transaction_of_a_batch_that_is_written_is_no_fault() -> None:
    for status in (TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT):
        found = findings(facts(**holder(status)))
        assert levels(found) == {Level.OK}


def clocks(ahead_ms: int) -> Quorum:
    return Quorum(1, Clock("controller 1", NOW_MS + ahead_ms, NOW_MS, NOW_MS))


def one_in_sync(name: str) -> dict[str, Any]:
    parts = {0: PartitionState(1, 3, 3), 1: PartitionState(1, 3, 1)}
    return {name: replace(topic(name), partitions=parts)}


def batch_of(took_ms: int) -> dict[str, Any]:
    return {"log": log(written(stats=Stats(left_ms=900_000 - took_ms, timeout_ms=900_000)))}


def test_a_batch_without_a_vote_took_no_time_of_the_timeout() -> None:
    stats = Stats(left_ms=1, timeout_ms=900_000)
    inlined = (Inlined(0, RowDigest(1)),)
    found = findings(facts(log=log(written(stats=stats, prepared=(), inlined=inlined))))
    assert set(of("transaction timeout", found)) == {Level.OK}


def unreadable(key: str, newer: int = 0) -> Unreadable:
    return Unreadable(key, Position(LOG, 2, 5), "no JSON", newer)


HIDDEN, NEWER = (
    {"log": LogFacts(1, hidden={QUERY: unreadable(f"eos-sink-{QUERY}", newer)})} for newer in (0, 9)
)
FOREIGN = {"log": LogFacts(1, foreign={"other-app": unreadable("other-app")})}


def readings(**settings: Any) -> dict[str, Any]:
    return {"topics": {"readings": topic("readings", **settings)}}


def seen(name: str, **what: Any) -> dict[str, Any]:
    """What is seen of a topic."""
    return {"topics": {name: replace(topic(name), **what)}}


def logs(partitions: int = LOG_PARTITIONS, **settings: str) -> dict[str, Any]:
    return {"topics": {LOG: log_topic(partitions, **settings)}}


def all_brokers(**settings: str) -> dict[str, Any]:
    return {"brokers": brokers(**settings)}


BLIND = {"brokers": (replace(broker(), settings=NO_CONFIGS),)}


CASES: dict[str, list[tuple[Level, dict[str, Any], str, str]]] = {
    # level, changed facts, part of the fact, part of the remedy
    "brokers": [
        (
            FAILURE,
            {"brokers": (broker(1), broker(2, "Connection refused"))},
            "broker 2 cannot be reached at kafka-2:9092, which it advertises: Connection refused",
            "nc -vz kafka-2 9092",
        ),
    ],
    "versions": [
        (
            FAILURE,
            {"brokers": (replace(broker(), newest={10: 3}),)},
            "is too old: it lacks AddPartitionsToTxn",
            "Kafka 3.6",
        ),
    ],
    "controller": [
        (
            FAILURE,
            {"quorum": Quorum(-1)},
            "no leader",
            "kafka-metadata-quorum --bootstrap-server kafka:9092 describe --status",
        ),
        (UNSEEN, {"quorum": NO_CONFIGS}, "lacks", "kafka-acls"),
    ],
    "clock": [
        (UNSEEN, {"quorum": Quorum(1)}, "do not send their time", ""),
        (WARNING, {"quorum": clocks(3_000)}, "3.0 s behind controller 1", "chronyc"),
        (WARNING, {"quorum": clocks(-3_000)}, "3.0 s ahead of controller 1", "chronyc"),
        (WARNING, {"quorum": clocks(20_000)}, "20.0 s behind", "chronyc"),
        (WARNING, {"quorum": clocks(-900_000)}, "900.0 s ahead of", "chronyc"),
        (
            WARNING,
            {"transactions": [state("x", TransactionStatus.ONGOING, NOW_MS + 4_000)]},
            "at least 4.0 s ahead of this machine's",
            "chronyc",
        ),
    ],
    "permissions": [
        (
            FAILURE,
            seen("readings", allowed=frozenset({"WRITE"})),
            "lacks Read on topic readings",
            "--operation Read --topic readings",
        ),
        (
            FAILURE,
            {"topics": {LOG: Unseen("x", (Acl("Describe", Resource.TOPIC, LOG),))}},
            f"lacks Read on topic {LOG}, Write on topic {LOG}",
            f"--topic {LOG}",
        ),
        (
            FAILURE,
            {"may_write": False},
            "lacks Write on every transactional id that starts with eos-sink-",
            "--transactional-id eos-sink- --resource-pattern-type prefixed",
        ),
        (
            FAILURE,
            {"may_join": False},
            "lacks Read on every group that starts with eos-sink-",
            "--group eos-sink- --resource-pattern-type prefixed",
        ),
        (UNSEEN, {"may_join": Unseen("no answer")}, "no answer", ""),
        (
            FAILURE,
            {"may_commit": False},
            "lacks Read on group readers",
            "--operation Read --group readers",
        ),
        (
            FAILURE,
            seen("payments", allowed=frozenset({"DESCRIBE"})),
            "lacks Read on topic payments",
            "--operation Read --topic payments",
        ),
    ],
    "source": [
        (
            FAILURE,
            {"topics": {"payments": None}},
            "payments of the source does not exist on this cluster",
            "eos.source.group.id",
        ),
        (
            FAILURE,
            {"source_members": [MemberDescription("", "app", "/10.0.0.1")]},
            "group readers has members: app on 10.0.0.1",
            "Stop these consumers",
        ),
        (
            WARNING,
            all_brokers(offsets_retention_minutes="1440"),
            "offsets.retention.minutes is 1440: 24 h",
            "offsets.retention.minutes=10080",
        ),
    ],
    "topic": [
        (UNSEEN, {"named": ()}, "--topic", ""),
        (
            FAILURE,
            {"topics": {"readings": None}},
            "readings does not exist",
            "kafka-topics --bootstrap-server kafka:9092 --create --topic readings --partitions 6 "
            "--replication-factor 3 --config min.insync.replicas=2",
        ),
        (
            FAILURE,
            readings(copies=1),
            "has 1 copy and min.insync.replicas=2",
            "--entity-name readings --add-config min.insync.replicas=1",
        ),
        (
            FAILURE,
            {"topics": one_in_sync("readings")},
            "1 copy in sync in partition 1, and min.insync.replicas=2",
            "--under-min-isr-partitions",
        ),
        (
            FAILURE,
            seen("readings", partitions={3: PartitionState(-1, 3, 2)}),
            "no leader in partition 3",
            "--unavailable-partitions",
        ),
        (
            WARNING,
            seen("readings", partitions={3: PartitionState(1, 3, 2)}),
            "out of sync in partition 3",
            "--under-replicated-partitions",
        ),
        (
            WARNING,
            readings(min_insync_replicas="1"),
            "3 copies and min.insync.replicas=1",
            "min.insync.replicas=2",
        ),
        (
            WARNING,
            readings(min_insync_replicas="3"),
            "3 copies and min.insync.replicas=3",
            "min.insync.replicas=2",
        ),
        (
            WARNING,
            readings(copies=1, min_insync_replicas="1"),
            "one copy",
            "kafka-reassign-partitions",
        ),
        (
            WARNING,
            readings(copies=2, min_insync_replicas="1"),
            "2 copies and min.insync.replicas=1",
            "kafka-reassign-partitions",
        ),
        (
            WARNING,
            readings(unclean_leader_election_enable="true"),
            "unclean.leader.election.enable=true",
            "unclean.leader.election.enable=false",
        ),
        (
            WARNING,
            readings(max_message_bytes="1000"),
            "max.message.bytes=1000 instead of 1000000",
            "max.message.bytes=1000000",
        ),
        (
            UNSEEN,
            seen("readings", settings=NO_CONFIGS),
            "min.insync.replicas of readings",
            "kafka-acls",
        ),
    ],
    "reading back": [
        (
            WARNING,
            readings(cleanup_policy="compact"),
            "cleanup.policy=compact",
            "cleanup.policy=delete",
        ),
        (
            WARNING,
            readings(retention_ms="3600000"),
            "keeps records for 1 h, coordinators ids for 7 days",
            f"retention.ms={7 * DAY_MS}",
        ),
        (
            WARNING,
            readings(retention_bytes="1000000"),
            "retention.bytes=1000000",
            "retention.bytes=-1",
        ),
        (UNSEEN, seen("readings", settings=NO_CONFIGS), "retention of readings", "kafka-acls"),
    ],
    "internal topics": [
        (
            WARNING,
            {"topics": {TRANSACTIONS: topic(TRANSACTIONS, copies=1, min_insync_replicas="1")}},
            f"{TRANSACTIONS} has one copy",
            "kafka-reassign-partitions",
        ),
        (
            FAILURE,
            {"topics": {TRANSACTIONS: None}, "brokers": (broker(),)},
            f"{TRANSACTIONS} is not there yet and wants 3 copies; there are 1 brokers",
            "transaction.state.log.replication.factor=1",
        ),
        (UNSEEN, {"topics": {TRANSACTIONS: NO_CONFIGS}}, TRANSACTIONS, "kafka-acls"),
    ],
    "readers": [
        (
            WARNING,
            holder(TransactionStatus.COMPLETE_COMMIT),
            f"readings[2]: transaction eos-sink-{QUERY}-0-3 has ended, and is open there from",
            "Start the query",
        ),
        (
            UNSEEN,
            {"holders": {"readings": [Holder("readings", 2, 40, Transaction("", 7, 0), None)]}},
            "producer id 7, which holds readers up at readings[2] from offset 40 on",
            "",
        ),
        (
            WARNING,
            holder(TransactionStatus.ONGOING, 800_000),
            f"readings[2]: transaction eos-sink-{QUERY}-0-3 has been open for most of its timeout",
            "docs/runbook.md#readers-stuck",
        ),
        (UNSEEN, {"holders": Unseen("no answer")}, "what holds readers up", ""),
    ],
    "decision log": [
        (
            FAILURE,
            {"topics": {LOG: log_topic(1)}, "log": LogFacts()},
            "1 partition instead of 8",
            f"kafka-topics --bootstrap-server kafka:9092 --alter --topic {LOG} --partitions 8",
        ),
        (FAILURE, logs(3), "3 partitions instead of 8", "eos.log.topic"),
        (
            FAILURE,
            logs(cleanup_policy="compact,delete"),
            "cleanup.policy=compact,delete",
            "cleanup.policy=compact",
        ),
        (
            WARNING,
            logs(max_message_bytes="1048588"),
            "max.message.bytes=1048588 instead of 16777216",
            "max.message.bytes=16777216",
        ),
        (
            WARNING,
            logs(segment_bytes="1073741824"),
            "segment.bytes=1073741824",
            "segment.bytes=33554432",
        ),
        (
            FAILURE,
            {"topics": {LOG: None}, "log": None, "refusal": "this principal lacks Create"},
            "cannot be created: this principal lacks Create",
            f"--create --topic {LOG} --partitions 8 --replication-factor 3 --config "
            "cleanup.policy=compact",
        ),
        (
            UNSEEN,
            {"topics": {LOG: None}, "log": None, "refusal": Unseen("no answer")},
            "no answer",
            "",
        ),
    ],
    "log records": [
        (UNSEEN, {"log": Unseen("no answer")}, "no answer", ""),
        (FAILURE, HIDDEN, "none of the sink's", "Revoke Write"),
        (FAILURE, NEWER, "format 9", "pip install --upgrade eos-sink"),
        (WARNING, FOREIGN, "'other-app'", "Revoke Write"),
        (
            WARNING,
            {"log": log(written(partition=9))},
            "is in partition 9, offset 7",
            "partition by partition",
        ),
    ],
    "transaction timeout": [
        (
            FAILURE,
            {"brokers": (broker(1), broker(2, transaction_max_timeout_ms="600000"))},
            "kafka-2:9092 has transaction.max.timeout.ms=600000",
            "Set transaction.max.timeout.ms=900000 in server.properties",
        ),
        (
            UNSEEN,
            BLIND,
            "the brokers' transaction.max.timeout.ms",
            "--operation DescribeConfigs --cluster",
        ),
        (WARNING, batch_of(500_000), "took 500 s of 900 s", "maxOffsetsPerTrigger"),
        (FAILURE, batch_of(895_000), "took 895 s of 900 s", "maxOffsetsPerTrigger"),
    ],
    "group session": [
        (
            FAILURE,
            all_brokers(group_max_session_timeout_ms="300000"),
            "eos.transaction.timeout.ms=900000 needs 960000 ms, and the brokers have "
            "group.max.session.timeout.ms=300000",
            "eos.transaction.timeout.ms=240000",
        ),
        (UNSEEN, BLIND, "group.max.session.timeout.ms", "kafka-acls"),
    ],
    "expiry": [
        (
            WARNING,
            all_brokers(transactional_id_expiration_ms="3600000"),
            "transactional.id.expiration.ms=3600000",
            f"transactional.id.expiration.ms={7 * DAY_MS}",
        ),
        (UNSEEN, BLIND, "transactional.id.expiration.ms", "kafka-acls"),
    ],
    "verification": [
        (
            FAILURE,
            {"brokers": (broker(1), broker(2, transaction_partition_verification_enable="false"))},
            "false on kafka-2:9092",
            "--entity-type brokers --entity-default --add-config "
            "transaction.partition.verification.enable=true",
        ),
        (UNSEEN, BLIND, "transaction.partition.verification.enable", "kafka-acls"),
    ],
    "names": [
        (
            WARNING,
            {"log": log(written(), written(OTHER))},
            f"{OTHER} and {QUERY} have both written stream stream to readings",
            "Run only one of them",
        ),
        (
            WARNING,
            {"transactions": [state("eos-sink-shop", TransactionStatus.EMPTY)]},
            "none of the sink's: eos-sink-shop",
            "eos.transactional.id.prefix",
        ),
        (
            WARNING,
            {"transactions": [state("eos-sink-gone-0123456789-1-7", TransactionStatus.EMPTY)]},
            "does not know: eos-sink-gone-0123456789-1-7",
            "eos.transactional.id.prefix",
        ),
        (
            WARNING,
            {"members": {f"eos-sink-{QUERY}": [MemberDescription("", "a-client", "/10.0.0.7")]}},
            "not the driver: a-client on 10.0.0.7",
            "group.id of its own",
        ),
        (UNSEEN, {"transactions": Unseen("no answer")}, "transactional ids", ""),
        (UNSEEN, {"groups": Unseen("no answer")}, "groups", ""),
        (UNSEEN, {"log": Unseen("no answer")}, "the names of queries", ""),
    ],
}


@pytest.mark.parametrize(
    ("check", "level", "changes", "what", "remedy"),
    [
        pytest.param(check, *case, id=f"{check}, {case[0].value}: {case[2]}")
        for check, some in CASES.items()
        for case in some
    ],
)
def test_a_fault_is_reported_with_its_remedy(
    check: str, level: Level, changes: dict[str, Any], what: str, remedy: str
) -> None:
    found = of(check, findings(facts(**changes)))
    matching = [each for each in found.get(level, ()) if what in each.what]
    assert len(matching) == 1, found
    assert remedy in "\n".join(matching[0].remedy)
    assert matching[0].remedy or not remedy
    assert bool(matching[0].meaning) == (level is not UNSEEN)


def test_each_check_of_a_cluster_has_a_case() -> None:
    assert CASES.keys() == set(CHECKS) - {"options", "clients"}


def worst(seen: Facts, check: str, subject: Subject = SUBJECT) -> str:
    found = of(check, findings(seen, subject))
    return "; ".join(each.what for level in found for each in found[level] if level is not Level.OK)


def test_without_a_name_all_queries_are_checked() -> None:
    all_queries = replace(SUBJECT, names=None)
    assert all_queries.probe == "eos-sink-permission"
    assert SUBJECT.probe == f"eos-sink-{QUERY}-permission"
    groups = facts(groups=[f"eos-sink-{QUERY}", "eos-sink-old"])
    assert "belong to no query of the log: eos-sink-old" in worst(groups, "names", all_queries)
    assert worst(groups, "names") == ""
    slow = facts(**batch_of(500_000))
    assert "took 500 s" in worst(slow, "transaction timeout", all_queries)


def test_the_latest_batch_is_compared_with_the_given_time_out() -> None:
    shorter = replace(SUBJECT, transaction_timeout_ms=100_000)
    assert "took 120 s of 100 s" in worst(
        facts(**batch_of(120_000)), "transaction timeout", shorter
    )


def test_a_log_that_cannot_be_seen_hides_no_other_user_of_the_names() -> None:
    seen = facts(
        log=Unseen("no answer"),
        transactions=[state("eos-sink-shop", TransactionStatus.EMPTY)],
        members={f"eos-sink-{QUERY}": [MemberDescription("", "a-client", "/10.0.0.7")]},
    )
    told = worst(seen, "names")
    assert "none of the sink's: eos-sink-shop" in told
    assert "not the driver: a-client" in told
    assert "the names of queries: no answer" in told


def test_a_copy_that_writes_to_another_topic_is_no_twin() -> None:
    other_topic = log(written(), written(OTHER, topic="audit"))
    assert worst(facts(log=other_topic), "names") == ""


def test_two_frames_of_one_query_are_no_twins() -> None:
    frame = BatchId("foreach:x", 4)
    other_topic = log(written(batch=frame), written(OTHER, topic="audit", batch=frame))
    assert worst(facts(log=other_topic), "names") == ""


def test_a_declared_partition_that_is_not_there_is_a_failure() -> None:
    declared = replace(SUBJECT, destinations=Destinations({"readings": (range(9),)}))
    seen = of("topic", findings(facts(), declared))[FAILURE]
    assert seen[0].what.endswith("eos.destinations declares partition 8")
    assert seen[0].remedy == (COMMANDS.add_partitions("readings", 9),)


def test_a_dead_letter_topic_takes_larger_rows_and_rows_without_a_key() -> None:
    subject = replace(SUBJECT, dead_letter_topic="dead")
    narrow = topic("readings", max_message_bytes="1000")

    def found(**settings: Any) -> str:
        topics = {"readings": narrow, "dead": topic("dead", **settings)}
        return worst(facts(topics=topics, named=("readings", "dead")), "topic", subject)

    assert found(max_message_bytes="10000") == ""
    assert found(max_message_bytes="1000") == "dead has max.message.bytes=1000 instead of 10000"
    compacted = found(max_message_bytes="10000", cleanup_policy="compact")
    assert compacted == "dead has cleanup.policy=compact instead of delete"


def test_a_query_with_a_dead_letter_topic_needs_to_see_the_settings_of_its_topics() -> None:
    subject = replace(SUBJECT, dead_letter_topic="dead")
    blind = replace(topic("readings"), allowed=frozenset({"READ", "WRITE", "DESCRIBE"}))
    seen = facts(topics={"readings": blind})
    assert worst(seen, "permissions") == ""
    assert "DescribeConfigs on topic readings" in worst(seen, "permissions", subject)


def test_timestamps_of_the_query_need_a_topic_that_keeps_them() -> None:
    timed = replace(SUBJECT, timestamp_column="at")
    stamped = topic("readings", message_timestamp_type="LogAppendTime")
    seen = facts(topics={"readings": stamped})
    assert "LogAppendTime" in worst(seen, "topic", timed)
    assert worst(seen, "topic") == ""


def test_warnings_of_the_options_are_reported() -> None:
    client = replace(CLUSTER.client, warnings=("Option kafka.x is ignored.",))
    subject = replace(SUBJECT, cluster=replace(CLUSTER, client=client))
    assert worst(facts(), "options", subject) == "Option kafka.x is ignored"


def test_a_missing_log_is_created_by_the_first_start() -> None:
    found = of("decision log", findings(facts(topics={LOG: None}, log=None)))
    assert "the first start creates it with 8 partitions and 3 copies" in found[Level.OK][0].what


def test_a_missing_log_may_get_copies_on_brokers_that_are_down() -> None:
    seen = facts(topics={LOG: None}, log=None, brokers=brokers()[:2])
    found = of("decision log", findings(seen))
    assert "8 partitions and at least 2 copies" in found[Level.OK][0].what


def test_an_empty_cluster_has_no_conflicts() -> None:
    nothing = facts(
        topics={TRANSACTIONS: None, "__consumer_offsets": None, LOG: None},
        log=None,
        groups=[],
        members={},
        transactions=(),
    )
    assert levels(findings(nothing)) == {Level.OK}


def test_commands_are_for_the_brokers_and_the_principal_that_were_given() -> None:
    secured = replace(COMMANDS, secured=True, principal="User:readings")
    (grant,) = secured.grant([Acl("Read", Resource.TOPIC, "a b")])
    assert grant == (
        "kafka-acls --bootstrap-server kafka:9092 --command-config admin.properties --add "
        "--allow-principal User:readings --operation Read --topic 'a b'"
    )
    policy = COMMANDS.set_topic("t", "cleanup.policy", "compact,delete")
    assert policy.endswith("--entity-name t --add-config 'cleanup.policy=[compact,delete]'")
