"""The driver's transaction: rows of small partitions, group offset, the source's offsets, at the
first decision of a stream its claims, and the record.

The order decides who waits for whom. Other queries have their records in the same partition of the
log, and read past an open transaction only when it has ended. So what may wait for brokers of its
own, rows and offsets, comes before the record; and between the vote and EndTxn nothing waits
for a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eos_sink.decision_log.codec import encode
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionalProducer
from eos_sink.protocol.model import Claim, LogRecord, PlanToken, SourcePosition
from eos_sink.protocol.values import Position, ProduceFailed

if TYPE_CHECKING:
    from eos_sink.rows.rows import Rows

# A write takes milliseconds. A driver that dies meanwhile blocks readers of the same log partition,
# and of its rows' partitions, for at most this long and the 10 s between two looks of the brokers
# (transaction.abort.timed.out.transaction.cleanup.interval.ms).
TRANSACTION_MS = 30_000
# The rest of the transaction is for the record, the vote and EndTxn.
ROWS_S = 20.0

Vote = Callable[[float], float]
"""Takes the moment at which the driver's transaction began, by the clock of the register; returns
the seconds within which it has to be committed."""


@dataclass
class SentRecord:
    """The record's offset in the log, once it is known."""

    at: int | None = None


def send_rows(
    producer: TransactionalProducer,
    token: PlanToken,
    rows: Sequence[Rows],
    source: SourcePosition | None,
    deadline: Deadline,
) -> None:
    """Begin the transaction; return when all but its record is on the brokers: the group offset,
    the rows, and the source's offsets, if they move.

    Raises:
        ProduceFailed: with a topic, if there are rows.
        MemberRefused, ProducerFenced: see `TransactionalProducer.send_offset`.
    """
    producer.begin()
    try:
        for some in rows:
            producer.produce_rows(some)
        producer.send_offset(token.position, token.member, deadline)
        if source is not None:
            producer.send_group_offsets(source.group, source.end, deadline)
        if rows:
            producer.flush(deadline.within(ROWS_S))
            producer.check()
    except ProduceFailed as failed:
        if rows and failed.topic is None:
            # Any of them: it tells that nothing of the record was sent yet.
            failed.topic = rows[0].topics[0][0]
        raise


def send_record(producer: TransactionalProducer, token: PlanToken, record: LogRecord) -> SentRecord:
    """Queue the record."""
    return _send(producer, token.position, token.names.log_key, encode(record))


def send_claim(producer: TransactionalProducer, claim: Claim, home: Position) -> SentRecord:
    """Queue a claim, before the record: of a partition that has both, the transaction must keep
    nothing back that was claimed before."""
    return _send(producer, home, claim.key, encode(claim))


def _send(producer: TransactionalProducer, home: Position, key: str, value: bytes) -> SentRecord:
    sent = SentRecord()

    def note(_: int, offset: int) -> None:
        sent.at = offset

    producer.produce(home.topic, value, key=key.encode(), partition=home.partition, on_offset=note)
    return sent
