"""Read_committed reading: the decision log, to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, convert_error, is_missing, is_transient
from eos_sink.kafka.interfaces import LogPosition
from eos_sink.kafka_config.acls import Acl, Permissions

_POLL_S = 0.1
# How long a broker holds back the empty fetch that tells the end of a partition; a new assignment
# waits behind the one that is under way (500 ms by default). A plan waits for the log's in every
# batch.
_FETCH_MS = 1
_LEARNS_S = 10.0
# A request for a broker that has died waits for it to come back.
_ANSWERS_S = 5.0
# How long an end is asked for again that lies before what is known to be there.
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


class ConfluentLogReader:
    """Implements `LogReader` for one query; reads on from where it was."""

    def __init__(
        self,
        settings: dict[str, str],
        group: str,
        position: LogPosition,
        end: EndOffset,
    ) -> None:
        self._needs = end.needs
        self._home = position
        self._end = end
        self._connect = partial(assigned_consumer, settings, group, "earliest", _FETCH_MS)
        self._consumer = self._connect()
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
        end = self._end(self._home, deadline)
        if max(end, at_least) < known:
            end = self._end.again(self._home, known, deadline)
        self._read_on(max(end, at_least), keys, deadline)
        return dict(self._latest)

    def known(
        self, keys: Sequence[str], deadline: Deadline
    ) -> Mapping[str, tuple[LogPosition, bytes]]:
        stable = end_offset(self._consumer, self._home, self._needs, deadline)
        self._read_on(stable, keys, deadline)
        return dict(self._latest)

    def written(
        self, keys: Sequence[str], start: int, end: int, last: int, deadline: Deadline
    ) -> bool:
        self._at_least = last + 1
        return self._end.written(self._home, keys, range(start, end), deadline)

    def _read_on(self, end: int, keys: Sequence[str], deadline: Deadline) -> None:
        if end < self._next:
            # The topic was deleted and made again, so that nothing known holds.
            self._latest, self._next = {}, 0

        before, patience = self._next, deadline.within(_ANSWERS_S)

        def reached() -> bool:
            nonlocal before, patience
            if patience.passed:
                if self._next == before:
                    # It may be asking a leader that was deposed, and only that one who leads.
                    self._consumer.close()
                    self._consumer = self._connect()
                before, patience = self._next, deadline.within(_ANSWERS_S)
            if self._next < end:
                self._read_stable(end, keys, patience)
            return self._next >= end

        if not retry_until(deadline, reached, bool):
            raise OutcomeUnknownError(
                f"The decision log {self._home.topic}[{self._home.partition}] could not be "
                f"read to its end ({end}) within {deadline.seconds:.0f} s; read up to "
                f"{self._next}.",
                remedy="An open transaction on it, of another query's driver, ends by its "
                "timeout; check the partition's leader, then start the query again.",
            )

    def _read_stable(self, end: int, keys: Sequence[str], deadline: Deadline) -> None:
        """Read on to the end, or to the first open transaction before it."""
        # Assigned only while it reads, so that an idle process, or one that waits for another
        # query's transaction, fetches nothing.
        place = TopicPartition(self._home.topic, self._home.partition, self._next)
        self._consumer.assign([place])
        try:
            while self._next < end and not deadline.passed:
                message = self._consumer.poll(min(_POLL_S, deadline.left))
                if message is not None and self._take(message, keys):
                    return
        finally:
            self._consumer.unassign()

    def _take(self, message: Message, keys: Sequence[str]) -> bool:
        """Whether the stable end is reached."""
        error, offset = message.error(), message.offset() or 0
        if error is None:
            self._next = offset + 1
            key = (message.key() or b"").decode(errors="replace")
            if key in keys:
                place = LogPosition(self._home.topic, self._home.partition, offset)
                self._latest[key] = (place, message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            self._next = max(self._next, offset)
            return True
        elif not is_transient(error):
            what = f"The decision log {self._home.topic} is unreadable"
            raise convert_error(error, what, self._needs)
        return False

    def close(self) -> None:
        self._consumer.close()
        self._end.close()


class EndOffset:
    """The high watermark of a log partition, asked from its leader."""

    def __init__(
        self, consumer_settings: dict[str, str], group: str, needs: tuple[Acl, ...]
    ) -> None:
        """Args:
        needs: what a reader of the log has to be permitted.
        """
        self.needs = needs
        # The offset listed for read_committed is the last stable one, which can lie before a
        # committed record; hence a reader of the other isolation level.
        self._connect = partial(
            Consumer,
            {
                **consumer_settings,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "earliest",
            },
            logger=LOGGER,
        )
        self._consumer = self._connect()

    def close(self) -> None:
        self._consumer.close()

    def __call__(self, position: LogPosition, deadline: Deadline) -> int:
        return end_offset(self._consumer, position, self.needs, deadline)

    def again(self, position: LogPosition, known: int, deadline: Deadline) -> int:
        """The end is known to be further on than it was told, unless the log has lost records. A
        leader that was deposed learns of it soon, unless it is cut off; a new client may begin with
        another broker, while this one asks nobody else who leads."""

        def ask() -> int:
            self._consumer.close()
            self._consumer = self._connect()
            return self(position, deadline)

        soon = deadline.within(min(_DEPOSED_S, deadline.left / 2))
        return retry_until(soon, ask, lambda end: end >= known)

    def written(
        self, home: LogPosition, keys: Sequence[str], offsets: range, deadline: Deadline
    ) -> bool:
        """Whether a record under one of the keys lies there; a later record is known to be."""
        wanted = {key.encode() for key in keys}
        with contextlib.suppress(KafkaException):
            # librdkafka would go on with the leader that it remembers.
            self._consumer.list_topics(home.topic, timeout=deadline.within(_ANSWERS_S).left)
        self._consumer.assign([TopicPartition(home.topic, home.partition, offsets.start)])
        try:
            while not deadline.passed:
                message = self._consumer.poll(min(_POLL_S, deadline.left))
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    if (message.offset() or 0) >= offsets.stop:
                        return False
                    if message.key() in wanted:
                        return True
                elif not is_transient(error):
                    raise convert_error(
                        error, f"The decision log {home.topic} is unreadable", self.needs
                    )
        finally:
            self._consumer.unassign()
        raise OutcomeUnknownError(
            f"The decision log {home.topic}[{home.partition}] could not be read from "
            f"{offsets.start} to {offsets.stop} within {deadline.seconds:.0f} s.",
            remedy="Check the partition's leader, then start the query again.",
        )


def end_offset(
    consumer: Consumer, position: LogPosition, needs: tuple[Acl, ...], deadline: Deadline
) -> int:
    """The last stable offset for a read_committed consumer, else the high watermark."""
    place = TopicPartition(position.topic, position.partition)

    def ask() -> int | KafkaError:
        try:
            soon = deadline.within(_ANSWERS_S).left
            return int(consumer.get_watermark_offsets(place, timeout=soon)[1])
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            # librdkafka asks the leader that it remembers, for up to metadata.max.age.ms (15
            # minutes), while the partition has long found another one.
            with contextlib.suppress(KafkaException):
                consumer.list_topics(place.topic, timeout=deadline.within(_ANSWERS_S).left)
            return error

    # A broker may not know yet of a topic that was just made.
    learning = deadline.within(_LEARNS_S)

    answer = retry_until(deadline, ask, lambda end: _is_final(end, learning))
    if isinstance(answer, KafkaError):
        if is_missing(answer):
            raise ClusterError(
                f"The decision log {position.topic} is gone.",
                remedy="Do not make it again by hand: restore it if you can, then start the query "
                "again, which says what is known without it.",
            )
        what = f"The end of {position.topic}[{position.partition}] is unknown"
        raise convert_error(answer, what, needs)
    return answer


def _is_final(answer: object, learning: Deadline) -> bool:
    if not isinstance(answer, KafkaError):
        return True
    return learning.passed if is_missing(answer) else not is_transient(answer)


def read_log(
    settings: dict[str, str],
    group: str,
    permissions: Permissions,
    deadline: Deadline,
    end: EndOffset | None = None,
) -> dict[str, bytes]:
    """The latest committed record of each key.

    Args:
        end: each partition is read to its high watermark at the call, and open transactions before
            it are waited for; None: each is read to its first open transaction.
    """
    topic, needs = permissions.log, (permissions.log_read, permissions.group)
    consumer = assigned_consumer(settings, group, "earliest", _FETCH_MS)
    latest = dict[bytes, bytes]()
    following = dict[int, int]()

    def read_stable(ends: dict[int, int]) -> bool:
        """Whether each partition is read to its end. Assigned only while it reads, so that nothing
        is fetched while a transaction is waited for."""
        unread = {number for number, at in ends.items() if following.get(number, -1) < at}
        left = set(unread)
        consumer.assign([TopicPartition(topic, n, following.get(n, 0)) for n in unread])
        while left and not deadline.passed:
            message = consumer.poll(min(_POLL_S, deadline.left))
            if message is None:
                continue
            error, number, offset = message.error(), message.partition() or 0, message.offset() or 0
            if error is None:
                latest[message.key() or b""] = message.value() or b""
                following[number] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                following[number] = max(following.get(number, 0), offset)
                left.discard(number)
            elif not is_transient(error):
                raise convert_error(error, f"The decision log {topic} is unreadable", needs)
        consumer.unassign()
        return all(following.get(number, -1) >= at for number, at in ends.items())

    def partitions() -> list[int] | KafkaError:
        try:
            seen = consumer.list_topics(topic, timeout=deadline.within(_ANSWERS_S).left)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            return error
        found = seen.topics[topic]
        return found.error or list(found.partitions)

    try:
        learning = deadline.within(_LEARNS_S)
        numbers = retry_until(deadline, partitions, lambda seen: _is_final(seen, learning))
        if isinstance(numbers, KafkaError):
            raise convert_error(numbers, f"The decision log {topic} cannot be seen", needs)
        ends = {n: end(LogPosition(topic, n, 0), deadline) if end else 0 for n in numbers}
        if not retry_until(deadline, lambda: read_stable(ends), bool):
            unread = sorted(n for n, at in ends.items() if following.get(n, -1) < at)
            raise OutcomeUnknownError(
                f"The decision log {topic} could not be read to its end within "
                f"{deadline.seconds:.0f} s: partitions {unread} are missing.",
                remedy="An open transaction on it, of another query's driver, ends by its "
                "timeout; check the partitions' leaders, then try again.",
            )
        return {key.decode(errors="replace"): value for key, value in latest.items()}
    finally:
        consumer.close()
