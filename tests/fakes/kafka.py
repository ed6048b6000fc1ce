"""The fake cluster as one process sees it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.errors import ClusterError, ConfigurationError, OutcomeUnknownError
from eos_sink.identity import DEFAULT_LOG, QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import (
    Kafka,
    MemberDescription,
    OnRow,
    PartitionOffsets,
    PartitionState,
    PartitionTail,
    Sizes,
    TopicDescription,
    Trace,
    Unseen,
)
from eos_sink.kafka.log_topic import may_be_log
from eos_sink.protocol.values import (
    EndOutcome,
    FirstOpen,
    Hanging,
    HangingLook,
    MemberRefused,
    MemberState,
    Offsets,
    Place,
    Position,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionStatus,
    Visibility,
)
from tests.fakes.cluster import WRITING, Coordinators, FakeCluster
from tests.fakes.group import Membership
from tests.fakes.log import Outcome, PartitionLog, Topic
from tests.fakes.process import Process, port
from tests.fakes.producer import MAX_MESSAGE_BYTES, FakeProducer

_NEWEST = 32
LOG_TOPIC = DEFAULT_LOG
EVERYTHING = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})


class FakeMember:
    """Implements `eos_sink.kafka.interfaces.GroupMember`."""

    role = "member"

    def __init__(self, cluster: FakeCluster, process: Process, group: str, session_ms: int) -> None:
        self.process = process
        self._cluster = cluster
        self._group = group
        self._session_ms = session_ms
        self._membership: Membership | None = None
        process.on_death.append(self._fall_silent)

    @port("join")
    def join(self, deadline: Deadline) -> bytes:
        if self._session_ms > self._cluster.max_session_ms:
            raise ConfigurationError(
                f"{self._session_ms} ms is above group.max.session.timeout.ms.", remedy="Lower it."
            )
        if not self._cluster.clock.wait(
            lambda: self._cluster.answers(Coordinators.GROUP), deadline.left
        ):
            raise ClusterError(f"{self._group} cannot be joined.", remedy="Start a broker.")
        self._membership = self._cluster.groups.join(self._group, self._session_ms)
        return self._membership.metadata

    @port("state")
    def state(self) -> MemberState:
        return self._state()

    @port("wait_stable")
    def wait_stable(self, position: Position, deadline: Deadline) -> bool:
        def settled() -> bool:
            # In this order: a member hears of its successor from a heartbeat, an answer may
            # come first.
            there = self._cluster.answers(Coordinators.GROUP)
            if there and not self._cluster.coordinator.pending(self._group):
                return True
            if self._state() is MemberState.REPLACED:
                raise MemberRefused(f"a newer member of {self._group} has joined", replaced=True)
            return False

        return self._cluster.clock.wait(settled, deadline.left)

    @port("close")
    def close(self) -> None:
        self._fall_silent()

    def _state(self) -> MemberState:
        assert self._membership is not None, "not joined"
        return self._cluster.groups.state(self._membership)

    def _fall_silent(self) -> None:
        """A static member does not leave: its session runs out."""
        if self._membership is not None:
            self._membership.silent_since_ms = self._cluster.clock.ms


class FakeControl:
    """Implements `eos_sink.kafka.interfaces.TransactionControl`."""

    role = "control"

    def __init__(self, cluster: FakeCluster, process: Process) -> None:
        self.process = process
        self._cluster = cluster

    @port("check_brokers")
    def check_brokers(self, deadline: Deadline) -> None:
        pass

    @port("check_timeout")
    def check_timeout(self, transactional_id: str, timeout_ms: int, deadline: Deadline) -> None:
        if timeout_ms > self._cluster.max_timeout_ms:
            raise ConfigurationError(
                f"{timeout_ms} ms is above transaction.max.timeout.ms.", remedy="Lower it."
            )
        self._cluster.init_producer(transactional_id, timeout_ms, deadline)

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        """The client tries again until the deadline, and leaves out what has no answer by then. It
        waits for the leaders of a transaction's partitions before it ends that."""
        outcomes: dict[Transaction, EndOutcome] = {}
        # In the same order in each run.
        left = sorted(set(transactions), key=lambda each: (each.transactional_id, each.epoch))
        sent: set[Transaction] = set()

        def end_some() -> bool:
            for each in [each for each in left if self._cluster.has_leaders(each)]:
                if each not in sent or self._cluster.answers(*WRITING):
                    outcome = self._end_one(each, commit)
                    sent.add(each)
                    if outcome is not None:
                        outcomes[each] = outcome
                        left.remove(each)
            return not left

        self._cluster.clock.wait(end_some, deadline.left)
        return outcomes

    @port("end")
    def _end_one(self, transaction: Transaction, commit: bool) -> EndOutcome | None:
        """A gate for each: a crash may come between two transactions of one call."""
        return self._cluster.end(transaction, commit)

    @port("list_transactions")
    def list_transactions(
        self, prefix: str, deadline: Deadline, *statuses: TransactionStatus
    ) -> list[TransactionState]:
        self._cluster.await_answer(deadline, Coordinators.TRANSACTIONS)
        coordinator = self._cluster.coordinator
        only_open = statuses == (TransactionStatus.ONGOING,)
        names = (coordinator.list_open if only_open else coordinator.list_all)(prefix)
        states = [coordinator.describe(name) for name in sorted(names)]
        return [state for state in states if not statuses or state.status in statuses]

    @port("describe")
    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        self._cluster.await_answer(deadline, Coordinators.TRANSACTIONS)
        return {name: self._cluster.coordinator.describe(name) for name in ids}

    def find_hanging(
        self, topics: Iterable[str], ids: Collection[str], prefix: str, deadline: Deadline
    ) -> HangingLook:
        """This Kafka forgets no marker."""
        partitions = {
            (name, number): log
            for name in topics
            if name in self._cluster.topics
            for number, log in enumerate(self._cluster.topics[name].partitions)
        }
        without = frozenset(place for place, log in partitions.items() if not log.has_leader)
        return HangingLook([], without)

    def find_holders(
        self, places: Iterable[Place], deadline: Deadline
    ) -> dict[Place, FirstOpen | None]:
        topics = self._cluster.topics
        logs = {(name, n): topics[name].partitions[n] for name, n in places if name in topics}
        return {
            place: FirstOpen(row.txn.identity, row.offset)
            for place, log in logs.items()
            for row in log.all_from(log.last_stable)[:1]
        }

    def end_hanging(self, hanging: Hanging, commit: bool, deadline: Deadline) -> bool:
        raise AssertionError(f"nothing hangs, but {hanging}")


class FakeLogReader:
    """Implements `eos_sink.kafka.interfaces.LogReader`.

    Attributes:
        stale_end: the end that a deposed leader tells, until it is known to be further on.
    """

    role = "log"

    def __init__(
        self, cluster: FakeCluster, process: Process, topic: str, names: QueryNames
    ) -> None:
        self.process = process
        self._cluster = cluster
        self._name = topic
        self._key = names.log_key.encode()
        self.stale_end: int | None = None
        self._reached = self._at_least = 0
        cluster.create_topic(topic)

    @property
    def reached(self) -> int:
        return self._reached

    @port("latest")
    def latest(
        self, deadline: Deadline, known: int = 0, *, anew: bool = False
    ) -> tuple[Position, bytes] | None:
        log = self._await_leader(deadline)
        if anew:
            self.stale_end = None
        end = log.end if self.stale_end is None else max(self.stale_end, self._at_least)
        self._at_least = 0
        if end < known:
            self.stale_end, end = None, log.end
        _await_stable(self._cluster, [(log, end)], deadline)
        self._reached = end
        return self._found(end)

    @port("written")
    def written(self, start: int, end: int, deadline: Deadline) -> bool:
        self._at_least = end + 1
        between = [
            e
            for e in self._await_leader(deadline).all_from(start)
            if e.offset < end and not e.marker
        ]
        return any(entry.key == self._key for entry in between)

    @port("records")
    def records(self, deadline: Deadline) -> Sequence[tuple[Position, bytes]]:
        log = self._await_leader(deadline)
        self.stale_end, end = None, log.end
        _await_stable(self._cluster, [(log, end)], deadline)
        return [
            (Position(log.topic, log.partition, entry.offset), entry.value or b"")
            for entry in log.committed()
            if entry.offset < end and entry.key == self._key
        ]

    def _found(self, end: int) -> tuple[Position, bytes] | None:
        log, found = self._log, None
        for entry in log.committed():
            if entry.offset < end and entry.key == self._key:
                position = Position(log.topic, log.partition, entry.offset)
                found = position, entry.value or b""
        return found

    def _await_leader(self, deadline: Deadline) -> PartitionLog:
        if not self._cluster.clock.wait(lambda: self._log.has_leader, deadline.left):
            raise OutcomeUnknownError("The log has no leader.", remedy="Start a broker.")
        return self._log

    @property
    def _log(self) -> PartitionLog:
        """The fake's log has one partition."""
        (log,) = self._topic.partitions
        return log

    @property
    def _topic(self) -> Topic:
        """As it is now: it may have been deleted and made again."""
        if self._name not in self._cluster.topics:
            raise ClusterError(f"There is no topic {self._name}.", remedy="Create it.")
        return self._cluster.topics[self._name]

    @port("known")
    def known(self, deadline: Deadline) -> tuple[Position, bytes] | None:
        return self._found(self._await_leader(deadline).end)

    @property
    def home(self) -> Position:
        return Position(self._name, 0, 0)


class FakeKafka:
    """Implements `eos_sink.kafka.interfaces.Kafka` for one process."""

    role = "kafka"

    def __init__(
        self, cluster: FakeCluster, process: Process | None = None, log_topic: str = LOG_TOPIC
    ) -> None:
        self.cluster = cluster
        self.process = process or Process()
        self.log_topic = log_topic

    def producer(
        self, transactional_id: str, timeout_ms: int, sizes: Sizes | None = None
    ) -> FakeProducer:
        largest = (sizes and sizes.record) or MAX_MESSAGE_BYTES
        return FakeProducer(
            self.cluster, self.process, "producer", transactional_id, timeout_ms, largest
        )

    def check_settings(self, transactional_id: str, timeout_ms: int) -> None:
        """It takes each setting."""

    def log_producer(self, transactional_id: str, timeout_ms: int) -> FakeProducer:
        return FakeProducer(
            self.cluster, self.process, "log_producer", transactional_id, timeout_ms
        )

    def member(self, group: str, instance_id: str, session_ms: int) -> FakeMember:
        return FakeMember(self.cluster, self.process, group, session_ms)

    def longest_session(self, deadline: Deadline) -> int | None:
        return self.cluster.max_session_ms if self.cluster.tells_settings else None

    def control(self) -> FakeControl:
        return FakeControl(self.cluster, self.process)

    @port("log_reader")
    def log_reader(self, names: QueryNames, deadline: Deadline) -> FakeLogReader:
        return FakeLogReader(self.cluster, self.process, self.log_topic, names)

    def claim_home(self, subject: str) -> Position:
        return Position(self.log_topic, 0, 0)

    @port("claim_records")
    def claim_records(
        self,
        subject: str,
        suffix: str,
        deadline: Deadline,
        start: int = 0,
        end: int | None = None,
    ) -> tuple[Mapping[str, bytes], int]:
        (log,) = self.cluster.topics[self.log_topic].partitions
        end = log.end if end is None else end
        start = start if start <= end else 0
        _await_stable(self.cluster, [(log, end)], deadline)
        read = [each for each in log.committed() if each.offset >= start]
        found = {(each.key or b"").decode(): each.value or b"" for each in read}
        return {key: value for key, value in found.items() if key.endswith(suffix)}, end

    def read_back(self) -> FakeReadBack:
        return FakeReadBack(self)

    @port("check_topic")
    def check_topic(self, topic: str, deadline: Deadline) -> None:
        if topic not in self.cluster.topics:
            raise ClusterError(f"There is no topic {topic}.", remedy="Create it.")

    @port("describe_topics")
    def describe_topics(
        self, topics: Sequence[str], deadline: Deadline, *, settings: bool = True
    ) -> Mapping[str, TopicDescription | Unseen | None]:
        return {name: self.describe(name) for name in topics}

    def topic_ids(self, topics: Collection[str] | None, deadline: Deadline) -> Mapping[str, str]:
        known = self.cluster.topics
        return {name: known[name].id for name in known if topics is None or name in topics}

    @port("describe_groups")
    def describe_groups(
        self, groups: Iterable[str], deadline: Deadline
    ) -> Mapping[str, tuple[MemberDescription, ...] | Unseen]:
        has_member = self.cluster.groups.has_member
        return {
            group: (MemberDescription(f"{group}-driver", "fake", "fake-host"),)
            if has_member(group)
            else ()
            for group in groups
        }

    @port("group_offsets")
    def group_offsets(self, group: str, deadline: Deadline) -> Offsets:
        if not self.cluster.clock.wait(
            lambda: not self.cluster.coordinator.pending(group), deadline.left
        ):
            raise OutcomeUnknownError(f"{group} has pending offsets.", remedy="Wait.")
        return dict(self.cluster.groups.committed.get(group, {}))

    @port("list_offsets")
    def list_offsets(
        self, places: Collection[Place], deadline: Deadline
    ) -> Mapping[Place, PartitionOffsets | Unseen]:
        logs = {
            (name, log.partition): log
            for name, topic in self.cluster.topics.items()
            for log in topic.partitions
        }
        there = {place: logs[place] for place in places if place in logs}
        return {
            place: PartitionOffsets(place[1], log.start, log.last_stable, log.end)
            if log.has_leader
            else Unseen("it has no leader")
            for place, log in there.items()
        }

    def close(self) -> None:
        pass

    def describe(self, name: str) -> TopicDescription | Unseen | None:
        topic = self.cluster.topics.get(name)
        if topic is None:
            return None
        parts = {
            log.partition: PartitionState(1 if log.has_leader else -1, 1, 1)
            for log in topic.partitions
        }
        return TopicDescription(name, parts, topic.settings, EVERYTHING, topic.id)


class FakeReadBack:
    """Implements `eos_sink.kafka.interfaces.ReadBack`."""

    role = "read_back"

    def __init__(self, kafka: FakeKafka) -> None:
        self.process, self._kafka, self._cluster = kafka.process, kafka, kafka.cluster

    @port("visibility")
    def visibility(
        self, witnesses: Mapping[Position, Transaction], deadline: Deadline
    ) -> Mapping[Position, Visibility]:
        def look() -> dict[Position, Visibility]:
            found = {each: self._visibility(each, witnesses[each]) for each in witnesses}
            return {each: seen for each, seen in found.items() if seen is not None}

        self._cluster.clock.wait(lambda: len(look()) == len(witnesses), deadline.left)
        return look()

    @port("markers")
    def markers(
        self, asked: Mapping[Position, Transaction], deadline: Deadline
    ) -> Mapping[Position, bool]:
        found = {witness: self._marker(witness, asked[witness]) for witness in asked}
        return {witness: marker for witness, marker in found.items() if marker is not None}

    @port("scan_topic")
    def scan_topic(
        self,
        topic: str,
        producers: frozenset[ProducerIdentity],
        most: int,
        on_row: OnRow,
        deadline: Deadline,
    ) -> list[PartitionTail]:
        found = self._cluster.topics.get(topic)
        logs = found.partitions if found else []
        return [
            _scan(log, producers, most, on_row)
            if log.has_leader
            else PartitionTail(topic, log.partition, 0, 0, 0, 0, unread="no leader")
            for log in logs
        ]

    @port("newest_values")
    def newest_values(
        self, topics: Collection[str], deadline: Deadline
    ) -> Mapping[str, Sequence[bytes]]:
        views = {name: self._kafka.describe(name) for name in topics}
        return {
            name: [
                entry.value
                for log in self._cluster.topics[name].partitions
                for entry in log.all_from(log.end - _NEWEST)
                if entry.value is not None
            ]
            for name, view in views.items()
            if isinstance(view, TopicDescription) and may_be_log(view)
        }

    def _visibility(self, witness: Position, transaction: Transaction) -> Visibility | None:
        log = self._find_log(witness)
        if log is None:
            return Visibility.UNREADABLE
        return log.visibility(witness.offset, transaction)

    def _marker(self, witness: Position, transaction: Transaction) -> bool | None:
        log = self._find_log(witness)
        return None if log is None else log.marker(witness.offset, transaction)

    def _find_log(self, witness: Position) -> PartitionLog | None:
        topic = self._cluster.topics.get(witness.topic)
        if topic is None or witness.partition >= len(topic.partitions):
            return None
        return topic.partitions[witness.partition]


def _await_stable(
    cluster: FakeCluster, ends: Collection[tuple[PartitionLog, int]], deadline: Deadline
) -> None:
    """Wait until readers get all that the logs have before these offsets."""
    if not cluster.clock.wait(
        lambda: all(log.last_stable >= end for log, end in ends), deadline.left
    ):
        raise OutcomeUnknownError("The log ends in an open transaction.", remedy="Wait.")


def _scan(
    log: PartitionLog, producers: frozenset[ProducerIdentity], most: int, on_row: OnRow
) -> PartitionTail:
    first = max(log.start, log.end - most)
    traces: dict[ProducerIdentity, Trace] = {}
    for entry in log.all_from(first):
        producer = ProducerIdentity(entry.txn.producer_id, entry.txn.epoch)
        if producer not in producers:
            continue
        trace = traces.get(producer, Trace())
        if entry.marker:
            traces[producer] = trace.ended(committed=entry.txn.outcome is Outcome.COMMITTED)
        else:
            traces[producer] = trace.more(1)
            row = (entry.value, entry.key, log.topic, list(entry.headers) or None, None, None)
            on_row(producer, row)
    return PartitionTail(
        log.topic, log.partition, log.start, log.last_stable, log.end, first, traces
    )


if TYPE_CHECKING:

    def _implements(kafka: FakeKafka) -> Kafka:
        return kafka
