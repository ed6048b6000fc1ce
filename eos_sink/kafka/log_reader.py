"""Reads topics with consumers that commit no offsets; above all the decision log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, convert_error, is_missing, is_transient
from eos_sink.kafka.interfaces import LogPosition
from eos_sink.kafka.shared_clients import SharedClients

_POLL_S = 0.1
# How long a broker delays the empty fetch that marks the end of a partition; a new assignment
# waits behind the one that is under way (500 ms by default). Each plan waits for the log's.
_FETCH_MS = 1
_LEARNS_S = 10.0
# A request to a broker that has died waits for it to come back.
_ANSWERS_S = 5.0
# How long an end that lies before a known record is asked for again.
_DEPOSED_S = 10.0


def assigned_consumer(
    settings: dict[str, str],
    group: str,
    when_out_of_range: str,
    fetch_ms: int,
    *,
    committed: bool = True,
) -> Consumer:
    """A consumer of partitions that are assigned to it, which never commits offsets."""
    configuration: dict[str, Any] = {
        **settings,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": fetch_ms,
        "auto.offset.reset": when_out_of_range,
    }
    return Consumer(configuration, logger=LOGGER)


class PartitionReader:
    """Reads partitions of the decision log. It is assigned only while it reads, so that an idle
    process, or one that waits for an open transaction, fetches nothing.

    Args:
        clients: of the query.
        committed: read only what committed transactions wrote, up to the first open one.
        ignored: codes of lasting errors that do not matter to the caller.
    """

    def __init__(
        self, clients: SharedClients, *, committed: bool = True, ignored: Iterable[int] = ()
    ) -> None:
        self.topic = clients.options.log_topic
        self._needs = (clients.permissions.log_read, clients.permissions.group)
        self._ignored = frozenset(ignored)
        self._connect = partial(
            assigned_consumer,
            clients.connection,
            clients.options.names.group,
            "earliest",
            _FETCH_MS,
            committed=committed,
        )
        self._consumer = self._connect()

    def read(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        take: Callable[[Message], bool | None],
        deadline: Deadline,
    ) -> tuple[dict[int, int], set[int]]:
        """Read each partition from its start, or from its first offset if the start is out of
        range, to its end.

        Args:
            starts: the first offset to read, by partition.
            ends: where to stop at the latest. A partition that is not named, or whose readable
                part ends before, is read as far as there is something to read.
            take: is called with each record; True stops the reading.

        Returns:
            Where to read on, by partition; the partitions that were not finished by the deadline.
        """
        reached = dict(starts)
        unread = {n for n, at in starts.items() if n not in ends or at < ends[n]}
        if not unread:
            return reached, unread
        self._consumer.assign([TopicPartition(self.topic, n, starts[n]) for n in sorted(unread)])
        try:
            while unread and not deadline.passed:
                message = self._consumer.poll(min(_POLL_S, deadline.left))
                if message is None:
                    continue
                error, number, offset = message.error(), message.partition() or 0, message.offset()
                if error is None:
                    reached[number] = (offset or 0) + 1
                    if take(message):
                        break
                    if number in ends and reached[number] >= ends[number]:
                        unread.discard(number)
                elif error.code() == KafkaError._PARTITION_EOF:
                    reached[number] = offset or 0
                    unread.discard(number)
                elif not is_transient(error) and error.code() not in self._ignored:
                    what = f"The decision log {self.topic} is unreadable"
                    raise convert_error(error, what, self._needs)
        finally:
            self._consumer.unassign()
        return reached, unread

    def find_end(self, number: int, deadline: Deadline) -> int:
        """The partition's last stable offset if this reads committed records, else its high
        watermark, which may lie behind records of open transactions."""

        def ask() -> int | KafkaError:
            try:
                soon = deadline.within(_ANSWERS_S).left
                place = TopicPartition(self.topic, number)
                return int(self._consumer.get_watermark_offsets(place, timeout=soon)[1])
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                self.look_up_leader(deadline)
                return error

        # A broker may not know yet of a topic that was just created.
        learning = deadline.within(_LEARNS_S)

        def is_final(answer: int | KafkaError) -> bool:
            if not isinstance(answer, KafkaError):
                return True
            return learning.passed if is_missing(answer) else not is_transient(answer)

        end = retry_until(deadline, ask, is_final)
        if not isinstance(end, KafkaError):
            return end
        if is_missing(end):
            raise ClusterError(
                f"The decision log {self.topic} is gone.",
                remedy="Do not create it again by hand: restore it if you can, then start the "
                "query again, which says what is known without it.",
            )
        raise convert_error(end, f"The end of {self.topic}[{number}] is unknown", self._needs)

    def look_up_leader(self, deadline: Deadline) -> None:
        """Otherwise librdkafka asks the leader that it remembers, for up to metadata.max.age.ms (15
        minutes), although the partition may have long found another one."""
        with contextlib.suppress(KafkaException):
            self._consumer.list_topics(self.topic, timeout=deadline.within(_ANSWERS_S).left)

    def reconnect(self) -> None:
        """A new client may begin with another broker, while this one asks only the leader that it
        remembers."""
        self._consumer.close()
        self._consumer = self._connect()

    def close(self) -> None:
        self._consumer.close()


class ConfluentLogReader:
    """Implements `LogReader` for one query; reads on from where it was.

    Args:
        clients: of the query.
        home: the partition of its records.
    """

    def __init__(self, clients: SharedClients, home: LogPosition) -> None:
        self._home = home
        self._committed = PartitionReader(clients)
        # The end for a read_committed consumer is the last stable offset, which can lie before a
        # committed record.
        self._all = PartitionReader(clients, committed=False)
        self._next = self._at_least = 0
        self._latest: dict[str, tuple[LogPosition, bytes]] = {}

    @property
    def reached(self) -> int:
        return self._next

    def position(self, query: str) -> LogPosition:  # noqa: ARG002 - made for one query
        return self._home

    def latest(
        self, keys: Sequence[str], deadline: Deadline, known: int = 0
    ) -> Mapping[str, tuple[LogPosition, bytes]]:
        """The target is the high watermark, not the last stable offset: a record of this query
        may lie behind another query's open transaction, and is waited for."""
        at_least, self._at_least = self._at_least, 0
        end = self._all.find_end(self._home.partition, deadline)
        if max(end, at_least) < known:
            end = self._find_end_again(known, deadline)
        self._read_on(max(end, at_least), keys, deadline)
        return dict(self._latest)

    def known(
        self, keys: Sequence[str], deadline: Deadline
    ) -> Mapping[str, tuple[LogPosition, bytes]]:
        self._read_on(self._committed.find_end(self._home.partition, deadline), keys, deadline)
        return dict(self._latest)

    def written(
        self, keys: Sequence[str], start: int, end: int, last: int, deadline: Deadline
    ) -> bool:
        self._at_least = last + 1
        wanted, number = {key.encode() for key in keys}, self._home.partition
        at, found = start, False

        def take(message: Message) -> bool:
            nonlocal found
            found = message.key() in wanted and start <= (message.offset() or 0) < end
            return found

        def read() -> bool:
            nonlocal at
            at = self._all.read({number: at}, {number: end}, take, deadline)[0][number]
            return found or at >= end

        self._all.look_up_leader(deadline)
        if not retry_until(deadline, read, bool):
            raise OutcomeUnknownError(
                f"The decision log {self._home.topic}[{number}] could not be read from {start} to "
                f"{end} within {deadline.seconds:.0f} s.",
                remedy="Check the partition's leader, then start the query again.",
            )
        return found

    def close(self) -> None:
        self._committed.close()
        self._all.close()

    def _find_end_again(self, known: int, deadline: Deadline) -> int:
        """The log has a record before `known`, unless it has lost records. A deposed leader learns
        that soon, unless it is cut off from the others."""

        def ask() -> int:
            self._all.reconnect()
            return self._all.find_end(self._home.partition, deadline)

        soon = deadline.within(min(_DEPOSED_S, deadline.left / 2))
        return retry_until(soon, ask, lambda end: end >= known)

    def _read_on(self, end: int, keys: Sequence[str], deadline: Deadline) -> None:
        number = self._home.partition
        if end < self._next:
            # The topic was deleted and created again: nothing that was read holds.
            self._latest, self._next = {}, 0

        def take(message: Message) -> None:
            key = (message.key() or b"").decode(errors="replace")
            if key in keys:
                position = LogPosition(self._home.topic, number, message.offset() or 0)
                self._latest[key] = position, message.value() or b""

        before, patience = self._next, deadline.within(_ANSWERS_S)

        def read() -> bool:
            nonlocal before, patience
            if patience.passed:
                if self._next == before:
                    # It may be asking a deposed leader, and only that one who leads.
                    self._committed.reconnect()
                before, patience = self._next, deadline.within(_ANSWERS_S)
            reached, _ = self._committed.read({number: self._next}, {number: end}, take, patience)
            self._next = reached[number]
            return self._next >= end

        if not retry_until(deadline, read, bool):
            raise _unfinished(f"{self._home.topic}[{number}]", f"end ({end})", self._next, deadline)


def read_latest_records(
    clients: SharedClients, partitions: Iterable[int], deadline: Deadline
) -> dict[str, bytes]:
    """See `eos_sink.kafka.interfaces.Kafka.log_records`."""
    latest: dict[bytes, bytes] = {}

    def take(message: Message) -> None:
        latest[message.key() or b""] = message.value() or b""

    committed, everything = PartitionReader(clients), PartitionReader(clients, committed=False)
    with contextlib.closing(committed), contextlib.closing(everything):
        ends = {number: everything.find_end(number, deadline) for number in partitions}
        reached = dict.fromkeys(ends, 0)

        def read() -> bool:
            reached.update(committed.read(reached, ends, take, deadline)[0])
            return all(reached[number] >= end for number, end in ends.items())

        if not retry_until(deadline, read, bool):
            raise _unfinished(clients.options.log_topic, f"ends {ends}", reached, deadline)
    return {key.decode(errors="replace"): value for key, value in latest.items()}


def _unfinished(log: str, end: str, reached: object, deadline: Deadline) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"The decision log {log} could not be read to its {end} within {deadline.seconds:.0f} s; "
        f"read up to {reached}.",
        remedy="An open transaction on it, of another query's driver, ends by its timeout; check "
        "the partitions' leaders, then start the query again.",
    )
