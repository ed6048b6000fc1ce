"""The properties of test clusters."""

from __future__ import annotations

import pytest

from eos_sink.kafka_config.properties_file import read_properties
from eos_sink_lab.testing.node_properties import (
    Endpoint,
    Endpoints,
    Role,
    cluster_properties,
    node_properties,
    plan_nodes,
    properties_text,
    property_text,
)
from tests.lab.testing import layout


def test_one_broker_is_its_own_controller() -> None:
    assert [(plan.id, plan.role) for plan in plan_nodes(1)] == [(1, Role.COMBINED)]


def test_more_brokers_have_three_controllers_beside_them() -> None:
    roles = [plan.role for plan in plan_nodes(3)]
    assert roles == [Role.BROKER] * 3 + [Role.CONTROLLER] * 3


def test_a_cluster_without_brokers_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        plan_nodes(0)


@pytest.mark.parametrize(
    ("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_copies_follow_from_the_number_of_brokers(brokers: int, copies: str, in_sync: str) -> None:
    common = cluster_properties(brokers)
    for name, value in common.items():
        if name.endswith("replication.factor"):
            assert value == copies, name
        if name.endswith(("min.isr", "min.insync.replicas")):
            assert value == in_sync, name


def test_no_topic_comes_by_itself() -> None:
    assert cluster_properties(1)["auto.create.topics.enable"] == "false"


def test_a_plain_controller_advertises_nothing() -> None:
    controller = plan_nodes(3)[3]
    own = node_properties(controller, layout.six_nodes(outside=False))
    assert own["listeners"] == "CONTROLLER://:9093"
    assert "advertised.listeners" not in own
    assert "inter.broker.listener.name" not in own


def test_the_users_properties_win() -> None:
    (plan,) = plan_nodes(1)
    extra = {"auto.create.topics.enable": True, "log.retention.ms": 5, "num.io.threads": 8}
    own = node_properties(plan, layout.one_node(), extra)
    assert own["auto.create.topics.enable"] == "true"
    assert own["log.retention.ms"] == "5"
    assert own["num.io.threads"] == "8"


def test_a_listener_binds_elsewhere_than_it_is_reached() -> None:
    assert Endpoint("kafka-1", 9092, bind_host="").bind == ":9092"
    assert Endpoint("127.0.0.1", 9092).bind == "127.0.0.1:9092"
    assert Endpoints(None, Endpoint("c", 1)).address == "c:1"


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (3, "3"), ("x", "x"), (["a", "b"], "a,b"), (1.5, "1.5")],
)
def test_a_value_is_written_as_kafka_reads_it(value: object, text: str) -> None:
    assert property_text(value) == text


def test_what_is_written_is_read_back() -> None:
    properties = {"log.dirs": r"C:\kafka", "a": "x=y", "empty": ""}
    entries = read_properties("# a comment\n\n" + properties_text(properties))
    assert {entry.name: entry.value for entry in entries} == properties
