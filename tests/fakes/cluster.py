"""The brokers: topics, coordinators and time, shared by every process of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import EndOutcome, ProducerIdentity, Transaction
from tests.fakes.clock import FakeClock
from tests.fakes.coordinator import Coordinator
from tests.fakes.group import Groups
from tests.fakes.log import Entry, Topic


class Coordinators(Enum):
    """Which requests to coordinators are answered, and carried out, only when that is over."""

    TRANSACTIONS = "all to the transaction coordinator, whose broker stands still"
    WRITES = "those that write to __transaction_state, whose partition has too few replicas in sync"
    GROUP = "all to the group coordinator"


WRITING = (Coordinators.TRANSACTIONS, Coordinators.WRITES)


@dataclass
class FakeCluster:
    """State that survives every crash of a client.

    Attributes:
        max_timeout_ms: the brokers' `transaction.max.timeout.ms`.
        max_session_ms: their `group.max.session.timeout.ms`.
        tells_settings: whether a query may see that one.
        silent_until: the times before which coordinators do not answer.
        leaders_return_at: from this time on, if it is not 0, each partition has a leader and its
            replicas.
    """

    clock: FakeClock = field(default_factory=FakeClock)
    max_timeout_ms: int = 900_000
    max_session_ms: int = 1_800_000
    tells_settings: bool = True
    topics: dict[str, Topic] = field(default_factory=dict)
    silent_until: dict[Coordinators, float] = field(default_factory=dict)
    leaders_return_at: float = 0.0

    def __post_init__(self) -> None:
        self.groups = Groups(self.clock)
        self.coordinator = Coordinator(self.clock, self.groups)
        self._made = 0
        self._unanswered: list[tuple[Transaction, bool]] = []
        self.sent: Callable[[], object] = lambda: None
        """Carries the latest transactional request out once more: its client had sent it again over
        another connection, and the first one arrives late."""
        self.clock.listen(self._recover)

    def answers(self, *needed: Coordinators) -> bool:
        now = self.clock()
        return all(self.silent_until.get(each, 0.0) <= now for each in needed)

    def await_answer(self, deadline: Deadline, *needed: Coordinators) -> None:
        """Raises:
        OutcomeUnknownError: they do not answer by the deadline.
        """
        if not self.clock.wait(lambda: self.answers(*needed), deadline.left):
            names = ", ".join(each.name for each in needed)
            raise OutcomeUnknownError(f"No answer ({names}).", remedy="Try again.")

    def end(self, transaction: Transaction, commit: bool) -> EndOutcome | None:
        """EndTxn; None: it is not answered. A broker that stands still carries it out later."""
        self.sent = partial(self.coordinator.end, transaction, commit)
        if self.answers(*WRITING):
            return self.coordinator.end(transaction, commit)
        if not self.answers(Coordinators.TRANSACTIONS):
            self._unanswered.append((transaction, commit))
        return None

    def has_leaders(self, transaction: Transaction) -> bool:
        """Whether each partition has one to which the transaction, if it is open, has written."""
        txn = self.coordinator.find_open(transaction)
        return txn is None or all(log.has_leader for log in txn.logs)

    def init_producer(self, name: str, timeout_ms: int, deadline: Deadline) -> ProducerIdentity:
        """InitProducerId: aborts an open transaction, and waits for the markers of the last one.

        Raises:
            OutcomeUnknownError: they were not written by the deadline.
        """
        self.await_answer(deadline, *WRITING)
        coordinator = self.coordinator
        self.sent = partial(coordinator.init, name, timeout_ms)
        identity = None if coordinator.is_ending(name) else coordinator.init(name, timeout_ms)
        if not self.clock.wait(lambda: not coordinator.is_ending(name), deadline.left):
            raise OutcomeUnknownError(f"{name} could not be initialized.", remedy="Try again.")
        return identity or coordinator.init(name, timeout_ms)

    def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> Topic:
        if name not in self.topics:
            self._made += 1
            topic_id = f"{name}#{self._made}"
            self.topics[name] = Topic(name, partitions, settings, topic_id)
        return self.topics[name]

    def elect_leaders(self) -> None:
        """Each partition takes records again, and gets the markers that it lacks."""
        self.leaders_return_at = 0.0
        for topic in self.topics.values():
            for log in topic.partitions:
                log.has_leader = log.in_sync = True
        self.coordinator.write_markers()

    def _recover(self) -> None:
        if self._unanswered and self.answers(*WRITING):
            late, self._unanswered = self._unanswered, []
            for transaction, commit in late:
                self.coordinator.end(transaction, commit)
        if self.leaders_return_at and self.clock() >= self.leaders_return_at:
            self.elect_leaders()

    def read_committed(self, topic: str) -> list[Entry]:
        """What a read_committed reader has got by now, partition after partition."""
        return self.topics[topic].committed()
