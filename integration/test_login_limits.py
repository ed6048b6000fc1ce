"""Some clusters refuse logins above a number in a second, as Amazon MSK does with IAM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.in_process import Run
from integration.own_kafka import log_in_outside, start_own_kafka
from integration.topics import new_topic

LOGIN = {
    "kafka_security_protocol": "SASL_PLAINTEXT",
    "kafka_sasl_mechanism": "PLAIN",
    "kafka_sasl_username": "ann",
    "kafka_sasl_password": "word",
}
PATIENCE_S = 5.0
# Without a pause a client tries a hundred in a second.
FEW = 25
TASKS = 8


@pytest.fixture(scope="module")
def limiting() -> Iterator[KafkaCluster]:
    """Clients log in over its links, whose requests are not encrypted."""
    with start_own_kafka(
        proxied=True, properties=log_in_outside("PLAIN", user_ann="word")
    ) as cluster:
        yield cluster


def started(cluster: KafkaCluster, run: MakeRun) -> tuple[Run, str]:
    topic = new_topic(cluster, "readings")
    query = run(cluster, topic=topic, eos_transaction_timeout_ms="120000", **LOGIN)
    query.write(value=["a"])
    return query, topic


def join(query: Run) -> None:
    member = query.kafka.member(query.options.names.group, "other", 60_000)
    try:
        member.join(Deadline(PATIENCE_S))
    finally:
        member.close()


def open_producer(query: Run) -> None:
    producer = query.kafka.producer(query.options.names.task(0, 7), 60_000)
    try:
        producer.init(Deadline(PATIENCE_S))
    finally:
        producer.close()


def list_transactions(query: Run) -> None:
    query.kafka.control().list_transactions("any", Deadline(PATIENCE_S))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("act", [join, open_producer, list_transactions])
def test_a_client_that_is_refused_tries_again_ever_more_seldom_and_says_so(
    limiting: KafkaCluster, run: MakeRun, act: Callable[[Run], None]
) -> None:
    started(limiting, run)[0].close()
    query = run(limiting, topic="readings", **LOGIN)
    link = limiting.nodes[0].link
    if act is list_transactions:
        # The first login of a process is checked by another client.
        manager = query.kafka.control().wire._manager
        manager.run(manager.close, 1)
    link.limit_logins(0)
    try:
        with pytest.raises(EosSinkError, match="Too many connects"):
            act(query)
    finally:
        tried = link.limit_logins(None)
    assert 1 < tried < FEW


@pytest.mark.long
def test_a_batch_goes_through_with_few_more_logins_than_without_a_limit(
    limiting: KafkaCluster, run: MakeRun
) -> None:
    query, topic = started(limiting, run)
    link = limiting.nodes[0].link
    link.limit_logins(None)
    write_at_once(query)
    unlimited = link.limit_logins(8)
    write_at_once(query)
    limited = link.limit_logins(None)
    assert unlimited < limited < 3 * unlimited
    assert len(read_topic(limiting.direct_servers, topic).values()) == 1 + 2 * TASKS


def write_at_once(query: Run) -> None:
    plan = query.plan()

    def write(partition: int) -> TaskReport:
        rows = [pa.RecordBatch.from_pydict({"value": [f"{query.next}-{partition}"]})]
        batch = BatchId(query.stream, query.next)
        return TaskWriter(query.kafka, query.options, plan).write(batch, partition, rows)

    with ThreadPoolExecutor(TASKS) as pool:
        reports = list(pool.map(write, range(TASKS)))
    query.committer.commit(reports)
    query.next += 1
