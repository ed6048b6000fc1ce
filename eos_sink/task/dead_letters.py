"""The records of a dead letter topic.

Their headers are those of Kafka Connect (DeadLetterQueueReporter), as far as they mean something
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from eos_sink.errors import FailureKind
from eos_sink.kafka.interfaces import Sizes
from eos_sink.messages import Reason, stop
from eos_sink.rows.rows import HEADERS, Rows
from eos_sink.task.record_sizes import RecordSizes

TOPIC_HEADER = "__connect.errors.topic"


class Fault(NamedTuple):
    """Why Kafka would refuse a row: the Java class of the error, and a message."""

    error: str
    message: str


def to_dead_letters(  # noqa: PLR0913, PLR0917
    rows: Rows, faults: Sequence[Fault], topic: str, most: Sizes, query: str, task: int
) -> Rows:
    """The dead letters of rows.

    Args:
        rows: that Kafka would refuse.
        faults: of each row.
        topic: the dead letter topic.
        most: the largest record of the client, and the largest record batch of the topic.
        query: the query.
        task: the number of the task.

    Raises:
        ProduceFailedError: the dead letter topic does not take one, or the client has no room.
    """
    # Without the values, which may be large.
    others = replace(rows, value=pa.nulls(len(rows), pa.binary()), key=None)
    headers = [
        [*_mended(row[3]), *_describe(row[2], row[4], row[5], fault, query, task)]
        for row, fault in zip(others, faults, strict=True)
    ]
    letters = Rows(rows.value, rows.key, topic, pa.array(headers, HEADERS))
    record, size = (int(sizes.max()) for sizes in RecordSizes(letters).sizes())
    if most.record is not None and record > most.record:
        raise stop(
            Reason.LETTER_ABOVE_QUEUE,
            kind=FailureKind.MESSAGE_REJECTED.value,
            bytes=record,
            limit=most.record,
            needed=2 * record,
        )
    if size > most.batch:
        raise stop(
            Reason.LETTER_TOO_LARGE,
            kind=FailureKind.MESSAGE_REJECTED.value,
            topic=topic,
            bytes=size,
            limit=most.batch,
            needed=2 * size,
        )
    return letters


def _describe(  # noqa: PLR0913, PLR0917
    topic: str,
    partition: int | None,
    timestamp: int | None,
    fault: Fault,
    query: str,
    task: int,
) -> Iterator[tuple[str, bytes]]:
    texts = {
        TOPIC_HEADER: topic,
        "__connect.errors.partition": str(-1 if partition is None else partition),
        "__connect.errors.connector.name": query,
        "__connect.errors.task.id": str(task),
        "__connect.errors.exception.class.name": fault.error,
        "__connect.errors.exception.message": fault.message,
    }
    if timestamp is not None:
        # The dead letter topic might refuse it too, or delete the record at once.
        texts["__eos.errors.timestamp"] = str(timestamp)
    return ((name, text.encode()) for name, text in texts.items())


def _mended(
    headers: list[tuple[str, bytes | None]] | None,
) -> list[tuple[str, bytes | None]]:
    """The row's headers, with keys that a record can have."""
    return [(key.replace("\0", "\ufffd"), value) for key, value in headers or ()]
