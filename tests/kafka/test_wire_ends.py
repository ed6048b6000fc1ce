"""kafka-python leaves nothing behind when it fails, and keeps deadlines."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from eos_sink.errors import ClusterError
from eos_sink.kafka.connection.settings import kafka_python_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.wire import _ATTEMPT_S, Wire


def test_a_bootstrap_that_fails_leaves_no_thread() -> None:
    # Files cannot be counted here: the errors that pytest captures hold sockets.
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        before = threading.active_count()
        for _ in range(3):
            with pytest.raises(ClusterError):
                Wire(kafka_python_settings({"bootstrap.servers": address}), Deadline(0.2))
        assert threading.active_count() <= before


class Managed:
    """A wire on an event loop, with a manager that connects to nothing."""

    def __init__(self) -> None:
        self.manager = KafkaConnectionManager(NetworkSelector())
        self.manager._net.start()
        self.wire = Wire.__new__(Wire)
        self.wire._manager = self.manager


@pytest.fixture
def managed() -> Iterator[Managed]:
    managed = Managed()
    yield managed
    managed.manager.close()
    managed.manager._net.close()


def test_requests_that_wait_for_a_connection_are_given_up_at_the_deadline(managed: Managed) -> None:
    """kafka-python gives them up when the connection is, after ten seconds."""
    never = {number: Future() for number in range(3)}
    began = time.monotonic()
    found = managed.wire.run(managed.wire.gather, never, Deadline(0.2))
    assert found == dict.fromkeys(never)
    assert time.monotonic() - began < _ATTEMPT_S / 2


def test_metadata_that_does_not_come_is_given_up_at_the_deadline(managed: Managed) -> None:
    silent = Future()

    async def refresh() -> None:
        await silent

    managed.manager.cluster.refresh_metadata = refresh
    began = time.monotonic()
    assert managed.wire.run(managed.wire.list_brokers, Deadline(0.2)) is None
    assert time.monotonic() - began < _ATTEMPT_S / 2


def test_a_broker_that_was_down_when_the_metadata_came_is_asked_again(managed: Managed) -> None:
    """librdkafka names it as a leader; kafka-python would learn of it within five minutes."""
    deadline, asked = Deadline(5), list[bool]()
    managed.manager.cluster.request_update = lambda: asked.append(True)

    async def ask() -> object:
        return await managed.wire.gather({0: managed.wire.send(None, 7, deadline)}, deadline)

    assert managed.wire.run(ask) == {0: None}
    assert asked
