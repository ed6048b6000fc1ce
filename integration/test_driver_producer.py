"""What the driver's producer does beyond the contract: on a real broker."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka.protocol.producer.produce import ProduceRequest

from eos_sink.errors import ClusterError, FailureKind, OutcomeUnknownError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.driver_producer import DriverProducer
from eos_sink.kafka.interfaces import ProduceFailed, ProducerFenced
from eos_sink.kafka.log_topic import LOG_CONFIGURATION
from eos_sink.kafka.partitioner import hash_key
from eos_sink.kafka.rows import Rows
from eos_sink.kafka.wire import Wire
from eos_sink.options import parse_options
from eos_sink.testing import KafkaCluster
from integration.checker import read_topic
from integration.in_process import new_topic
from integration.own_kafka import start_own_kafka

pytestmark = pytest.mark.timeout(120)

Make = Callable[..., DriverProducer]


@pytest.fixture
def make(kafka: KafkaCluster) -> Iterator[Make]:
    made: list[ConfluentKafka] = []

    def make(cluster: KafkaCluster = kafka, **settings: str) -> DriverProducer:
        named = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        options = parse_options({**servers, "eos.id": f"driver-{random.random()}", **named})
        made.append(client := ConfluentKafka(options))
        producer = client.log_producer(options.names.driver, 60_000)
        producer.init(Deadline(30))
        producer.begin()
        return producer

    yield make
    for each in made:
        each.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All Produce requests."""
    requests: list[Any] = []
    send = Wire.send

    def record(self: Wire, request: Any, *given: Any) -> Any:
        if isinstance(request, ProduceRequest):
            requests.append(request)
        return send(self, request, *given)

    monkeypatch.setattr(Wire, "send", record)
    return requests


def write(producer: DriverProducer, rows: Rows) -> None:
    producer.produce_rows(rows)
    producer.commit(Deadline(30))


def test_rows_of_all_partitions_go_in_one_request_to_where_java_puts_them(
    kafka: KafkaCluster, make: Make, sent: list[Any]
) -> None:
    topic = new_topic(kafka, "placed", 7)
    keys = [b"", *(b"key-%d" % number for number in range(500))]
    write(make(), Rows(pa.array([b"v"] * len(keys)), pa.array(keys), topic))
    seen = read_topic(kafka.bootstrap_servers, topic)
    assert {each.key: each.partition for each in seen} == {key: hash_key(key) % 7 for key in keys}
    # The topic is new: its leader may have refused the first one.
    assert len(sent[-1].topic_data[0].partition_data) == 7


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_brokers_and_readers_take_every_codec(kafka: KafkaCluster, make: Make, codec: str) -> None:
    topic = new_topic(kafka, codec, 2)
    # The broker checks each record of a batch; more than one block of 64 kB.
    values = [b"%d " % number * 400 for number in range(300)]
    producer = make(compression_type=codec)
    write(producer, Rows(pa.array(values), pa.array([b"k"] * 300), topic))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == values


def test_a_partition_takes_more_than_one_request_holds(
    kafka: KafkaCluster, make: Make, sent: list[Any]
) -> None:
    topic = new_topic(kafka, "large", 1)
    values = [b"%4d" % number + b"x" * 9_996 for number in range(250)]
    producer = make()
    for part in (values[:240], values[240:]):
        producer.produce_rows(Rows(pa.array(part), topic=topic))
    producer.commit(Deadline(30))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == values
    assert len(sent) >= 4


def test_rows_are_halved_until_a_topic_takes_them(kafka: KafkaCluster, make: Make) -> None:
    topic = new_topic(kafka, "narrow", 1, max_message_bytes=5_000)
    values = [b"%4d" % number + b"x" * 996 for number in range(21)]
    told: list[tuple[str, int, int]] = []
    producer = make()
    producer.produce_rows(Rows(pa.array(values), topic=topic), lambda *at: told.append(at))
    producer.commit(Deadline(30))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == values
    assert told == [(topic, 0, 0)]


def test_a_single_row_that_a_topic_does_not_take_is_rejected_with_its_topic(
    kafka: KafkaCluster, make: Make
) -> None:
    topic = new_topic(kafka, "narrow", 1, max_message_bytes=5_000)
    producer = make()
    producer.produce_rows(Rows(pa.array([b"a", b"x" * 6_000, b"b"]), topic=topic))
    with pytest.raises(ProduceFailed) as failed:
        producer.flush(Deadline(30))
    assert failed.value.kind is FailureKind.MESSAGE_REJECTED
    assert failed.value.topic == topic
    # The failure stays, so nothing is committed.
    with pytest.raises(ProduceFailed):
        producer.commit(Deadline(30))
    producer.abort(Deadline(30))
    producer.begin()
    write(producer, Rows(pa.array([b"kept"]), topic=topic))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == [b"kept"]


def test_a_record_is_as_large_as_the_logs_topic_allows(kafka: KafkaCluster, make: Make) -> None:
    limit = LOG_CONFIGURATION["max.message.bytes"]
    log = new_topic(kafka, "log", 1, max_message_bytes=limit)
    value = random.randbytes(3_000_000)
    producer = make()
    producer._queue._log = log
    producer.produce(log, value, partition=0)
    producer.commit(Deadline(30))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, log)] == [value]


def test_sequence_numbers_go_on_over_transactions(kafka: KafkaCluster, make: Make) -> None:
    topic = new_topic(kafka, "sequences", 2)
    producer = make()
    for number in range(12):
        rows = Rows(pa.array([b"%d" % number] * 10), pa.array([b"%d" % n for n in range(10)]))
        producer.produce_rows(Rows(rows.value, rows.key, topic))
        (producer.abort if number % 3 == 2 else producer.commit)(Deadline(30))
        producer.begin()
    found = Counter(each.value for each in read_topic(kafka.bootstrap_servers, topic))
    assert found == {b"%d" % number: 10 for number in range(12) if number % 3 != 2}


def test_a_partition_that_was_added_meanwhile_is_found(kafka: KafkaCluster, make: Make) -> None:
    topic = new_topic(kafka, "growing", 1)
    producer = make()
    write(producer, Rows(pa.array([b"a"]), topic=topic))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    producer.begin()
    write(producer, Rows(pa.array([b"b"]), topic=topic, partition=pa.array([2], pa.int32())))
    assert {each.value: each.partition for each in read_topic(kafka.bootstrap_servers, topic)} == {
        b"a": 0,
        b"b": 2,
    }


def test_a_topic_that_does_not_exist_is_an_error(make: Make) -> None:
    producer = make(topic_metadata_propagation_max_ms="1000")
    producer.produce_rows(Rows(pa.array([b"a"]), topic="no-such-topic"))
    with pytest.raises(ClusterError) as error:
        producer.commit(Deadline(30))
    assert "no-such-topic" in str(error.value)


def test_a_topic_is_created_where_brokers_do_so(make: Make) -> None:
    with start_own_kafka(properties={"auto.create.topics.enable": "true"}) as generous:
        write(make(generous), Rows(pa.array([b"a"]), topic="made"))
        assert [each.value for each in read_topic(generous.bootstrap_servers, "made")] == [b"a"]


def test_a_producer_without_an_answer_is_not_used_again(
    kafka: KafkaCluster, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker would take its next batch for one that it has."""
    topic = new_topic(kafka, "lost", 1)
    producer = make()
    gather = Wire.gather

    async def lose(self: Wire, futures: Any, deadline: Deadline) -> Any:
        answers = await gather(self, futures, deadline)
        written = [each for each in answers.values() if type(each).__name__ == "ProduceResponse"]
        return dict.fromkeys(answers) if written else answers

    monkeypatch.setattr(Wire, "gather", lose)
    producer.produce_rows(Rows(pa.array([b"a"]), topic=topic))
    with pytest.raises(OutcomeUnknownError):
        producer.commit(Deadline(30))
    producer.abort(Deadline(30))
    with pytest.raises(AssertionError):
        producer.begin()
    assert read_topic(kafka.bootstrap_servers, topic) == ()


def test_a_fenced_producer_cannot_commit_what_it_wrote(kafka: KafkaCluster, make: Make) -> None:
    topic = new_topic(kafka, "fenced", 1)
    producer = make()
    producer.produce_rows(Rows(pa.array([b"a"]), topic=topic))
    producer.flush(Deadline(30))
    successor = DriverProducer(producer._control, {}, producer._id, 60_000, producer._permissions)
    successor.init(Deadline(30))
    with pytest.raises(ProducerFenced):
        producer.commit(Deadline(30))
    assert read_topic(kafka.bootstrap_servers, topic) == ()
