"""Networks that carry little: a batch is smaller then, or takes longer, but the query goes on."""

from __future__ import annotations

import random
from typing import Any

import pytest
from confluent_kafka import Producer

from eos_sink.errors import EosSinkError, FailureKind, ProduceFailedError
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.protocol.model import BatchId, stream_subject
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic, unique

TASKS, ROW_BYTES, BATCHES = 20, 60_000, 5
# A third of the driver's step is for the rows: 5 s, of which all of them would take 12.
STEP_MS, BYTES_PER_SECOND = "15000", 100_000
# The partition of the log takes 16 s, more than a third of the step; read twice, it takes longer.
LOG_MB, LOG_STEP_MS, LOG_BYTES_PER_SECOND = 8, "30000", 500_000


@pytest.mark.long
def test_rows_that_were_too_many_for_the_driver_are_not_handed_to_it_again(
    linked: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(linked, "readings")
    query = run(
        linked,
        topic=topic,
        eos_inline_bytes="65536",
        eos_step_timeout_ms=STEP_MS,
        kafka_compression_type="none",
    )
    query.write(value=["first"])
    linked.nodes[0].link.limit(BYTES_PER_SECOND)
    written, failures = ["first"], 0
    for _ in range(BATCHES):
        rows = [random.randbytes(ROW_BYTES // 2).hex() for _ in range(TASKS)]
        written += rows
        while True:
            try:
                query.write_tasks(*([{"value": [row]}] for row in rows))
                break
            except EosSinkError:
                failures += 1
                assert failures <= 2
                query.start()
    linked.nodes[0].link.heal()
    found = read_topic(linked.bootstrap_servers, topic).values()
    assert sorted(found) == sorted(written)


@pytest.mark.long
@pytest.mark.parametrize("when", ["flush", "produce_rows"])
def test_rows_that_are_too_late_are_told_with_their_topic(
    linked: KafkaCluster, run: MakeRun, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """librdkafka says of their transaction only that it has timed out, or nothing."""
    topic, link = new_topic(linked, "readings"), linked.nodes[0].link
    query = run(linked, topic=topic, kafka_delivery_timeout_ms="3000")
    query.write(value=["a"])
    call = getattr(ConfluentProducer, when)

    def late(*given: Any) -> Any:
        link.delay(4)
        return call(*given)

    plan, rows = query.plan(), [{"value": [f"{batch}"]} for batch in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(ConfluentProducer, when, late)
        with pytest.raises(ProduceFailedError) as error:
            list(query.prepare(plan, query.next, rows))
    link.heal()
    assert error.value.kind is FailureKind.DELIVERY_FAILED
    assert topic in error.value.message
    query.write(value=["b"])
    assert sorted(read_topic(linked.bootstrap_servers, topic).values()) == ["a", "b"]


@pytest.mark.long
def test_a_new_stream_reads_a_long_decision_log_once(linked: KafkaCluster, run: MakeRun) -> None:
    topic, log = new_topic(linked, "readings"), unique("log")
    run(linked, topic=topic, eos_log_topic=log).write(value=["a"])
    query = run(linked, topic=topic, eos_log_topic=log, eos_step_timeout_ms=LOG_STEP_MS)
    home = query.kafka.claim_home(stream_subject(BatchId(query.stream, 0)))
    filling = Producer({"bootstrap.servers": linked.bootstrap_servers})
    for number in range(LOG_MB):
        value = random.randbytes(900_000)
        filling.produce(log, value, key=f"of no one {number}", partition=home.partition)
    assert filling.flush(60) == 0
    linked.nodes[0].link.limit(LOG_BYTES_PER_SECOND)
    query.write(value=["b"])
    linked.nodes[0].link.heal()
    assert sorted(read_topic(linked.bootstrap_servers, topic).values()) == ["a", "b"]
