"""A driver never waits forever for a call into librdkafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka import retry as module
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.retry import call_with_deadline
from eos_sink.kafka_config.acls import Permissions
from eos_sink.protocol.values import Position, ProducerFenced

SOON_S = 0.2
POSITION = Position("log", 0, 1)
CALLS: dict[str, Callable[[ConfluentProducer, Deadline], None]] = {
    "init_transactions": ConfluentProducer.init,
    "send_offsets_to_transaction": lambda p, deadline: p.send_offset(POSITION, b"", deadline),
    "commit_transaction": ConfluentProducer.commit,
    "abort_transaction": ConfluentProducer.abort,
}


class Stuck:
    """A client that ignores all timeouts."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.released.wait()


def test_what_comes_back_in_time_is_handed_on() -> None:
    assert call_with_deadline(lambda: 7, Deadline(10)) == 7
    with pytest.raises(ZeroDivisionError):
        call_with_deadline(lambda: 1 // 0, Deadline(10))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_come_back_is_given_up(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", SOON_S)
    producer, stuck = producer_with(Stuck())
    began = time.monotonic()
    with pytest.raises(OutcomeUnknownError):
        CALLS[name](producer, Deadline(SOON_S))
    assert time.monotonic() - began < 30
    stuck.released.set()


class Failing(Stuck):
    """A client whose calls fail."""

    def __init__(self, code: int) -> None:
        self.code = code

    def __getattr__(self, name: str) -> Any:
        def fail(*_: object) -> None:
            if self.code:
                raise KafkaException(KafkaError(self.code))

        return fail


@pytest.mark.parametrize("name", CALLS)
def test_what_librdkafka_says_is_judged_as_before(name: str) -> None:
    producer, _ = producer_with(Failing(KafkaError._FENCED))
    with pytest.raises(ProducerFenced):
        CALLS[name](producer, Deadline(10))


def test_a_login_that_was_refused_before_does_not_hide_a_newer_producer() -> None:
    producer, _ = producer_with(Failing(KafkaError._FENCED))
    producer._events.on_error(KafkaError(KafkaError._AUTHENTICATION))
    with pytest.raises(ProducerFenced):
        producer.init(Deadline(10))


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_certificate_is_named_as_the_cause_of_silence_until_a_call_is_answered(
    name: str,
) -> None:
    """The outcome stays unknown: the request may have arrived before."""
    failing = Failing(KafkaError._TIMED_OUT)
    producer, _ = producer_with(failing)

    def call() -> str:
        with pytest.raises(OutcomeUnknownError) as silent:
            CALLS[name](producer, Deadline(10))
        return str(silent.value)

    producer._events.on_error(KafkaError(KafkaError._SSL, "ssl://b:1/1: certificate verify failed"))
    assert "TLS handshake failed: ssl://b:1/1" in call()
    assert "#expired-certificates" in call()
    failing.code = 0
    CALLS[name](producer, Deadline(10))
    failing.code = KafkaError._TIMED_OUT
    assert "TLS" not in call()


def producer_with(stuck: Stuck) -> tuple[ConfluentProducer, Stuck]:
    producer = ConfluentProducer(
        {"bootstrap.servers": "127.0.0.1:1"}, "t", 1000, Permissions("eos-sink-", "log")
    )
    producer._client = stuck  # type: ignore[assignment]
    return producer, stuck
