"""The checker sees on a real Kafka what a read_committed application is given, and who waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.topic_audit import Checker, Source, audit, json_field
from eos_sink_lab.testing.waiting import wait_until
from integration.messages import transaction
from integration.topics import unique
from proof.chaos.segments import transactions

AUDIT_S = 60.0


class Topic:
    """A topic of two partitions, its writers, and a checker that reads along."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self.source = Source(kafka.bootstrap_servers, unique("checked"))
        kafka.create_topic(self.source.topic, partitions=2)
        self.checker = Checker(self.source, json_field("row"))

    def write(self, rows: Iterable[int], end: str) -> Producer:
        """One transaction; `end` is commit, abort or neither."""
        with transaction(self.source.bootstrap, end) as producer:
            for row in rows:
                value = json.dumps({"row": row}).encode()
                producer.produce(self.source.topic, value, key=b"k", partition=0)
        return producer

    def look_until(self, rows: int) -> None:
        def whole() -> bool:
            self.checker.look(0.1)
            return self.checker.check.whole() == rows

        wait_until(whole, Deadline(AUDIT_S), f"{rows} rows are visible")


@pytest.fixture
def topic(kafka: KafkaCluster) -> Iterator[Topic]:
    topic = Topic(kafka)
    yield topic
    topic.checker.close()


def test_every_row_once_is_perfect_and_what_was_aborted_is_hidden(topic: Topic) -> None:
    topic.write(range(10), "commit")
    topic.look_until(10)
    topic.write(range(10, 15), "abort")
    topic.write(range(10, 20), "commit")
    found = audit(topic.checker, expected=20, timeout_s=AUDIT_S)
    assert found.perfect
    assert (found.count.records, found.aborted) == (20, 5)


def test_what_is_on_the_brokers_disk_says_the_same(kafka: KafkaCluster, topic: Topic) -> None:
    """Kafka's own filter of what is committed is not taken at its word."""
    assert isinstance(kafka, LocalCluster)
    topic.write(range(10), "commit")
    topic.write(range(10, 15), "abort")
    topic.write(range(10, 20), "commit")
    topic.look_until(20)
    topic.write(range(20, 23), "neither")
    place = kafka.directory / "node-1" / "data"
    found = transactions({p: place / f"{topic.source.topic}-{p}" for p in range(2)})
    assert (found.committed, found.aborted, found.open) == (2, 1, 1)
    check = topic.checker.check
    assert (found.aborted_but_given(check), found.committed_but_withheld(check)) == (0, 0)
    check.offsets[0].add(12)  # the first one that was aborted, after the first marker
    assert found.aborted_but_given(check) == 1


def test_lost_and_doubled_rows_are_counted(topic: Topic) -> None:
    topic.write([0, 1, 2], "commit")
    topic.write([2, 3], "commit")
    topic.write([4], "abort")
    found = audit(topic.checker, expected=5, timeout_s=AUDIT_S)
    assert (found.count.lost, found.count.doubled) == (1, 1)
    assert not found.perfect


def test_an_open_transaction_holds_readers_up(topic: Topic) -> None:
    topic.write([0, 1], "commit")
    writer = topic.write([2], "neither")
    topic.write([3], "commit")
    found = audit(topic.checker, expected=4, timeout_s=10)
    assert (list(found.held_up), found.count.lost) == ([0], 2)
    assert not found.perfect
    writer.commit_transaction(30)
    assert audit(topic.checker, expected=4, timeout_s=AUDIT_S).held_up == {}


def test_a_record_that_only_one_of_two_readers_is_given_is_found(topic: Topic) -> None:
    topic.write(range(5), "commit")
    topic.look_until(5)
    topic.checker.check.offsets[0].add(1_000)
    found = audit(topic.checker, expected=5, timeout_s=AUDIT_S)
    assert (found.withdrawn, found.overlooked) == (1, 0)
    assert not found.perfect
    assert replace(found, withdrawn=0).perfect
