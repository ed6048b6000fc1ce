"""The brokers: topics, coordinators and time, shared by every process of a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import ProducerIdentity
from tests.fakes.clock import FakeClock
from tests.fakes.coordinator import Coordinator
from tests.fakes.group import Groups
from tests.fakes.log import Entry, Topic


@dataclass
class FakeCluster:
    """State that survives every crash of a client.

    Attributes:
        max_timeout_ms: the brokers' `transaction.max.timeout.ms`.
        max_session_ms: their `group.max.session.timeout.ms`.
        tells_settings: whether a query may see that one.
        mute_until: before this time no EndTxn is carried out or answered.
        leaders_return_at: from this time on, if it is not 0, each partition has a leader.
    """

    clock: FakeClock = field(default_factory=FakeClock)
    max_timeout_ms: int = 900_000
    max_session_ms: int = 1_800_000
    tells_settings: bool = True
    topics: dict[str, Topic] = field(default_factory=dict)
    mute_until: float = 0.0
    leaders_return_at: float = 0.0

    def __post_init__(self) -> None:
        self.clock.listen(self._return_leaders)
        self.groups = Groups(self.clock)
        self.coordinator = Coordinator(self.clock, self.groups)

    def init_producer(self, name: str, timeout_ms: int, deadline: Deadline) -> ProducerIdentity:
        """InitProducerId: aborts an open transaction, and waits for the markers of the last one.

        Raises:
            OutcomeUnknownError: they were not written by the deadline.
        """
        coordinator = self.coordinator
        identity = None if coordinator.is_ending(name) else coordinator.init(name, timeout_ms)
        if not self.clock.wait(lambda: not coordinator.is_ending(name), deadline.left):
            raise OutcomeUnknownError(f"{name} could not be initialized.", remedy="Try again.")
        return identity or coordinator.init(name, timeout_ms)

    def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> Topic:
        return self.topics.setdefault(name, Topic(name, partitions, settings))

    def elect_leaders(self) -> None:
        """Each partition has a leader again, and gets the markers that it lacks."""
        self.leaders_return_at = 0.0
        for topic in self.topics.values():
            for log in topic.partitions:
                log.has_leader = True
        self.coordinator.write_markers()

    def _return_leaders(self) -> None:
        if self.leaders_return_at and self.clock() >= self.leaders_return_at:
            self.elect_leaders()

    def read_committed(self, topic: str) -> list[Entry]:
        """What a read_committed reader has got by now, partition after partition."""
        return self.topics[topic].committed()
