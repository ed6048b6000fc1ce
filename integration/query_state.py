"""What is in Kafka of a query, and what a late attempt of one of its tasks does to it."""

from __future__ import annotations

from contextlib import closing

from eos_sink.decision_log import DecisionRegister, LogEntry
from eos_sink.identity import QueryNames
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionalProducer

_PATIENCE_S = 90.0


def read_log(kafka: ConfluentKafka, names: QueryNames, seconds: float = _PATIENCE_S) -> LogEntry:
    """The latest record of the decision log, once no open transaction holds it back."""
    with closing(DecisionRegister(kafka, names)) as register:
        return register.read(Deadline(seconds))


def open_transaction(kafka: ConfluentKafka, name: str, topic: str) -> TransactionalProducer:
    """A transaction with a row in the first partition, of any program."""
    producer = kafka.producer(name, 300_000)
    producer.init(Deadline(_PATIENCE_S))
    producer.begin()
    producer.produce(topic, b"row", partition=0)
    producer.flush(Deadline(_PATIENCE_S))
    return producer


def take_id(kafka: ConfluentKafka, names: QueryNames, slot: int, partition: int) -> None:
    """What a late attempt of a task does first."""
    init_id(kafka, names.task(slot, partition))


def init_id(kafka: ConfluentKafka, name: str, seconds: float = _PATIENCE_S) -> None:
    """Abort what is open under a transactional id."""
    with closing(kafka.producer(name, 60_000)) as producer:
        producer.init(Deadline(seconds))
