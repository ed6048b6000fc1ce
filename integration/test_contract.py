"""Real Kafka and the real clients keep the contract that the fake keeps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition as AdminPartition

from eos_sink.errors import FailureKind
from eos_sink.identity import QueryNames
from eos_sink.kafka import member as member_module
from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Sizes
from eos_sink.kafka.member import ConfluentMember
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.options import parse_options
from eos_sink.protocol.values import ProduceFailed, ProducerFenced
from eos_sink.rows.rows import Rows
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import Offsets, Source
from eos_sink_lab.testing.waiting import wait_until
from integration.topics import make_again, unique
from tests.contract.admin import AdminContract, TopicScanContract
from tests.contract.harness import SESSION_MS, Record, Task
from tests.contract.members import MemberContract
from tests.contract.reading import (
    CompactionContract,
    LogContract,
    MarkerContract,
    TopicContract,
    VisibilityContract,
)
from tests.contract.rows import RowsContract
from tests.contract.sources import SourceContract
from tests.contract.transactions import ControlContract, ProducerContract, StandstillContract

pytestmark = pytest.mark.kafka("4.3.0", "3.9.1")

# A broker's cleaner looks for work every 15 seconds.
_CLEANED_S = 60.0
ENDING = ["PrepareCommit", "PrepareAbort", "PrepareEpochFence"]


class _Remembering(ConfluentKafka):
    """The real clients, all of which can be closed."""

    def __init__(self, config: ClusterConfig) -> None:
        super().__init__(config)
        self._clients: list[ConfluentProducer | ConfluentMember] = []

    def producer(
        self, transactional_id: str, timeout_ms: int, sizes: Sizes | None = None
    ) -> ConfluentProducer:
        self._clients.append(client := super().producer(transactional_id, timeout_ms, sizes))
        return client

    def log_producer(self, transactional_id: str, timeout_ms: int) -> ConfluentProducer:
        self._clients.append(client := super().log_producer(transactional_id, timeout_ms))
        return client

    def member(self, group: str, instance_id: str, session_ms: int) -> ConfluentMember:
        self._clients.append(client := super().member(group, instance_id, session_ms))
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        super().close()


class KafkaHarness:
    """Implements `tests.contract.harness.Harness`."""

    max_timeout_ms = 900_000
    max_session_ms = 1_800_000

    def __init__(
        self,
        cluster: KafkaCluster,
        admin: KafkaAdminClient,
        *,
        native: bool = True,
    ) -> None:
        self._cluster = cluster
        self._admin = admin
        self._topics = 0
        self._made: list[_Remembering] = []
        self._looked: list[ConfluentAdmin] = []
        self._given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "eos.id": unique("contract"),
            "eos.log.topic": unique("log"),
            "eos.native": str(native),
            # Not among the transactions that the tests of the commands list.
            "eos.transactional.id.prefix": "contract-",
        }
        self._options = parse_options(self._given)

    @property
    def names(self) -> QueryNames:
        return self._options.names

    def kafka(self, **settings: str) -> ConfluentKafka:
        more = {name.replace("_", "."): value for name, value in settings.items()}
        kafka = _Remembering(parse_options({**self._given, **more}).cluster)
        self._made.append(kafka)
        return kafka

    def admin(self) -> ConfluentAdmin:
        admin = ConfluentAdmin(self._options.cluster)
        self._looked.append(admin)
        return admin

    def close(self) -> None:
        """Leave no client behind that would look for an ended broker for the rest of the run."""
        for clients in (self._made, self._looked):
            for each in clients:
                each.close()

    def create_topic(
        self,
        partitions: int = 1,
        *,
        compacted: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        self._topics += 1
        name = f"{self.names.query}-{self._topics}"
        config: dict[str, object] = dict(settings or {})
        if compacted:
            config |= {"cleanup.policy": "compact", "segment.ms": 100}
            config["min.cleanable.dirty.ratio"] = 0.001
        self._cluster.create_topic(name, partitions, config=config)
        return name

    def make_again(self, topic: str) -> None:
        make_again(self._cluster, topic, partitions=1)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        offsets = Offsets(Source(self._cluster.bootstrap_servers, topic))
        wait_until(
            lambda: offsets.find_high()[partition] >= before,
            self.deadline(),
            f"{topic} reaches {before}, with all markers",
        )
        self._admin.delete_records({AdminPartition(topic, partition): before})

    def compact(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap_servers})
        place = TopicPartition(topic, 0, 0)

        def is_cleaned() -> bool:
            # The segment that is being written is not cleaned: later records close it.
            for key in (b"k", b"other"):
                producer.produce(topic, b"v", key=key, partition=0)
                producer.flush(10)
            return _first_offset(self._cluster, place) > 0

        wait_until(is_cleaned, self.deadline(_CLEANED_S), f"{topic} is cleaned")

    def read_committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(record.key, record.value) for record in self.read_records(topic)]

    def read_records(self, topic: str) -> list[Record]:
        self._await_markers()
        consumer = Consumer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "group.id": "contract-reader",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            return [each for number in partitions for each in _read(consumer, topic, number)]
        finally:
            consumer.close()

    @contextlib.contextmanager
    def standstill(self) -> Iterator[None]:
        (node,) = self._cluster.nodes
        node.pause()
        try:
            yield
        finally:
            node.resume()

    def idle_member(self) -> ConfluentMember:
        kafka = self.kafka()
        kafka.log_reader(self.names, self.deadline())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(member_module, "_LONGEST_POLL_INTERVAL_MS", SESSION_MS)
            member = kafka.member(self.names.group, self.names.driver, SESSION_MS)
        member.join(self.deadline())
        # Its client has ended the heartbeats by itself.
        self.expire_session(self.names.group)
        return member

    def expire_session(self, group: str) -> None:
        wait_until(
            lambda: not self._admin.describe_groups([group])[group]["members"],
            self.deadline(),
            f"{group} has no member",
        )

    def deadline(self, seconds: float = 30) -> Deadline:
        return Deadline(seconds)

    def _await_markers(self) -> None:
        wait_until(
            lambda: not any(self._admin.list_transactions(state_filters=ENDING).values()),
            self.deadline(),
            "all markers are written",
        )


def _first_offset(cluster: KafkaCluster, place: TopicPartition) -> int:
    """Of the first record that is there, committed or not."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "contract-reader",
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([place])
        message = consumer.poll(30)
        assert message is not None
        return message.offset() or 0
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partition: int) -> list[Record]:
    """One partition up to its last stable offset."""
    consumer.assign([TopicPartition(topic, partition, 0)])
    records: list[Record] = []
    deadline = Deadline(30)
    while not deadline.passed:
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            headers: Any = tuple(message.headers() or ())
            _, timestamp = message.timestamp()
            records.append(Record(partition, message.key(), message.value(), headers, timestamp))
        elif error.code() == KafkaError._PARTITION_EOF:
            return records
        else:
            raise AssertionError(error)
    raise AssertionError(f"{topic}[{partition}] could not be read to its end")


@pytest.fixture(scope="module")
def admin(kafka: KafkaCluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def harness(kafka: KafkaCluster, admin: KafkaAdminClient) -> Iterator[KafkaHarness]:
    harness = KafkaHarness(kafka, admin)
    yield harness
    harness.close()


@pytest.fixture
def plain(kafka: KafkaCluster, admin: KafkaAdminClient) -> Iterator[KafkaHarness]:
    """With rows that go through confluent-kafka."""
    harness = KafkaHarness(kafka, admin, native=False)
    yield harness
    harness.close()


TestProducer = ProducerContract


@pytest.mark.kafka("4.3.0")
class TestRows(RowsContract):
    def test_a_row_that_is_larger_than_all_room_is_not_waited_for(
        self, harness: KafkaHarness
    ) -> None:
        for native in ("true", "false"):
            task = Task.start(harness, kafka_buffer_memory="10240", eos_native=native)
            with pytest.raises(ProduceFailed, match=r"buffer\.memory") as failed:
                task.producer.produce_rows(Rows(pa.array([b"x" * 20_000]), topic="t"))
            assert failed.value.kind is FailureKind.MESSAGE_REJECTED
            task.abort()

    def test_a_fenced_producer_does_not_wait_for_room(self, harness: KafkaHarness) -> None:
        """It would wait for as long as rows may take to be delivered."""
        topic = harness.create_topic()
        rows = Rows(pa.array([b"%d" % number for number in range(5000)]), topic=topic)
        older = Task.start(harness, kafka_queue_buffering_max_messages="100")
        older.write(topic, b"older")
        Task.start(harness)
        with pytest.raises((ProducerFenced, ProduceFailed)):
            older.producer.produce_rows(rows)


@pytest.mark.long
@pytest.mark.kafka("3.9.1")
class TestRowsOnAnOlderBroker(RowsContract):
    pass


@pytest.mark.long
class TestPlainProducer(ProducerContract):
    @pytest.fixture
    def harness(self, plain: KafkaHarness) -> KafkaHarness:
        return plain


@pytest.mark.long
class TestPlainRows(RowsContract):
    @pytest.fixture
    def harness(self, plain: KafkaHarness) -> KafkaHarness:
        return plain


TestControl = ControlContract


@pytest.mark.long
class TestStandstill(StandstillContract):
    pass


TestMember = MemberContract
TestLog = LogContract
TestVisibility = VisibilityContract


class TestSource(SourceContract):
    @pytest.mark.kafka("4.3.0")
    def test_members_by_the_consumer_protocol_of_kip_848_are_seen(
        self, harness: KafkaHarness, kafka: KafkaCluster
    ) -> None:
        group, topic = unique("readers"), harness.create_topic()
        settings = {"group.id": group, "group.protocol": "consumer"}
        reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
        try:
            reader.subscribe([topic])
            deadline = harness.deadline()
            while not reader.assignment() and not deadline.passed:
                reader.poll(0.1)
            members = harness.kafka().describe_groups([group], harness.deadline())[group]
            assert isinstance(members, tuple)
            assert len(members) == 1
        finally:
            reader.close()
        assert harness.kafka().describe_groups([group], harness.deadline()) == {group: ()}


@pytest.mark.kafka("4.3.0")
@pytest.mark.long
class TestCompaction(CompactionContract):
    pass


TestMarkers = MarkerContract
TestTopicScan = TopicScanContract


@pytest.mark.kafka("4.3.0")
class TestAdmin(AdminContract):
    pass


@pytest.mark.long
@pytest.mark.kafka("3.9.1")
class TestAdminOfAnOlderBroker(AdminContract):
    pass


TestTopic = TopicContract
