"""The producer of confluent-kafka when a call of it fails in an unusual way."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.producer_events import ProducerEvents

FENCED = KafkaException(KafkaError(KafkaError._FENCED, fatal=True))
LOST = "returned NULL without setting an exception"


class Failing(Producer):
    cause: BaseException | None = None

    def flush(self, *_: Any) -> int:
        raise SystemError(LOST) from self.cause


class Client(ConfluentClient, Failing):
    """`ConfluentClient.flush` calls `Failing.flush`."""


@pytest.fixture
def events() -> ProducerEvents:
    return ProducerEvents()


@pytest.fixture
def client(events: ProducerEvents) -> Client:
    return Client({"bootstrap.servers": "127.0.0.1:1"}, events)


def test_a_fatal_error_that_the_client_loses_in_a_flush_is_left_to_the_next_call(
    client: Client, events: ProducerEvents
) -> None:
    events.log(2, "%s", "TXNERR", "Fatal transaction error: fenced by a newer instance (_FENCED)")
    # The events that wait to be served count.
    assert client.flush(1) >= 0
    assert events.failure is not None
    assert events.failure.code() == KafkaError._FENCED


def test_a_fatal_error_that_it_wraps_is_raised_itself(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "cause", FENCED)
    with pytest.raises(KafkaException) as raised:
        client.flush(1)
    assert raised.value is FENCED


@pytest.mark.parametrize("cause", [None, SystemExit(143)], ids=["unknown", "a signal"])
def test_any_other_failure_of_the_client_is_raised(
    client: Client,
    events: ProducerEvents,
    monkeypatch: pytest.MonkeyPatch,
    cause: BaseException | None,
) -> None:
    if cause is not None:
        events.log(2, "%s", "TXNERR", "Fatal transaction error: fenced (_FENCED)")
    monkeypatch.setattr(Client, "cause", cause)
    with pytest.raises(SystemError):
        client.flush(1)
