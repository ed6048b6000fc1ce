"""Permissions, as people read and give them."""

from __future__ import annotations

import pytest

from eos_sink.kafka_config.acls import (
    Acl,
    Permissions,
    Resource,
    kafka_acls,
    operation_name,
    permission_error,
)

ON_TOPIC = Acl("Write", Resource.TOPIC, "orders")
PREFIXED = Acl("Describe", Resource.TRANSACTIONAL_ID, "eos-sink-", prefixed=True)
ON_CLUSTER = Acl("DescribeConfigs", Resource.CLUSTER, "kafka-cluster")


@pytest.mark.parametrize(
    ("acl", "text"),
    [
        (ON_TOPIC, "Write on topic orders"),
        (PREFIXED, "Describe on every transactional id that starts with eos-sink-"),
        (ON_CLUSTER, "DescribeConfigs on the cluster"),
    ],
)
def test_a_permission_reads_as_a_sentence_does(acl: Acl, text: str) -> None:
    assert str(acl) == text


def test_each_resource_is_granted_by_one_command() -> None:
    needs = Permissions("eos-sink-", "log")
    commands = kafka_acls([*needs.topic("my orders"), needs.transactions, ON_CLUSTER])
    start = "kafka-acls --bootstrap-server HOST:PORT --command-config admin.properties --add"
    assert commands == [
        f"{start} --allow-principal User:NAME {rest}"
        for rest in (
            "--operation Write --operation Read --topic 'my orders'",
            "--operation Write --transactional-id eos-sink- --resource-pattern-type prefixed",
            "--operation DescribeConfigs --cluster",
        )
    ]


def test_a_missing_permission_is_named_with_the_command_that_grants_it() -> None:
    error = permission_error("It failed", [ON_TOPIC, PREFIXED, ON_TOPIC])
    assert error.message == f"It failed: the query's principal lacks {ON_TOPIC}, {PREFIXED}."
    assert error.data == {"missing": [str(ON_TOPIC), str(PREFIXED)]}
    assert error.remedy.endswith("\n".join(kafka_acls([ON_TOPIC, PREFIXED])))


def test_an_operation_is_spelled_as_kafka_acls_does() -> None:
    assert operation_name("DESCRIBE_CONFIGS") == "DescribeConfigs"
