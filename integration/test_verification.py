"""Why brokers have to verify transactions: what becomes of a row that a live task writes after its
transaction was aborted from outside, under the same epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionalProducer
from eos_sink.kafka_config.broker_versions import VERIFICATION
from eos_sink.options import parse_options
from eos_sink.protocol.values import EndOutcome, ProduceFailed, ProducerFenced, Transaction
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import Offsets, Source
from integration.checker import read_topic
from integration.kafka_tools import carry_out
from integration.own_kafka import start_own_kafka

PATIENCE_S = 30.0

pytestmark = pytest.mark.long

Start = Callable[..., KafkaCluster]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as ending:
        yield lambda version, **properties: ending.enter_context(
            start_own_kafka(version=version, properties=properties)
        )


def options_for(cluster: KafkaCluster) -> SinkOptions:
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "eos.id": "q",
        "topic": "t",
        "eos.inline.bytes": "0",
    }
    return parse_options(given)


class Attempts:
    """A task that goes on writing after its transaction was aborted, and the attempt after it."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._kafka = ConfluentKafka(options_for(cluster).cluster)
        cluster.create_topic("t")

    def write(self, value: bytes) -> TransactionalProducer:
        producer = self._kafka.producer("eos-sink-q-0-0", 60_000)
        producer.init(Deadline(PATIENCE_S))
        producer.begin()
        self.write_on(producer, value)
        return producer

    @staticmethod
    def write_on(producer: TransactionalProducer, value: bytes) -> None:
        producer.produce("t", value, partition=0)
        producer.flush(Deadline(PATIENCE_S))

    def end(self, producer: TransactionalProducer, *, commit: bool) -> None:
        """From outside, as the driver does."""
        found = producer.identity(Deadline(PATIENCE_S))
        ended = Transaction("eos-sink-q-0-0", found.producer_id, found.epoch)
        outcomes = self._kafka.control().end([ended], commit, Deadline(PATIENCE_S))
        assert outcomes == {ended: EndOutcome.DONE}

    def wait_marker(self, end: int) -> None:
        deadline = Deadline(PATIENCE_S)
        offsets = Offsets(Source(self._cluster.bootstrap_servers, "t"))
        while offsets.find_high()[0] < end:
            assert not deadline.passed, "the marker is not written"

    def close(self) -> None:
        self._kafka.close()

    def visible(self) -> list[str]:
        return read_topic(self._cluster.bootstrap_servers, "t").values()


@pytest.mark.parametrize(("version", "verifies"), [("3.5.2", None), ("4.3.0", "false")])
def test_without_verification_an_aborted_row_is_committed_by_the_next_attempt(
    start: Start, version: str, verifies: str | None
) -> None:
    cluster = start(version, **({VERIFICATION: verifies} if verifies else {}))
    with closing(Attempts(cluster)) as attempts:
        zombie = attempts.write(b"first")
        attempts.end(zombie, commit=False)
        attempts.wait_marker(2)
        attempts.write_on(zombie, b"late")
        attempts.wait_marker(3)
        attempts.end(attempts.write(b"repeated"), commit=True)
        attempts.wait_marker(5)
        assert attempts.visible() == ["late", "repeated"]


@pytest.mark.parametrize("version", ["3.6.2", "3.9.1", "4.3.0"])
def test_with_verification_the_late_row_is_refused(start: Start, version: str) -> None:
    with closing(Attempts(start(version))) as attempts:
        zombie = attempts.write(b"first")
        attempts.end(zombie, commit=False)
        attempts.wait_marker(2)
        attempts.write_on(zombie, b"late")
        with pytest.raises((ProduceFailed, ProducerFenced)):
            zombie.commit(Deadline(PATIENCE_S))
        attempts.end(attempts.write(b"repeated"), commit=True)
        attempts.wait_marker(4)
        assert attempts.visible() == ["repeated"]


def test_a_broker_before_3_6_is_refused_before_anything_is_written(start: Start) -> None:
    cluster = start("3.5.2")
    cluster.create_topic("t")
    options = options_for(cluster)
    kafka = ConfluentKafka(options.cluster)
    with pytest.raises(ClusterError) as error:
        Planner(kafka, options).plan()
    kafka.close()
    assert error.value.data["lacking"] == ["AddPartitionsToTxn"]
    assert options.log_topic not in _topics(cluster)


def test_a_broker_that_does_not_verify_is_refused_before_anything_is_written(start: Start) -> None:
    """The setting is dynamic: it can be changed for all brokers and for one."""
    cluster = start("4.3.0")
    cluster.create_topic("t")
    options = options_for(cluster)
    kafka = ConfluentKafka(options.cluster)
    for whom in ("--entity-default", "--entity-name 1"):
        _set(cluster, whom, "false")
        with pytest.raises(ClusterError) as error:
            Planner(kafka, options).plan()
        assert error.value.data == {"broker": "1", "setting": VERIFICATION}
        assert options.log_topic not in _topics(cluster)
    # The broker's own value goes before the one for all brokers.
    _set(cluster, "--entity-name 1", "true")
    planner = Planner(kafka, options)
    planner.plan()
    planner.close()
    kafka.close()


def _topics(cluster: KafkaCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=PATIENCE_S).topics)


def _set(cluster: KafkaCluster, whom: str, value: str) -> None:
    """Args:
    whom: which brokers, as `kafka-configs` names them.
    """
    servers = cluster.bootstrap_servers
    entities = f"--bootstrap-server {servers} --alter --entity-type brokers {whom}"
    carry_out(f"kafka-configs {entities} --add-config {VERIFICATION}={value}")
    admin = AdminClient({"bootstrap.servers": servers})
    broker = ConfigResource(ResourceType.BROKER, "1")
    deadline = Deadline(PATIENCE_S)
    while admin.describe_configs([broker])[broker].result(PATIENCE_S)[VERIFICATION].value != value:
        assert not deadline.passed, "the setting does not arrive"
