"""Requests that a link holds, which a real client repeats and a real broker gets late."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster, NodeControlError, NotReadyError
from eos_sink_lab.testing.network_links import Link
from eos_sink_lab.testing.waiting import wait_until
from integration.messages import received

pytestmark = pytest.mark.sampled(5, of="held requests")

WITHIN_S = 60.0


@pytest.fixture
def link(linked: KafkaCluster) -> Iterator[Link]:
    link = linked.nodes[0].link
    yield link
    link.heal()


class Writer:
    """A producer with its own topic, and what the broker says about it."""

    def __init__(self, cluster: KafkaCluster, name: str) -> None:
        self.name, self._cluster = name, cluster
        cluster.create_topic(name)
        self.producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name}
        )

    def init(self) -> Writer:
        self.producer.init_transactions(WITHIN_S)
        return self

    def write(self, row: str) -> None:
        self.producer.begin_transaction()
        self.producer.produce(self.name, row)
        self.producer.flush(WITHIN_S)

    def commit(self) -> None:
        self.producer.commit_transaction(WITHIN_S)

    @property
    def described(self) -> tuple[str, int]:
        """The state and the epoch of its transaction."""
        admin = KafkaAdminClient(bootstrap_servers=self._cluster.direct_servers)
        try:
            found = admin.describe_transactions([self.name])[self.name]
        finally:
            admin.close()
        return found.state, found.producer_epoch

    def visible(self, count: int) -> list[str]:
        return received(self._cluster.direct_servers, self.name, count)


@pytest.fixture
def writer(linked: KafkaCluster, request: pytest.FixtureRequest) -> Writer:
    kept = [letter if letter.isalnum() else "-" for letter in request.node.name]
    return Writer(linked, "".join(kept).strip("-"))


def test_a_commit_that_was_repeated_arrives_late_and_ends_the_next_transaction(
    writer: Writer, link: Link
) -> None:
    writer.init().write("first")
    with link.hold("EndTxn", writer.name) as held:
        writer.commit()
        held.wait_held(Deadline(WITHIN_S))
        assert writer.visible(1) == ["first"]
        writer.write("second")
        open_before = writer.described
        held.deliver(Deadline(WITHIN_S))
        assert held.state == "answered"
    # Of the same epoch: the broker cannot tell it from a commit of this transaction.
    assert writer.visible(2) == ["first", "second"]
    assert open_before[0] == "Ongoing"
    committed = ("CompleteCommit", open_before[1])
    wait_until(lambda: writer.described == committed, Deadline(WITHIN_S), "the commit is complete")


def begin(writer: Writer) -> None:
    writer.init().write("row")
    writer.commit()


@pytest.mark.parametrize("kind", ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"])
def test_a_client_repeats_each_kind_of_request_that_was_held(
    writer: Writer, link: Link, kind: str
) -> None:
    with link.hold(kind, writer.name) as held:
        begin(writer)
        held.wait_held(Deadline(WITHIN_S))
        assert writer.visible(1) == ["row"]
        held.deliver(Deadline(WITHIN_S))
    assert writer.visible(1) == ["row"]


def test_requests_of_others_pass(writer: Writer, link: Link) -> None:
    with link.hold("EndTxn", "another id") as held:
        begin(writer)
        assert held.state == "armed"
        with pytest.raises(NodeControlError, match="cannot be delivered: it is armed"):
            held.deliver(Deadline(WITHIN_S))
        with pytest.raises(NotReadyError, match=r"EndTxn .* is sent and held"):
            held.wait_held(Deadline(0))
    assert writer.visible(1) == ["row"]


@pytest.mark.parametrize("end", ["drop", "heal", "reset"])
def test_a_request_that_was_dropped_never_arrives(writer: Writer, link: Link, end: str) -> None:
    writer.init().write("first")
    held = link.hold("EndTxn", writer.name)
    writer.commit()
    held.wait_held(Deadline(WITHIN_S))
    ends: dict[str, Callable[[], None]] = {
        "drop": held.drop,
        "heal": link.heal,
        "reset": link.reset,
    }
    ends[end]()
    with pytest.raises(NodeControlError, match="cannot be delivered"):
        held.deliver(Deadline(WITHIN_S))
    link.heal()
    writer.write("second")
    assert writer.described[0] == "Ongoing"


def test_a_request_whose_broker_has_ended_is_broken(
    linked: KafkaCluster, writer: Writer, link: Link
) -> None:
    writer.init().write("row")
    with link.hold("EndTxn", writer.name) as held:
        writer.commit()
        held.wait_held(Deadline(WITHIN_S))
        linked.nodes[0].kill()
        linked.nodes[0].restart()
        with pytest.raises(NodeControlError, match="it is broken"):
            held.deliver(Deadline(WITHIN_S))


def test_a_kind_that_kafka_does_not_have_is_refused(link: Link) -> None:
    with pytest.raises(ValueError, match=r"'EndTransaction'.*EndTxn"):
        link.hold("EndTransaction")
