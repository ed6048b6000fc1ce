"""Which errors of a read only say that a broker or a leader is on its way."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from eos_sink.kafka.error_codes import is_transient


def test_a_read_from_a_broker_that_has_left_the_metadata_is_tried_again() -> None:
    assert is_transient(KafkaError(KafkaError._DESTROY_BROKER))


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE])
def test_a_read_that_a_paused_broker_does_not_answer_is_tried_again(code: int) -> None:
    """Behind other requests to it the read is given up before it is sent."""
    assert is_transient(KafkaError(code))
