"""The fake keeps the contract; `integration/test_contract.py` runs the same suites on Kafka."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping

import pytest

from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from tests.contract.admin import AdminContract, TopicScanContract
from tests.contract.harness import SESSION_MS, Record
from tests.contract.members import MemberContract
from tests.contract.reading import (
    CompactionContract,
    LogContract,
    MarkerContract,
    TopicContract,
    VisibilityContract,
)
from tests.contract.rows import RowsContract
from tests.contract.sources import SourceContract
from tests.contract.transactions import ControlContract, ProducerContract, StandstillContract
from tests.fakes.admin import FakeAdmin
from tests.fakes.cluster import Coordinators, FakeCluster
from tests.fakes.group import POLL_INTERVAL_MS
from tests.fakes.kafka import FakeKafka, FakeMember
from tests.fakes.log import Outcome, Txn


class FakeHarness:
    """Implements `tests.contract.harness.Harness`."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.names = QueryNames("eos-sink-", "contract-0123456789")
        self.max_timeout_ms = self.cluster.max_timeout_ms
        self.max_session_ms = self.cluster.max_session_ms

    def kafka(self, **settings: str) -> FakeKafka:
        return FakeKafka(self.cluster)

    def admin(self) -> FakeAdmin:
        return FakeAdmin(self.cluster)

    def create_topic(
        self,
        partitions: int = 1,
        *,
        compacted: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        name = f"topic-{len(self.cluster.topics)}"
        self.cluster.create_topic(name, partitions, settings)
        return name

    def make_again(self, topic: str) -> None:
        del self.cluster.topics[topic]
        self.cluster.create_topic(topic)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.cluster.topics[topic].partitions[partition].delete_before(before)

    def compact(self, topic: str) -> None:
        log = self.cluster.topics[topic].partitions[0]
        txn = Txn("compacting", 1, 0)
        log.append(txn, b"k", b"last", (), 0)
        txn.finish(Outcome.COMMITTED)
        log.compact()

    def read_committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(entry.key, entry.value) for entry in self.cluster.read_committed(topic)]

    def read_records(self, topic: str) -> list[Record]:
        return [
            Record(log.partition, entry.key, entry.value, tuple(entry.headers), entry.timestamp)
            for log in self.cluster.topics[topic].partitions
            for entry in log.committed()
        ]

    @contextlib.contextmanager
    def standstill(self) -> Iterator[None]:
        silent = self.cluster.silent_until
        silent[Coordinators.TRANSACTIONS] = math.inf
        yield
        silent.clear()
        self.cluster.clock.advance(0)

    def idle_member(self) -> FakeMember:
        member = self.kafka().member(self.names.group, self.names.driver, SESSION_MS)
        member.join(self.deadline())
        self.cluster.clock.advance((POLL_INTERVAL_MS + SESSION_MS) / 1000)
        return member

    def expire_session(self, group: str) -> None:
        self.cluster.clock.advance(3600)

    def deadline(self, seconds: float = 30) -> Deadline:
        return Deadline(seconds, self.cluster.clock)


@pytest.fixture
def harness() -> FakeHarness:
    return FakeHarness()


TestProducer = ProducerContract
TestRows = RowsContract
TestControl = ControlContract
TestStandstill = StandstillContract
TestMember = MemberContract
TestSource = SourceContract
TestLog = LogContract
TestVisibility = VisibilityContract
TestCompaction = CompactionContract
TestMarkers = MarkerContract
TestAdmin = AdminContract
TestTopicScan = TopicScanContract
TestTopic = TopicContract
