"""Servers that take connections and answer nothing."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.net import manager

from eos_sink.errors import EosSinkError, OutcomeUnknownError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.connection.settings import kafka_python_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions
from eos_sink.options import parse_options
from eos_sink.protocol.values import Transaction
from eos_sink_lab.testing import Backend, KafkaCluster, start_kafka


def choose_the_first(servers: Sequence[Any]) -> Any:
    return servers[0]


def test_a_silent_server_does_not_take_the_time_of_the_one_that_answers(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager.random, "choice", choose_the_first)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]},{kafka.bootstrap_servers}"
        settings = kafka_python_settings({"bootstrap.servers": servers})
        wire = Wire(settings, Deadline(15))
        assert wire.run(wire.list_brokers, Deadline(15))
        wire.close()


def test_a_server_that_is_down_takes_no_time_of_the_one_that_answers(kafka: KafkaCluster) -> None:
    """All of the time for a first answer is less than kafka-python gives a single server."""
    servers = f"127.0.0.1:1,{kafka.bootstrap_servers}"
    options = parse_options({"kafka.bootstrap.servers": servers, "eos.id": "id"})
    with contextlib.closing(ConfluentKafka(options.cluster, 4)) as cluster:
        cluster.control().check_brokers(Deadline(10))


@pytest.mark.long
def test_a_broker_that_is_paused_does_not_hold_up_a_step_past_its_deadline() -> None:
    """Its requests go over connections that are not made yet."""
    ids = [Transaction(f"id-{number}", number, 0) for number in range(20)]
    with start_kafka(backend=Backend.LOCAL) as cluster:
        settings = kafka_python_settings({"bootstrap.servers": cluster.bootstrap_servers})
        control = KafkaPythonControl(settings, Permissions("id-", "log"), Deadline(15))
        control.describe([each.transactional_id for each in ids], Deadline(15))
        for broker in cluster.brokers:
            broker.pause()
        for step in (
            lambda soon: control.end(ids, commit=False, deadline=soon),
            lambda soon: control.list_transactions("id-", soon),
        ):
            began = time.monotonic()
            with contextlib.suppress(OutcomeUnknownError):
                step(Deadline(1))
            assert time.monotonic() - began < 6
        options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "eos.id": "id"}
        with pytest.raises(EosSinkError):
            ConfluentKafka(parse_options(options).cluster).topic_ids(None, Deadline(1))
        for broker in cluster.brokers:
            broker.resume()
        assert len(control.end(ids, commit=False, deadline=Deadline(15))) == len(ids)
        control.close()
