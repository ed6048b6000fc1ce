"""Calls the Kafka clients with a deadline, and again after a failed read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

import tenacity
from confluent_kafka import KafkaError, KafkaException

from eos_sink.kafka.deadline import Deadline

T = TypeVar("T")

# librdkafka gets the deadline too, and nearly always keeps it, with a better error.
_GRACE_S = 2.0
_PAUSE_S = 0.5


def call_with_deadline(call: Callable[[], T], deadline: Deadline) -> T:
    """Make the call in a thread, and give up on it soon after the deadline.

    The timeout of `rd_kafka_send_offsets_to_transaction` does not cover its wait for the
    coordinator: when a broker was killed and restarted during the call, librdkafka 2.16 waited
    until the coordinator moved, in one case for four minutes. A client whose call was given up must
    not be used again; the thread stays until librdkafka returns.

    Raises:
        KafkaException: the call did not return.
    """
    results: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()

    def run() -> None:
        try:
            results.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - the caller raises it again
            results.put((None, error))

    threading.Thread(target=run, name="librdkafka-call", daemon=True).start()
    try:
        result, error = results.get(timeout=deadline.left + _GRACE_S)
    except Empty:
        text = "the Kafka client call did not return"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text)) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def retry_until(
    deadline: Deadline,
    attempt: Callable[[], T],
    done: Callable[[T], bool],
    longest_s: float = _PAUSE_S,
) -> T:
    """Repeat a read or an idempotent request, with growing, jittered pauses of at most `longest_s`,
    until `done` accepts its result or the deadline has passed. Returns the last result."""
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: not done(result)),
        wait=tenacity.wait_random_exponential(multiplier=0.01, max=longest_s),
        stop=lambda _: deadline.passed,
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    result: T = retrying(attempt)
    return result
