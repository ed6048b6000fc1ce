"""Many transactions of one batch, whose coordinators are on several brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.values import EndOutcome, Transaction, TransactionStatus
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import wait_until
from integration.topics import new_topic

TASKS = 24
LONG_S = 90.0
# No step of a busy machine lasts as long.
TIMEOUT_MS = 600_000


@pytest.fixture
def options(cluster: KafkaCluster) -> Iterator[SinkOptions]:
    topic = new_topic(cluster, "settling")
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    yield parse_options({**servers, "eos.id": topic, "topic": topic, "eos.inline.bytes": "0"})
    cluster.repair()


@pytest.fixture
def sink(options: SinkOptions) -> Iterator[ConfluentKafka]:
    kafka = ConfluentKafka(options.cluster)
    yield kafka
    kafka.close()


@pytest.fixture
def bystander(options: SinkOptions) -> Iterator[ConfluentKafka]:
    kafka = ConfluentKafka(options.cluster)
    yield kafka
    kafka.close()


def prepared(kafka: ConfluentKafka, options: SinkOptions) -> list[Transaction]:
    """Open transactions with one record each, left by their producers."""
    transactions, deadline = [], Deadline(LONG_S)
    for number in range(TASKS):
        name = options.names.task(0, number)
        producer = kafka.producer(name, TIMEOUT_MS)
        producer.init(deadline)
        producer.begin()
        producer.produce(options.topic or "", b"%d" % number, partition=number % 3)
        producer.flush(deadline)
        identity = producer.identity(deadline)
        producer.close()
        transactions.append(Transaction(name, identity.producer_id, identity.epoch))
    return transactions


def wait_committed(kafka: ConfluentKafka, transactions: Iterable[Transaction]) -> None:
    names, deadline = [each.transactional_id for each in transactions], Deadline(LONG_S)

    def committed() -> bool:
        states = kafka.control().describe(names, deadline).values()
        return {state.status for state in states} == {TransactionStatus.COMPLETE_COMMIT}

    wait_until(committed, deadline, "all are committed")


@pytest.mark.long
def test_a_coordinator_dies_while_a_batch_is_settled(
    cluster: KafkaCluster, options: SinkOptions, sink: ConfluentKafka, bystander: ConfluentKafka
) -> None:
    """It is paused first, so that it has requests to answer and the others have answered."""
    transactions = prepared(sink, options)
    homes = {each: cluster.transaction_coordinator(each.transactional_id) for each in transactions}
    victim = cluster.node(homes[transactions[0]])
    # A broker that an earlier test has restarted may have none yet.
    elsewhere = [each for each, home in homes.items() if home != victim.id]
    assert elsewhere
    for client in (sink, bystander):
        client.control().describe([each.transactional_id for each in homes], Deadline(LONG_S))
    victim.pause()
    with ThreadPoolExecutor() as threads:
        ending = threads.submit(sink.control().end, transactions, True, Deadline(LONG_S))
        wait_committed(bystander, elsewhere)
        victim.kill()
        assert ending.result() == dict.fromkeys(transactions, EndOutcome.DONE)
    wait_committed(bystander, transactions)
