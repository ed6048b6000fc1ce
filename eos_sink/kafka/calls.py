"""Calls into librdkafka that come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline

# librdkafka is given the deadline too and nearly always keeps it, with a better error.
_GRACE_S = 2.0

T = TypeVar("T")


def bounded(call: Callable[[], T], deadline: Deadline, what: str) -> T:
    """Make the call in a thread, and give up on it soon after the deadline.

    The timeout that `rd_kafka_send_offsets_to_transaction` takes does not cover its wait for the
    coordinator: with a broker killed and restarted amid the call, librdkafka 2.16 waited for four
    minutes, until the coordinator moved (seen once in some fifty such faults). A client whose call
    was given up must not be used again; the thread stays until librdkafka lets it go.

    Raises:
        OutcomeUnknownError: the call did not come back.
    """
    ended: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()

    def run() -> None:
        try:
            ended.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            ended.put((None, error))

    threading.Thread(target=run, name="librdkafka-call", daemon=True).start()
    try:
        result, error = ended.get(timeout=deadline.left + _GRACE_S)
    except Empty:
        raise OutcomeUnknownError(
            f"{what}: the Kafka client has not come back from its call.",
            remedy="Check that the brokers answer, then start the query again: what was decided "
            "is read back and finished first.",
        ) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
