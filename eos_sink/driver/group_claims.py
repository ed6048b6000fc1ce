"""The identities of this sink that have claimed a consumer group or a stream, and their records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.claims import read_claims
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.model import BatchId, LogRecord, Numbering, group_subject, stream_subject


def find_movers(
    kafka: Kafka, group: str, deadline: Deadline
) -> Iterator[tuple[QueryNames, LogRecord]]:
    """The latest record of each identity whose position is that of the group."""
    for names, record, _ in _read(kafka, group_subject(group), deadline):
        if record.source is not None and record.source.group == group:
            yield names, record


def find_writers(
    kafka: Kafka, names: QueryNames, group: str, batch: BatchId, deadline: Deadline
) -> Iterator[tuple[QueryNames, LogRecord, list[BatchId]]]:
    """The latest record of each other identity of the query, and the last batches of the stream
    that it has decided. Frames of one batch have several identities at once, and only one of them
    has the group."""
    for other, record, numbering in _read(kafka, stream_subject(batch), deadline):
        has_group = record.source is not None and record.source.group == group
        are_frames = numbering is batch.numbering is Numbering.FOREACH
        if other != names and (has_group or not are_frames):
            yield other, record, [each for each in record.decided if each.is_of_query(batch)]


def read_record(kafka: Kafka, names: QueryNames, deadline: Deadline) -> LogRecord:
    """Read the latest record of an identity. Fences no one."""
    with closing(DecisionRegister(kafka, names)) as register:
        return register.read(deadline).record


def _read(
    kafka: Kafka, subject: str, deadline: Deadline
) -> Iterator[tuple[QueryNames, LogRecord, Numbering]]:
    for claim in read_claims(kafka, subject, deadline):
        yield claim.names, read_record(kafka, claim.names, deadline), claim.numbering
