"""What a reader finds at single offsets: there, passed by, or out of reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_missing
from eos_sink.kafka.interfaces import Visibility, Witness
from eos_sink.kafka.log_reader import assigned_consumer
from eos_sink.kafka_config.acls import Permissions

_POLL_S = 0.1
_LOOK_S = 1.0
# As in a log reader, but a witness behind an open transaction may be looked at for long.
_FETCH_MS = 10
# Offsets that are read over rather than leapt over, which takes a request.
_NEAR = 1_000


def look_until(
    deadline: Deadline,
    witnesses: Sequence[Witness],
    make_reader: Callable[[bool], WitnessReader],
) -> dict[Witness, Visibility]:
    """Each as soon as it is known; none that was still open at the deadline.

    Retention or compaction may have removed a committed record, so that it proves nothing if a
    read_committed reader passes it by. One that is still there after that was aborted: no record
    ever comes back.

    Args:
        make_reader: of committed records, or of all that are there.
    """
    seen, passed = dict[Witness, Visibility](), set[Witness]()
    with ExitStack() as readers:
        committed = readers.enter_context(closing(make_reader(True)))
        there: WitnessReader | None = None
        while len(seen) < len(set(witnesses)) and not deadline.passed:
            found = committed.look(set(witnesses) - seen.keys() - passed, deadline)
            passed |= {each for each in found if found[each] is Visibility.ABORTED}
            seen |= {each: found[each] for each in found if each not in passed}
            if passed and there is None:
                there = readers.enter_context(closing(make_reader(False)))
            if there is not None:
                for witness, answer in there.look(passed - seen.keys(), deadline).items():
                    kept = answer is Visibility.COMMITTED
                    seen[witness] = Visibility.ABORTED if kept else Visibility.UNREADABLE
    return seen


class WitnessReader:
    """Looks at single offsets as a reader does, in all their partitions at once.

    With `committed` an answer of COMMITTED or ABORTED says whether a read_committed reader is
    given the record, else whether the record is there at all.
    """

    def __init__(
        self,
        settings: dict[str, str],
        group: str,
        permissions: Permissions,
        *,
        committed: bool = True,
    ) -> None:
        self._consumer = assigned_consumer(settings, group, "error", _FETCH_MS, committed=committed)
        self._permissions = permissions

    def look(self, witnesses: Iterable[Witness], deadline: Deadline) -> dict[Witness, Visibility]:
        """What is known after a second at most; an open transaction keeps the others back."""
        waiting, found = Waiting(witnesses), dict[Witness, Visibility]()
        first = waiting.first.values()
        self._consumer.assign([TopicPartition(w.topic, w.partition, w.offset) for w in first])
        turn = deadline.within(_LOOK_S)
        while waiting.first and not turn.passed:
            found |= self._next(waiting, turn)
        return found

    def _next(self, waiting: Waiting, deadline: Deadline) -> dict[Witness, Visibility]:
        """What the next answer says, and on to the next witness if that lies far behind it."""
        try:
            message = self._consumer.poll(min(_POLL_S, deadline.left))
        except KafkaException as raised:
            raise self._judged(raised.args[0], next(iter(waiting.first.values()))) from raised
        if message is None:
            return {}
        place, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        witness, error = waiting.at(place), message.error()
        if witness is None:
            return {}
        if error is None:
            found = waiting.passed(place, offset, there=True)
        elif error.code() == KafkaError._PARTITION_EOF:
            found = waiting.passed(place, offset, there=False)
        elif is_missing(error) or get_meaning(error.code()) is Meaning.OUT_OF_RANGE:
            found = waiting.gone(place)
        elif get_meaning(error.code()) in (Meaning.DENIED, Meaning.LOGIN_REFUSED):
            raise self._judged(error, witness)
        else:
            return {}
        following = waiting.at(place)
        if following is None:
            self._consumer.incremental_unassign([TopicPartition(*place)])
        elif found and (error is not None or following.offset - offset > _NEAR):
            self._consumer.incremental_unassign([TopicPartition(*place)])
            self._consumer.incremental_assign([TopicPartition(*place, following.offset)])
        return found

    def _judged(self, error: KafkaError, witness: Witness) -> Exception:
        needs = (self._permissions.group, self._permissions.witness(witness.topic))
        return convert_error(error, f"{witness} is unreadable", needs)

    def close(self) -> None:
        self._consumer.close()


class Waiting:
    """Witnesses that nothing is known of yet, by their partitions. Pure.

    A read_committed reader that starts at the first of a partition comes to the others in their
    order: it is given those of committed transactions, and passes the others by.
    """

    def __init__(self, witnesses: Iterable[Witness]) -> None:
        self._places: dict[tuple[str, int], list[Witness]] = {}
        for witness in sorted(set(witnesses), reverse=True):
            self._places.setdefault((witness.topic, witness.partition), []).append(witness)

    @property
    def first(self) -> Mapping[tuple[str, int], Witness]:
        """Where a reader has to start."""
        return {place: left[-1] for place, left in self._places.items()}

    def at(self, place: tuple[str, int]) -> Witness | None:
        """The first of a partition."""
        left = self._places.get(place)
        return left[-1] if left else None

    def passed(
        self, place: tuple[str, int], offset: int, *, there: bool
    ) -> dict[Witness, Visibility]:
        """The reader was given the record at this offset (`there`), or told that the partition's
        stable part ends before it."""
        left, found = self._places[place], dict[Witness, Visibility]()
        while left and left[-1].offset < offset + there:
            witness = left.pop()
            is_it = there and witness.offset == offset
            found[witness] = Visibility.COMMITTED if is_it else Visibility.ABORTED
        self._without_empty(place)
        return found

    def gone(self, place: tuple[str, int]) -> dict[Witness, Visibility]:
        """The reader may not start at the first: later ones may be there."""
        witness = self._places[place].pop()
        self._without_empty(place)
        return {witness: Visibility.UNREADABLE}

    def _without_empty(self, place: tuple[str, int]) -> None:
        if not self._places[place]:
            del self._places[place]
