"""Permissions, as people read and give them."""

from __future__ import annotations

import pytest

from eos_sink.acls import Acl, Resource

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


@pytest.mark.parametrize(
    ("acl", "arguments"),
    [
        (ON_TOPIC, "--operation Write --topic orders"),
        (
            PREFIXED,
            "--operation Describe --transactional-id eos-sink- --resource-pattern-type prefixed",
        ),
        (ON_CLUSTER, "--operation DescribeConfigs --cluster"),
        (Acl("Read", Resource.GROUP, "a b"), "--operation Read --group 'a b'"),
    ],
)
def test_a_permission_is_given_by_a_command(acl: Acl, arguments: str) -> None:
    assert acl.arguments == arguments
