"""Reads the decision log with single Fetch requests: one tells its end and brings what is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_missing, is_transient
from eos_sink.kafka.fetch import EARLIEST, LATEST, Fetched, fetch, find_offset
from eos_sink.kafka.log_topic import home_of
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.kafka.wire import Leader, Wire
from eos_sink.protocol.values import Position

_LEARNS_S = 10.0
# A request to a broker that has died waits for it to come back.
_ANSWERS_S = 5.0
# A slow network brings that much in this time.
_FETCH_BYTES = 1024 * 1024
# How long an end that lies before a known record is asked for again.
_DEPOSED_S = 10.0
# How long brokers may take to say who leads, if one of them may be wrong.
_ASK_ALL_S = 2.0


class PartitionReader:
    """Reads a partition of the decision log, and fetches only when it is called.

    Args:
        clients: of the cluster.
        number: of the partition.
        take: is called with each record.
        committed: read only what committed transactions wrote, up to the first open one.
        start: the first offset to read.

    Attributes:
        reached: where it reads on.
        asks_all: the next read first asks all brokers who leads: a deposed leader that is cut off
            from the others names itself, and lacks what was written since.
    """

    def __init__(
        self,
        clients: SharedClients,
        number: int,
        take: Callable[[Any], None],
        *,
        committed: bool = True,
        start: int = 0,
    ) -> None:
        self.reached = start
        self._clients = clients
        self._place = clients.config.log_topic, number
        self._take = take
        self._committed = committed
        self.asks_all = True
        self._caught_up: Leader | None = None

    def read(self, deadline: Deadline) -> Fetched:
        """Read what one response contains.

        If the partition no longer has the offset to read from, it reads on at the first one that it
        has; if the partition ends before that offset, it stays there.

        Raises:
            ClusterError: the topic is gone, or a permission is missing.
        """
        if self.asks_all:
            self.look_up_leader(deadline)
        fetched = self._fetch(deadline)
        for record in fetched.records():
            if record.offset >= self.reached:
                self._take(record)
        self.reached = fetched.next
        return fetched

    def read_to(self, end: int, deadline: Deadline) -> None:
        """Read on to an offset, and wait for open transactions before it.

        Raises:
            OutcomeUnknownError: that was not possible by the deadline.
        """
        patience = deadline.within(_ANSWERS_S)

        def read() -> bool:
            nonlocal patience
            before = -1
            while before < self.reached < end:
                before = self.reached
                self.read(deadline)
                if self.reached > before:
                    patience = deadline.within(_ANSWERS_S)
            if patience.passed:
                # It may be asking a deposed leader.
                self.look_up_leader(deadline)
                patience = deadline.within(_ANSWERS_S)
            return self.reached >= end

        if not retry_until(deadline, read, bool):
            raise OutcomeUnknownError(
                f"The decision log {self._name} could not be read to offset {end} within "
                f"{deadline.seconds:.0f} s; read up to {self.reached}.",
                remedy="An open transaction on it, of another query's driver, ends by its timeout; "
                "check the partition's leader, then start the query again.",
            )

    def look_up_leader(self, deadline: Deadline) -> None:
        """Ask all brokers who leads."""
        wire = self._wire
        wire.run(wire.find_newest_leader, self._place, deadline.within(_ASK_ALL_S))
        self.asks_all = False

    @property
    def _wire(self) -> Wire:
        return self._clients.control().wire

    @property
    def _name(self) -> str:
        return "{}[{}]".format(*self._place)

    def _fetch(self, deadline: Deadline) -> Fetched:
        wire = self._wire
        # A broker may not know yet of a topic that was just created.
        learning = deadline.within(_LEARNS_S)

        def is_final(answer: Fetched | KafkaError) -> bool:
            if not isinstance(answer, KafkaError):
                return True
            return learning.passed if is_missing(answer) else not is_transient(answer)

        answer = retry_until(
            deadline, lambda: wire.run(self._ask, wire, deadline.within(_ANSWERS_S)), is_final
        )
        if not isinstance(answer, KafkaError):
            return answer
        if is_missing(answer):
            raise ClusterError(
                f"The decision log {self._place[0]} is gone.",
                remedy="Do not create it again by hand: restore it if you can, then start the "
                "query again, which says what is known without it.",
            )
        what = f"The decision log {self._name} is unreadable"
        raise convert_error(answer, what, [self._clients.permissions.log_read])

    async def _ask(self, wire: Wire, deadline: Deadline) -> Fetched | KafkaError:
        while True:
            if self._caught_up is None:
                # The high watermark in a Fetch response of a new leader may be too low (KIP-207).
                end = await find_offset(wire, self._place, LATEST, deadline)
                if isinstance(end, KafkaError):
                    return end
                self._caught_up = end[0]
            answer = await fetch(
                wire,
                self._place,
                self.reached,
                deadline,
                committed=self._committed,
                most_bytes=_FETCH_BYTES,
            )
            if isinstance(answer, KafkaError):
                if get_meaning(answer.code()) is not Meaning.OUT_OF_RANGE:
                    return answer
                start = await find_offset(wire, self._place, EARLIEST, deadline)
                end = await find_offset(wire, self._place, LATEST, deadline)
                if isinstance(start, KafkaError):
                    return start
                if isinstance(end, KafkaError):
                    return end
                if self.reached > end[1]:
                    return Fetched(end[0], end[1], end[1], self.reached)
                self.reached = max(self.reached, start[1])
            elif answer.leader == self._caught_up:
                return answer
            else:
                self._caught_up = None


class DecisionLogReader:
    """Implements `LogReader` for one query; reads on from where it was. Its requests go over the
    connections that all clients share, so nothing of it is to be closed.

    Args:
        clients: of the cluster.
        names: of the query.
    """

    def __init__(self, clients: SharedClients, names: QueryNames) -> None:
        self._clients = clients
        self.home = Position(clients.config.log_topic, home_of(names.query), 0)
        self._key = names.log_key.encode()
        self._at_least = 0
        self._restart()

    @property
    def reached(self) -> int:
        return self._log.reached

    def latest(
        self, deadline: Deadline, known: int = 0, *, anew: bool = False
    ) -> tuple[Position, bytes] | None:
        """The target is the high watermark, not the last stable offset: a record of this query
        may lie behind another query's open transaction, and is waited for."""
        if anew:
            self._log.look_up_leader(deadline)
        at_least, self._at_least = self._at_least, 0
        before = self._log.reached
        end = max(self._log.read(deadline).end, at_least)
        if end < known:
            end = self._read_again(known, deadline)
        if end < before:
            self._restart()
        self._log.read_to(end, deadline)
        return self._latest

    def known(self, deadline: Deadline) -> tuple[Position, bytes] | None:
        before = self._log.reached
        fetched = self._log.read(deadline)
        if fetched.end < before:
            self._restart()
            fetched = self._log.read(deadline)
        self._log.read_to(fetched.stable, deadline)
        return self._latest

    def written(self, start: int, end: int, deadline: Deadline) -> bool:
        self._at_least = end + 1
        found = list[int]()

        def take(record: Any) -> None:
            if record.key == self._key and record.offset < end:
                found.append(record.offset)

        reader = PartitionReader(
            self._clients, self.home.partition, take, committed=False, start=start
        )
        reader.read_to(end, deadline)
        return bool(found)

    def records(self, deadline: Deadline) -> Sequence[tuple[Position, bytes]]:
        found = list[tuple[Position, bytes]]()

        def take(record: Any) -> None:
            if record.key == self._key:
                found.append((replace(self.home, offset=record.offset), record.value or b""))

        reader = PartitionReader(self._clients, self.home.partition, take)
        _read_all(reader, deadline)
        return found

    def _restart(self) -> None:
        """The topic was deleted and created again: nothing that was read holds."""
        self._latest: tuple[Position, bytes] | None = None
        self._log = PartitionReader(self._clients, self.home.partition, self._take)

    def _take(self, record: Any) -> None:
        if record.key == self._key:
            self._latest = replace(self.home, offset=record.offset), record.value or b""

    def _read_again(self, known: int, deadline: Deadline) -> int:
        """The log has a record before `known`, unless it has lost records. A deposed leader learns
        that soon, unless it is cut off from the others."""

        def read() -> int:
            self._log.look_up_leader(soon)
            return self._log.read(deadline).end

        soon = deadline.within(min(_DEPOSED_S, deadline.left / 2))
        return retry_until(soon, read, lambda end: end >= known)


def read_claim_records(  # noqa: PLR0913, PLR0917 - see `Kafka.claim_records`
    clients: SharedClients,
    subject: str,
    suffix: str,
    deadline: Deadline,
    start: int,
    end: int | None,
) -> tuple[dict[str, bytes], int]:
    """See `eos_sink.kafka.interfaces.Kafka.claim_records`."""
    latest, ending = dict[bytes, bytes](), suffix.encode()

    def take(record: Any) -> None:
        if record.key is not None and record.key.endswith(ending):
            latest[record.key] = record.value or b""

    # Of a log that was made again since, all of it is new.
    first = start if end is None or start <= end else 0
    reader = PartitionReader(clients, home_of(subject), take, start=first)
    if end is None:
        _read_all(reader, deadline)
    else:
        reader.read_to(end, deadline)
    found = {key.decode(errors="replace"): value for key, value in latest.items()}
    return found, reader.reached


def _read_all(reader: PartitionReader, deadline: Deadline) -> None:
    """Read to the high watermark, past open transactions."""
    reader.read_to(reader.read(deadline).end, deadline)
