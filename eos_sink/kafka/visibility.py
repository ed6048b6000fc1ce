"""The outcomes of single records: what a read_committed reader finds at their offsets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from confluent_kafka import KafkaError

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_missing
from eos_sink.kafka.fetch import Fetched, fetch_each, read_records, select_committed
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.protocol.values import Place, Position, Transaction, Visibility

# A response has at least one batch, however large it is.
_BATCH_BYTES = 64 * 1024
_ANSWERS_S = 5.0
# A broker may not know yet of a topic, and answers without records until it has brought those of a
# tiered topic from their store (KIP-405).
_LEARNS_S = 5.0


def find_visibility(
    clients: SharedClients, witnesses: Mapping[Position, Transaction], deadline: Deadline
) -> dict[Position, Visibility]:
    """Return what is known of each; leave out those that were still open at the deadline.

    A Fetch response has the records up to the last stable offset, committed or not, and the
    list of the aborted transactions among them (KIP-98). Retention or compaction may have removed
    a committed record, so one that is not there proves nothing.

    Raises:
        ClusterError: a permission is missing, or a record cannot be decoded.
    """
    wanted, seen = witnesses.keys(), dict[Position, Visibility]()
    learning = dict[Position | Place, Deadline]()

    def look() -> bool:
        # One of each partition at a time; the others follow in their order.
        first: dict[Place, Position] = {}
        for witness in sorted(wanted - seen.keys()):
            first.setdefault((witness.topic, witness.partition), witness)
        wire = clients.control().wire
        ask = partial(fetch_each, committed=True, most_bytes=_BATCH_BYTES)
        places = {place: witness.offset for place, witness in first.items()}
        known = len(seen)
        for place, answer in wire.run(ask, wire, places, deadline.within(_ANSWERS_S)).items():
            witness = first[place]
            subject = _get_unlearned(witness, answer)
            learning_of: set[Position | Place] = {place, witness}
            for other in learning_of - {subject}:
                learning.pop(other, None)
            # Time to learn begins with the first such answer, and has to be had in full.
            learned = (
                subject is not None and learning.setdefault(subject, Deadline(_LEARNS_S)).passed
            )
            found = _judge(clients, witness, witnesses[witness], answer, learned=learned)
            if found is not None:
                seen[witness] = found
        return len(seen) > known

    while len(seen) < len(wanted) and retry_until(deadline, look, bool):
        pass
    return seen


def _get_unlearned(witness: Position, answer: Fetched | KafkaError) -> Position | Place | None:
    """Return what the broker may have to learn of, or None: the partition, which is the same for
    all its witnesses, or the records at this one."""
    if isinstance(answer, KafkaError):
        return (witness.topic, witness.partition) if is_missing(answer) else None
    return witness if answer.stable > witness.offset and not answer.batches else None


def _judge(
    clients: SharedClients,
    witness: Position,
    transaction: Transaction,
    answer: Fetched | KafkaError,
    *,
    learned: bool,
) -> Visibility | None:
    """Return what the answer shows, or None to ask again."""
    if isinstance(answer, KafkaError):
        meaning = get_meaning(answer.code())
        if meaning in (Meaning.DENIED, Meaning.LOGIN_REFUSED):
            needed = clients.permissions.witness(witness.topic)
            raise convert_error(answer, f"{witness} is unreadable", [needed])
        gone = meaning is Meaning.OUT_OF_RANGE or learned
        return Visibility.UNREADABLE if gone else None
    if answer.stable <= witness.offset:
        return None
    if not answer.batches:
        return Visibility.UNREADABLE if learned else None
    first = answer.batches[0]
    if (first.producer_id, first.producer_epoch) != (transaction.producer_id, transaction.epoch):
        return Visibility.UNREADABLE  # The topic was deleted and made again.
    if first.is_control_batch or all(row.offset != witness.offset for row in read_records(first)):
        return Visibility.UNREADABLE
    aborted = next(select_committed([first], answer.aborted), None) is None
    return Visibility.ABORTED if aborted else Visibility.COMMITTED
