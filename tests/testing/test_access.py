"""Permissions and logins of a secured test cluster, as far as no broker is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eos_sink.kafka_config.acls import Acl, Resource, kafka_acls
from eos_sink.testing import Security, start_kafka
from eos_sink.testing.access import parse_kafka_acls
from eos_sink.testing.certificates import Authority
from eos_sink.testing.errors import BackendUnavailableError, TestClusterError
from eos_sink.testing.security import jaas, security_properties

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
    with pytest.raises(TestClusterError, match="not understood"):
        parse_kafka_acls(command)


def test_a_login_survives_quotes_and_backslashes() -> None:
    assert jaas("PLAIN", username="ann", password='a"b\\c').endswith(
        'PlainLoginModule required username="ann" password="a\\"b\\\\c";'
    )


def test_nobody_is_permitted_anything_from_the_start(tmp_path: Path) -> None:
    properties = security_properties(Security({"ann": "x"}), Authority(tmp_path))
    assert properties["allow.everyone.if.no.acl.found"] == "false"
    assert "ann" not in properties["super.users"]


def test_without_trustme_the_error_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(BackendUnavailableError):
        Authority(tmp_path)


def test_passwords_are_not_shown() -> None:
    assert "hidden" not in repr(Security({"ann": "hidden"}))


def test_a_secured_cluster_is_local_and_not_proxied() -> None:
    with pytest.raises(ValueError, match="local and not proxied"):
        start_kafka(security=Security(), proxied=True, backend="local")
    with pytest.raises(ValueError, match="containers"):
        start_kafka(security=Security(), backend="containers")
