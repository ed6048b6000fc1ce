"""A bootstrap server that takes connections and answers nothing does not hide the others."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.net import manager

from eos_sink.clients.settings import kafka_python_settings
from eos_sink.clients.wire import Wire
from eos_sink.deadline import Deadline
from eos_sink.testing import KafkaCluster

pytestmark = pytest.mark.timeout(60)


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
        assert wire.run(wire.brokers)
        wire.close()
