"""All queries of a cluster at once: the decision log read on and on, transactions, groups, ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from eos_sink.errors import ClusterError, EosSinkError, OutcomeUnknownError
from eos_sink.kafka.admin.inspection import ConfluentInspection
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Meaning, convert_error, get_meaning, is_transient
from eos_sink.kafka.interfaces import LogPosition, TransactionState
from eos_sink.kafka.log_reader import assigned_consumer
from eos_sink.kafka.observing import LogLine, LogPage, PartitionEnds
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.options import SinkOptions

_POLL_S = 0.1
_FETCH_MS = 1
Place = tuple[str, int]


class ConfluentObservation(ConfluentInspection):
    """Implements `Observation`. The reader of the log is kept between calls."""

    def __init__(self, options: SinkOptions) -> None:
        super().__init__(options)
        self._log_consumer: Consumer | None = None
        self._log_id = ""

    def log_lines(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        topic = self._options.log_topic
        try:
            described = self._describe(topic, deadline)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            needs = [self._permissions.log_read]
            raise _judged(error, f"The decision log {topic} cannot be seen", needs) from raised
        before, self._log_id = self._log_id, str(described.topic_id)
        numbers = [partition.id for partition in described.partitions]
        if not since or (before and before != self._log_id):
            return self._read_log(dict.fromkeys(numbers, 0), deadline, anew=bool(since))
        starts = {number: since.get(number, 0) for number in numbers}
        page = self._read_log(starts, deadline)
        if all(page.ends[number] >= start for number, start in starts.items()):
            return page
        return self._read_log(dict.fromkeys(numbers, 0), deadline, anew=True)

    def transactions(
        self, prefix: str, deadline: Deadline, *, ended: bool = False
    ) -> list[TransactionState]:
        control = self.control()
        with self._seeing_transactions(prefix):
            names = (control.list_all if ended else control.list_open)(prefix, deadline)
            states = control.describe(sorted(set(names)), deadline)
        return [states[name] for name in sorted(states)]

    def described(self, ids: Iterable[str], deadline: Deadline) -> Mapping[str, TransactionState]:
        with self._seeing_transactions(self._options.names.prefix):
            return self.control().describe(ids, deadline)

    def ends(
        self, topics: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[PartitionEnds, ...] | EosSinkError]:
        found: dict[str, tuple[PartitionEnds, ...] | EosSinkError] = {}
        places: list[Place] = []
        for topic in dict.fromkeys(topics):
            try:
                partitions = self._describe(topic, deadline).partitions
                places += [(topic, partition.id) for partition in partitions]
                found[topic] = ()
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    found[topic] = ()
                else:
                    found[topic] = _topic_error(error, topic)
        starts = self._listed(places, OffsetSpec.earliest(), deadline)  # type: ignore[no-untyped-call]
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        stable = self._listed(places, latest, deadline, IsolationLevel.READ_COMMITTED)
        ends = self._listed(places, latest, deadline)
        for place in sorted(places):
            topic, partition = place
            before = found[topic]
            answers = [each[place] for each in (starts, stable, ends)]
            errors = [each for each in answers if isinstance(each, KafkaError)]
            if errors:
                found[topic] = _topic_error(errors[0], topic)
            elif isinstance(before, tuple):
                offsets = [each for each in answers if isinstance(each, int)]
                found[topic] = (*before, PartitionEnds(partition, *offsets))
        return found

    def hosts(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[str, ...] | EosSinkError]:
        wanted = list(dict.fromkeys(groups))
        if not wanted:
            return {}
        futures = self._admin(deadline).describe_consumer_groups(
            wanted, request_timeout=deadline.left
        )
        found: dict[str, tuple[str, ...] | EosSinkError] = {}
        for group, future in futures.items():
            try:
                members = self._answer(future, deadline).members
                found[group] = tuple(sorted(str(member.host) for member in members))
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
                    found[group] = ()
                    continue
                acl = Acl("Describe", Resource.GROUP, group)
                found[group] = _judged(error, f"The group {group} cannot be seen", [acl])
        return found

    def close(self) -> None:
        if self._log_consumer is not None:
            self._log_consumer.close()
        self._log_consumer = None
        super().close()

    def _read_log(
        self, starts: Mapping[int, int], deadline: Deadline, *, anew: bool = False
    ) -> LogPage:
        """Each partition on from its start; from its first offset where that is out of range."""
        topic, unread = self._options.log_topic, set(starts)
        lines: dict[int, list[LogLine]] = {number: [] for number in starts}
        ends = dict(starts)
        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, number, at) for number, at in starts.items()])
        try:
            while unread and not deadline.passed:
                message = consumer.poll(min(_POLL_S, deadline.left))
                if message is None:
                    continue
                error, number = message.error(), message.partition() or 0
                if error is None:
                    line = _line(message)
                    lines[number].append(line)
                    ends[number] = line.position.offset + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(number)
                    ends[number] = message.offset() or 0
                # librdkafka looks for the coordinator of the group, which this reader never joins.
                elif not (
                    is_transient(error) or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
                ):
                    what = f"The decision log {topic} is unreadable"
                    raise _judged(error, what, [self._permissions.log_read])
        finally:
            consumer.unassign()
        if unread:
            raise OutcomeUnknownError(
                f"The decision log {topic} could not be read whole within {deadline.seconds:.0f} "
                f"s: partitions {sorted(unread)} are missing.",
                remedy="Check their leaders, then try again.",
            )
        found = [line for number in sorted(lines) for line in lines[number]]
        return LogPage(tuple(sorted(found, key=lambda line: line.at_ms)), ends, anew)

    @staticmethod
    @contextmanager
    def _seeing_transactions(prefix: str) -> Iterator[None]:
        """Who only looks needs less than the query itself."""
        try:
            yield
        except ClusterError as error:
            if "missing" not in error.data:
                raise
            acl = Acl("Describe", Resource.TRANSACTIONAL_ID, prefix or "*", prefixed=bool(prefix))
            raise permission_error("Transactions cannot be seen", [acl], of_query=False) from error

    def _consumer(self) -> Consumer:
        if self._log_consumer is None:
            group = self._options.names.group
            self._log_consumer = assigned_consumer(self._connection, group, "earliest", _FETCH_MS)
        return self._log_consumer

    def _listed(
        self,
        places: list[Place],
        spec: OffsetSpec,
        deadline: Deadline,
        level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[Place, int | KafkaError]:
        if not places:
            return {}
        futures = self._admin(deadline).list_offsets(
            {TopicPartition(topic, number): spec for topic, number in places},
            isolation_level=level,
            request_timeout=deadline.left,
        )
        found: dict[Place, int | KafkaError] = {}
        for place, future in futures.items():
            try:
                offset = int(self._answer(future, deadline).offset)
            except KafkaException as raised:
                found[place.topic, place.partition] = raised.args[0]
            else:
                found[place.topic, place.partition] = offset
        return found


def _line(message: Any) -> LogLine:
    key = (message.key() or b"").decode(errors="replace")
    place = LogPosition(message.topic(), message.partition(), message.offset())
    return LogLine(key, place, message.timestamp()[1], message.value() or b"")


def _topic_error(error: KafkaError, topic: str) -> EosSinkError:
    acl = Acl("Describe", Resource.TOPIC, topic)
    return _judged(error, f"The offsets of topic {topic} cannot be seen", [acl])


def _judged(error: KafkaError, what: str, needs: list[Acl]) -> EosSinkError:
    """As an error of the port, whatever it would mean for a producer."""
    if get_meaning(error.code()) is Meaning.DENIED:
        return permission_error(what, needs, of_query=False)
    found = convert_error(error, what)
    if isinstance(found, EosSinkError):
        return found
    return ClusterError(f"{found}", remedy="Look at the broker's log for the cause.")
