"""Tokens that live for seconds: connections that outlive several of them go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster, Security
from eos_sink_lab.testing.topic_scan import Scan, Source, Span
from eos_sink_lab.testing.waiting import wait_until
from integration import short_tokens
from integration.own_kafka import start_own_kafka
from integration.secured_query import documented

TOPIC = "tokens"
PATIENCE_S = 100.0
TRANSACTION_MS = 60_000
TOKENS = 3
SESSION_S = 8


@pytest.fixture(scope="module")
def impatient() -> Iterator[KafkaCluster]:
    """A broker that ends a connection whose token has expired (KIP-368)."""
    properties = {"connections.max.reauth.ms": SESSION_S * 1000}
    with start_own_kafka(security=Security({"ann": "word"}), properties=properties) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        cluster.access.allow("ann", *documented(TOPIC, "__eos_sink_log"))
        yield cluster


@pytest.mark.long
@pytest.mark.parametrize("native", ["true", "false"])
def test_a_transaction_and_all_clients_outlive_their_tokens(
    impatient: KafkaCluster, native: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given = impatient.access.options("ann", "OAUTHBEARER")
    del given["kafka.sasl.jaas.config"]
    options = parse_options(
        {
            **given,
            "topic": TOPIC,
            "eos.id": native,
            "eos.native": native,
            "eos.oauth.token.provider": "integration.short_tokens:make",
        }
    )
    clients = ConfluentKafka(options.cluster)
    deadline = Deadline(PATIENCE_S)
    name = f"{options.names.group}-0-0"
    try:
        clients.check_topic(TOPIC, deadline)
        clients.log_reader(options.names, deadline)
        control = clients.control()

        def is_open() -> bool:
            states = control.list_transactions(name, deadline, TransactionStatus.ONGOING)
            return [each.transaction.transactional_id for each in states] == [name]

        member = clients.member(options.names.group, f"{options.names.group}-0", TRANSACTION_MS)
        member.join(deadline)
        producer = clients.producer(name, TRANSACTION_MS)
        producer.init(deadline)
        producer.begin()
        decider = clients.log_producer(f"{options.names.group}-driver", TRANSACTION_MS)
        decider.init(deadline)
        decider.begin()
        decider.produce(TOPIC, b"1", partition=1)
        offsets: list[int] = []
        producer.produce(TOPIC, b"1", partition=0, on_offset=lambda _, at: offsets.append(at))
        producer.flush(deadline)
        assert is_open()
        known = len(short_tokens.made)

        def are_replaced() -> bool:
            # Connections that are not used are closed after a short time.
            assert is_open()
            return len(short_tokens.made) >= known + TOKENS

        wait_until(are_replaced, deadline, "tokens are replaced")
        producer.produce(TOPIC, b"2", partition=0)
        producer.flush(deadline)
        assert is_open()
        clients.check_topic(TOPIC, deadline)
        producer.commit(deadline)
        producer.close()
        decider.produce(TOPIC, b"2", partition=1)
        decider.flush(deadline)
        decider.commit(deadline)
        decider.close()
        member.close()
        # Each connection logged in again, and none was lost on the way.
        lines = [f"{record.name}: {record.getMessage()}" for record in caplog.records]
    finally:
        clients.close()
    scan = Scan(Source(impatient.bootstrap_servers, TOPIC), committed=True)
    try:
        span = Span(0, offsets[0], offsets[0] + 2)
        rows = [row.value() for batch in scan.read([span]) for row in batch]
    finally:
        scan.close()
    assert rows == [b"1", b"2"]
    assert [line for line in lines if line.startswith("eos_sink.kafka: FAIL")] == []
    assert [line for line in lines if "re-authentication failed" in line] == []
    assert len([line for line in lines if "Beginning SASL re-authentication" in line]) > TOKENS
    assert not any(token in caplog.text for token in short_tokens.made)
