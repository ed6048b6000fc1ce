"""Opening the decision log: a producer for one transaction, and the record that this one follows.

A producer has a new epoch of the driver's id and is used for one transaction. So a request of an
earlier transaction that arrives late, or again, has an older epoch, and Kafka refuses it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass

from eos_sink.decision_log.driver_id import await_end, describe_opened, explain_wait
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, TransactionalProducer
from eos_sink.protocol.model import LogEntry
from eos_sink.protocol.values import ProducerIdentity

# After that a load balancer may have dropped the producer's connections without a word, and opening
# again takes less time than to notice that.
_IDLE_S = 3.0


@dataclass(frozen=True)
class Opened:
    """The log, opened for one write.

    Attributes:
        fresh: until when it may be used.
        producer: fences every other writer of the query.
        identity: of the producer.
        entry: the latest record, read after that.
        reached: how far the log was read.
    """

    fresh: Deadline
    producer: TransactionalProducer
    identity: ProducerIdentity
    entry: LogEntry
    reached: int


def open_log(
    kafka: Kafka,
    names: QueryNames,
    timeout_ms: int,
    read: Callable[[], tuple[LogEntry, int]],
    deadline: Deadline,
) -> Opened:
    """Fence every other writer of the query, then read.

    Args:
        timeout_ms: of the transaction.
        read: reads the log; returns the latest record, and how far it has read.
    """
    producer = kafka.log_producer(names.driver, timeout_ms)
    try:
        with explain_wait(kafka, names):
            before = await_end(kafka, names, deadline)
            producer.init(deadline)
        # Its client tells that only some time later. If another one was opened meanwhile, this one
        # is fenced, and writes nothing under either's name.
        identity = describe_opened(kafka, names, before, deadline)
        entry, reached = read()
    except BaseException:
        producer.close()
        raise
    return Opened(Deadline(_IDLE_S), producer, identity, entry, reached)


class Opening:
    """Opens the log in a thread of its own, which a process that ends does not wait for."""

    def __init__(self, open_: Callable[[], Opened]) -> None:
        self._future: Future[Opened] = Future()
        self._open = open_
        threading.Thread(target=self._run, name="eos-sink-open", daemon=True).start()

    def wait(self, deadline: Deadline) -> Opened | None:
        """Wait until the log is open; None: it failed, for a reason that opening it again shows, or
        it is not open by the deadline."""
        done, _ = futures.wait([self._future], deadline.left)
        if not done:
            self.close()
        return self._future.result() if done and self._future.exception() is None else None

    def close(self) -> None:
        """Close the producer as soon as there is one."""
        self._future.add_done_callback(_close)

    def _run(self) -> None:
        try:
            self._future.set_result(self._open())
        except BaseException as error:  # noqa: BLE001 - the thread that waits gets it
            self._future.set_exception(error)


def _close(future: Future[Opened]) -> None:
    if future.exception() is None:
        future.result().producer.close()
