"""The identities of this sink that have claimed a consumer group or a stream, and their records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.claims import read_claims, read_claims_from
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.model import (
    BatchId,
    KnownClaims,
    LogRecord,
    Numbering,
    group_subject,
    stream_subject,
)


def find_movers(
    kafka: Kafka, group: str, deadline: Deadline
) -> tuple[list[tuple[QueryNames, LogRecord]], KnownClaims]:
    """The latest record of each identity whose position is that of the group, and its claims."""
    subject = group_subject(group)
    claims, reached = read_claims_from(kafka, subject, deadline)
    records = [(claim.names, read_record(kafka, claim.names, deadline)) for claim in claims]
    movers = [each for each in records if each[1].source and each[1].source.group == group]
    return movers, KnownClaims(subject, tuple(claim.names for claim in claims), reached)


def find_writers(
    kafka: Kafka, names: QueryNames, group: str, batch: BatchId, deadline: Deadline
) -> Iterator[tuple[QueryNames, LogRecord, list[BatchId]]]:
    """The latest record of each other identity of the query, and the last batches of the stream
    that it has decided. Frames of one batch have several identities at once, and only one of them
    has the group."""
    for claim in read_claims(kafka, stream_subject(batch), deadline):
        other, record = claim.names, read_record(kafka, claim.names, deadline)
        has_group = record.source is not None and record.source.group == group
        are_frames = claim.numbering is batch.numbering is Numbering.FOREACH
        if other != names and (has_group or not are_frames):
            yield other, record, [each for each in record.decided if each.is_of_query(batch)]


def read_record(kafka: Kafka, names: QueryNames, deadline: Deadline) -> LogRecord:
    """Read the latest record of an identity. Fences no one."""
    with closing(DecisionRegister(kafka, names)) as register:
        return register.read(deadline).record
