"""Whether single records were committed: what readers of both isolation levels find there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, Meaning, convert_error, get_meaning, is_missing
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.protocol.values import Place, Position, Visibility

_POLL_S = 0.1
_LOOK_S = 1.0
# How long a broker delays the empty fetch that marks the end of a partition; a new assignment
# waits behind the one that is under way (500 ms by default).
_FETCH_MS = 10
# Offsets that are read over rather than skipped, which takes a request.
_NEAR = 1_000


def find_visibility(
    clients: SharedClients, witnesses: Sequence[Position], deadline: Deadline
) -> dict[Position, Visibility]:
    """Each as soon as it is known; leaves out those that were still open at the deadline.

    Retention or compaction may have removed a committed record, so it proves nothing if a
    read_committed reader passes it by. If it is still there after that, it was aborted: no record
    ever comes back.
    """
    seen, passed = dict[Position, Visibility](), set[Position]()
    with ExitStack() as readers:
        committed = readers.enter_context(closing(WitnessReader(clients, committed=True)))
        everything: WitnessReader | None = None
        while len(seen) < len(set(witnesses)) and not deadline.passed:
            found = committed.look(set(witnesses) - seen.keys() - passed, deadline)
            passed |= {each for each in found if found[each] is Visibility.ABORTED}
            seen |= {each: found[each] for each in found if each not in passed}
            if passed and everything is None:
                everything = readers.enter_context(closing(WitnessReader(clients, committed=False)))
            if everything is not None:
                for witness, answer in everything.look(passed - seen.keys(), deadline).items():
                    kept = answer is Visibility.COMMITTED
                    seen[witness] = Visibility.ABORTED if kept else Visibility.UNREADABLE
    return seen


class WitnessReader:
    """Looks at single offsets as a reader does, in all their partitions at once.

    With `committed` an answer of COMMITTED or ABORTED says whether a read_committed reader gets
    the record, else whether the record is there at all.
    """

    def __init__(self, clients: SharedClients, *, committed: bool) -> None:
        configuration: dict[str, Any] = {
            **clients.connection,
            "group.id": clients.options.names.group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": _FETCH_MS,
            "auto.offset.reset": "error",
        }
        self._consumer = Consumer(configuration, logger=LOGGER)
        self._permissions = clients.permissions

    def look(self, witnesses: Iterable[Position], deadline: Deadline) -> dict[Position, Visibility]:
        """What is known after a second at most; an open transaction keeps the others back."""
        pending, found = PendingWitnesses(witnesses), dict[Position, Visibility]()
        first = pending.first.values()
        self._consumer.assign([TopicPartition(w.topic, w.partition, w.offset) for w in first])
        turn = deadline.within(_LOOK_S)
        while pending.first and not turn.passed:
            found |= self._poll(pending, turn)
        return found

    def close(self) -> None:
        self._consumer.close()

    def _poll(self, pending: PendingWitnesses, deadline: Deadline) -> dict[Position, Visibility]:
        """What the next message says. Skips to the next witness if that lies far behind it."""
        try:
            message = self._consumer.poll(min(_POLL_S, deadline.left))
        except KafkaException as raised:
            raise self._convert(raised.args[0], next(iter(pending.first.values()))) from raised
        if message is None:
            return {}
        place, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        witness, error = pending.first.get(place), message.error()
        if witness is None:
            return {}
        if error is None:
            found = pending.pass_record(place, offset)
        elif error.code() == KafkaError._PARTITION_EOF:
            found = pending.pass_end(place, offset)
        elif is_missing(error) or get_meaning(error.code()) is Meaning.OUT_OF_RANGE:
            found = pending.give_up_first(place)
        elif get_meaning(error.code()) in (Meaning.DENIED, Meaning.LOGIN_REFUSED):
            raise self._convert(error, witness)
        else:
            return {}
        following = pending.first.get(place)
        if following is None:
            self._consumer.incremental_unassign([TopicPartition(*place)])
        elif found and (error is not None or following.offset - offset > _NEAR):
            self._consumer.incremental_unassign([TopicPartition(*place)])
            self._consumer.incremental_assign([TopicPartition(*place, following.offset)])
        return found

    def _convert(self, error: KafkaError, witness: Position) -> Exception:
        needs = (self._permissions.group, self._permissions.witness(witness.topic))
        return convert_error(error, f"{witness} is unreadable", needs)


class PendingWitnesses:
    """Witnesses without an answer yet, by partition. Pure.

    A read_committed reader that starts at the first of a partition reaches the others in their
    order: it gets those of committed transactions, and passes the others by.
    """

    def __init__(self, witnesses: Iterable[Position]) -> None:
        self._left: dict[Place, list[Position]] = {}
        for witness in sorted(set(witnesses), reverse=True):
            self._left.setdefault((witness.topic, witness.partition), []).append(witness)

    @property
    def first(self) -> Mapping[Place, Position]:
        """Of each partition: where a reader has to start."""
        return {place: left[-1] for place, left in self._left.items() if left}

    def pass_record(self, place: Place, offset: int) -> dict[Position, Visibility]:
        """The reader got the record at this offset."""
        found = self.pass_end(place, offset + 1)
        return {
            witness: Visibility.COMMITTED if witness.offset == offset else aborted
            for witness, aborted in found.items()
        }

    def pass_end(self, place: Place, offset: int) -> dict[Position, Visibility]:
        """The partition's stable part ends before this offset."""
        left, found = self._left[place], dict[Position, Visibility]()
        while left and left[-1].offset < offset:
            found[left.pop()] = Visibility.ABORTED
        return found

    def give_up_first(self, place: Place) -> dict[Position, Visibility]:
        """The reader may not start at the first one; later ones may still be there."""
        return {self._left[place].pop(): Visibility.UNREADABLE}
