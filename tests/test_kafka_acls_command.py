"""The commands that grant permissions are read as Kafka's own tool reads them."""

from __future__ import annotations

import pytest

from eos_sink.kafka_config.acls import Acl, Resource, kafka_acls
from tests.kafka_acls_command import parse_kafka_acls

HEAD = "kafka-acls --bootstrap-server b:1 --command-config admin.properties --add"


@pytest.mark.parametrize(
    "acl",
    [
        Acl("Write", Resource.TOPIC, "orders"),
        Acl("Describe", Resource.TRANSACTIONAL_ID, "eos-sink-", prefixed=True),
        Acl("Read", Resource.GROUP, "a b"),
        Acl("Create", Resource.CLUSTER, "kafka-cluster"),
    ],
    ids=str,
)
def test_the_command_that_gives_a_permission_is_read_back(acl: Acl) -> None:
    assert [parse_kafka_acls(each) for each in kafka_acls([acl])] == [("NAME", (acl,))]


def test_a_command_may_give_several_permissions() -> None:
    command = f"{HEAD} --allow-principal User:ann --operation Read --operation Write --topic a"
    assert parse_kafka_acls(f"{command} --topic b")[1] == tuple(
        Acl(operation, Resource.TOPIC, name) for name in "ab" for operation in ("Read", "Write")
    )


@pytest.mark.parametrize(
    "command",
    [
        f"{HEAD} --operation Read --topic a",
        f"{HEAD} --allow-principal User:ann --operation Read --topc a",
        "kafka-acls --list --allow-principal User:ann --operation Read --topic a",
    ],
)
def test_what_is_not_understood_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="kafka-acls"):
        parse_kafka_acls(command)
