"""Declared destinations: how they are written, what they allow, what is checked of them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from eos_sink.driver.check_destinations import check_destinations
from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.interfaces import PartitionState, TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.destinations import Destinations, parse_destinations
from eos_sink.options import parse_options

ENOUGH = {"kafka.bootstrap.servers": "b:9092", "eos.id": "q"}
OPERATIONS = {"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"}


def topic(*in_sync: int, replicas: int = 3, **settings: str) -> TopicDescription:
    """`settings` with `_` for `.`."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    partitions = {n: PartitionState(1, replicas, count) for n, count in enumerate(in_sync)}
    return TopicDescription("a", partitions, named, frozenset(OPERATIONS))


HEALTHY = topic(3, 3, 3, 3, min_insync_replicas="2")


def declared(text: str) -> Destinations:
    found = parse_destinations(text)
    assert found is not None
    return found


@pytest.mark.parametrize("blank", ["", "  ", " , "])
def test_nothing_declared_is_no_declaration(blank: str) -> None:
    assert parse_destinations(blank) is None
    assert parse_options({**ENOUGH, "eos.destinations": blank}).destinations is None


def test_topics_and_partitions_are_declared() -> None:
    places = declared("payments, audit:0-2 ,audit:7,a.b_c-D:4")
    assert places.topics == ["a.b_c-D", "audit", "payments"]
    allowed = {(t, p) for t in ("payments", "audit", "other") for p in (None, 0, 2, 3, 7, 8)}
    assert {place for place in allowed if places.allow(*place)} == {
        *(("payments", p) for p in (None, 0, 2, 3, 7, 8)),
        *(("audit", p) for p in (0, 2, 7)),
    }
    assert pickle.loads(pickle.dumps(places)) == places


@pytest.mark.parametrize("wrong", ["a:b", "a:1-", "a:-1", "a b", "a:1:2", "ü", "a/b", "a:3-2"])
def test_what_cannot_be_read_is_an_error_that_shows_how_to_write_it(wrong: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_destinations(f"good, {wrong}")
    assert wrong in str(error.value)


def test_a_topic_is_declared_whole_or_by_its_partitions() -> None:
    for text in ("a, a:1", "a:1, a"):
        with pytest.raises(ConfigurationError):
            parse_destinations(text)


def test_the_option_topic_must_be_declared() -> None:
    given = {**ENOUGH, "eos.destinations": "payments:0-3"}
    assert parse_options({**given, "topic": "payments"}).destinations == declared("payments:0-3")
    with pytest.raises(ConfigurationError) as error:
        parse_options({**given, "topic": "audit"})
    assert error.value.data == {"kafka_error": "UnknownTopicOrPartition", "topic": "audit"}


def test_a_refused_row_is_reported_with_kafkas_name_and_its_partition() -> None:
    places = declared("payments, audit:0-3")
    error = places.make_error("other", 3)
    assert "UnknownTopicOrPartition: a row goes to other, partition 3" in str(error)
    assert error.data == {
        "kafka_error": "UnknownTopicOrPartition",
        "topic": "other",
        "partition": 3,
    }
    assert "has no partition" in str(places.make_error("audit", None))


def test_what_is_there_and_in_sync_passes() -> None:
    assert check_destinations(declared("a, b:0-3"), {"a": HEALTHY, "b": HEALTHY}) == []


def test_a_missing_topic_and_a_missing_partition_are_errors_with_kafkas_name() -> None:
    for text, views, topic in (
        ("a, b", {"a": HEALTHY, "b": None}, "b"),
        ("a:0-4", {"a": HEALTHY}, "a"),
    ):
        with pytest.raises(ClusterError) as error:
            check_destinations(declared(text), views)
        assert error.value.data == {"kafka_error": "UnknownTopicOrPartition", "topic": topic}


@pytest.mark.parametrize(
    ("missing", "name"),
    [("WRITE", "Write"), ("READ", "Read")],
)
def test_a_permission_that_is_missing_is_named(missing: str, name: str) -> None:
    view = replace(HEALTHY, allowed=frozenset(OPERATIONS - {missing}))
    with pytest.raises(ClusterError) as error:
        check_destinations(declared("a"), {"a": view})
    assert error.value.data == {"missing": [f"{name} on topic a"]}
    assert f"--operation {name} --topic a" in error.value.remedy
    untold = replace(HEALTHY, allowed=None)
    assert check_destinations(declared("a"), {"a": untold}) == []


def test_a_partition_with_too_few_copies_in_sync_is_an_error() -> None:
    view = topic(3, 1, 2, 3, min_insync_replicas="2")
    with pytest.raises(ClusterError) as error:
        check_destinations(declared("a"), {"a": view})
    assert error.value.data == {"topic": "a", "partitions": [1], "min.insync.replicas": 2}
    assert check_destinations(declared("a:0, a:2-3"), {"a": view}) == []


def test_more_in_sync_copies_wanted_than_there_are_is_an_error_that_no_wait_mends() -> None:
    view = topic(2, replicas=2, min_insync_replicas="3")
    with pytest.raises(ClusterError, match="fewer") as error:
        check_destinations(declared("a"), {"a": view})
    assert error.value.data == {"topic": "a", "partitions": [0], "min.insync.replicas": 3}


def test_a_single_copy_in_sync_is_a_warning() -> None:
    (warning,) = check_destinations(declared("a"), {"a": topic(3, 3, min_insync_replicas="1")})
    assert "min.insync.replicas=1" in warning
    hidden = replace(HEALTHY, settings=Unseen("this principal lacks DescribeConfigs"))
    assert check_destinations(declared("a"), {"a": hidden}) == []


def test_a_topic_that_cannot_be_seen_is_an_error() -> None:
    acl = Acl("Describe", Resource.TOPIC, "a")
    with pytest.raises(ClusterError) as error:
        check_destinations(declared("a"), {"a": Unseen(f"lacks {acl}", (acl,))})
    assert error.value.data["missing"] == ["Write on topic a", "Read on topic a"]
    with pytest.raises(ClusterError) as error:
        check_destinations(declared("a"), {"a": Unseen("no answer")})
    assert "no answer" in error.value.message
