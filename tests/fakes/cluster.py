"""The brokers: topics, coordinators and time, shared by every process of a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """

    clock: FakeClock = field(default_factory=FakeClock)
    max_timeout_ms: int = 900_000
    max_session_ms: int = 1_800_000
    tells_settings: bool = True
    topics: dict[str, Topic] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.groups = Groups(self.clock)
        self.coordinator = Coordinator(self.clock, self.groups)

    def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> Topic:
        return self.topics.setdefault(name, Topic(name, partitions, settings))

    def read_committed(self, topic: str) -> list[Entry]:
        """What a read_committed reader has got by now, partition after partition."""
        return self.topics[topic].committed()
