"""Notes what was in a query's checkpoint before it started, for `starting_offsets`.

The first plan of a query finds in the checkpoint a batch that Spark has begun. Only a note from
before the start tells whether this start has begun it, or another sink whose rows may be there.
It is found by the query's consumer group, whatever the query is called and however it writes.
"""

from __future__ import annotations

from contextlib import closing

from eos_sink.decision_log.codec import decode_as, encode
from eos_sink.decision_log.driver_transaction import TRANSACTION_MS
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import StartNote, group_subject
from eos_sink.protocol.values import ProduceFailed, ProducerFenced


def read_note(kafka: Kafka, group: str, deadline: Deadline) -> StartNote | None:
    """The latest note of a group's query; None: nothing was noted.

    Args:
        kafka: with a decision log that exists.

    Raises:
        OperatorNeededError: it cannot be read: a newer version or another program wrote it.
    """
    subject, key = group_subject(group), _key(group)
    found, _ = kafka.claim_records(subject, key, deadline)
    value = found.get(key)
    return decode_as(StartNote, value, key) if value else None


def write_note(
    kafka: Kafka, names: QueryNames, group: str, note: StartNote, deadline: Deadline
) -> None:
    """Note what is in the checkpoint. No run of the query is fenced.

    Raises:
        OutcomeUnknownError: it may not be noted.
    """
    home = kafka.claim_home(group_subject(group))
    value = encode(note, subject=group_subject(group))
    with closing(kafka.log_producer(names.start, TRANSACTION_MS)) as producer:
        try:
            producer.init(deadline)
            producer.begin()
            producer.produce(home.topic, value, key=_key(group).encode(), partition=home.partition)
            producer.commit(deadline)
        except (ProducerFenced, ProduceFailed) as error:
            raise stop(Reason.NOT_NOTED, error=error) from error


def _key(group: str) -> str:
    return f"start of {group_subject(group)}."
