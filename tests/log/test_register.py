"""The decision log as a compare-and-swap register."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos_sink.deadline import Deadline
from eos_sink.errors import BatchFailedError, OperatorNeededError, SupersededError
from eos_sink.identity import QueryNames
from eos_sink.log import DecisionRegister, Entry
from eos_sink.model import BatchId, Decision, LogPosition, PlanToken, Tally
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import Moment
from tests.fakes.producer import FakeProducer

NAMES = QueryNames("p-", "q-0123456789")


class Writer:
    """One process with a register, and a token that is current until somebody joins."""

    def __init__(self, cluster: FakeCluster, names: QueryNames = NAMES) -> None:
        self.names = names
        self.kafka = FakeKafka(cluster)
        self.register = DecisionRegister(self.kafka, names)
        self.deadline = Deadline(30)

    def join(self) -> bytes:
        return self.kafka.member(self.names.group, self.names.driver, 60_000).join(self.deadline)

    def write(self, member: bytes, seq: int, batch: int = 0) -> Entry:
        position = replace(self.register.read(self.deadline).position, offset=0)
        token = PlanToken(self.names, seq, position, member)
        return self.register.write(token, decision(batch), self.deadline)


def decision(batch: int) -> Decision:
    return Decision(BatchId("s", batch), 0, 0, Tally(), ())


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def test_a_register_starts_at_zero_and_counts_its_writes(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    assert writer.register.open(writer.deadline).seq == 0
    for seq in range(3):
        assert writer.write(member, seq, batch=seq).seq == seq + 1
    latest = Writer(cluster).register.read(writer.deadline)
    assert (latest.seq, latest.decision) == (3, decision(2))


def test_a_write_from_an_old_plan_is_superseded(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    with pytest.raises(SupersededError, match=r"at seq 1 .* planned from seq 0"):
        other.write(member, 0)
    assert other.write(member, 1).seq == 2


def test_a_held_register_that_was_fenced_is_compared_again(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    other.register.open(other.deadline)
    assert one.write(member, 1).seq == 2
    other.write(member, 2)
    with pytest.raises(SupersededError):
        one.write(member, 2)


def test_opening_fences_before_it_reads(cluster: FakeCluster) -> None:
    """The other order misses what is written in between, and decides over it."""
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()

    def write_meanwhile(name: str, moment: Moment) -> None:
        if (name, moment) == ("log_producer.init", Moment.BEFORE):
            one.kafka.process.hook = None
            other.write(member, 0)

    one.kafka.process.hook = write_meanwhile
    assert one.register.open(one.deadline).seq == 1


def test_a_replaced_members_write_is_superseded_and_leaves_nothing_open(
    cluster: FakeCluster,
) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    other.join()
    with pytest.raises(SupersededError, match="newer driver has joined"):
        one.write(member, 0)
    assert cluster.coordinator.list_open(NAMES.group) == []
    assert other.register.read(other.deadline).seq == 0


def test_an_expired_members_write_fails_the_batch_and_leaves_nothing_open(
    cluster: FakeCluster,
) -> None:
    writer = Writer(cluster)
    member = writer.join()
    cluster.groups.end_session(NAMES.group)
    with pytest.raises(BatchFailedError, match="membership"):
        writer.write(member, 0)
    assert cluster.coordinator.list_open(NAMES.group) == []


def test_queries_share_the_log_and_not_their_records(cluster: FakeCluster) -> None:
    one = Writer(cluster)
    other = Writer(cluster, QueryNames("p-", "r-0123456789"))
    for writer in (one, other):
        writer.write(writer.join(), 0)
    one.write(one.join(), 1, batch=7)
    assert other.register.read(other.deadline).decision == decision(0)
    assert one.register.read(one.deadline).decision == decision(7)


def test_a_log_that_has_lost_what_was_read_is_not_read_on(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    for seq in range(2):
        writer.write(member, seq)
    log = cluster.topics.pop("__eos_sink_log")
    cluster.create_topic("__eos_sink_log")
    with pytest.raises(OperatorNeededError, match="has no record where this run has read seq 2"):
        writer.register.read(writer.deadline)
    other = Writer(cluster)
    other_member = other.join()
    for seq in range(2):
        other.write(other_member, seq)
        with pytest.raises(OperatorNeededError, match="deleted and made again"):
            writer.register.read(writer.deadline)
    cluster.topics["__eos_sink_log"] = log
    assert writer.register.read(writer.deadline).seq == 2


def test_a_plan_is_refused_by_a_log_that_has_lost_its_record(cluster: FakeCluster) -> None:
    writer = Writer(cluster)
    member = writer.join()
    token = PlanToken(NAMES, 5, LogPosition("__eos_sink_log", 0, 40), member)
    for seq in range(5):
        with pytest.raises(OperatorNeededError, match="has read seq 5 at offset 40"):
            Writer(cluster).register.expect(token, writer.deadline)
        writer.write(member, seq)
    with pytest.raises(OperatorNeededError, match="is at seq 5, offset 8"):
        Writer(cluster).register.write(token, None, writer.deadline)
    assert writer.register.read(writer.deadline).seq == 5


def append(writer: Writer, key: str, value: bytes) -> None:
    position = writer.register.reach(writer.deadline).position(key)
    producer = writer.kafka.log_producer("stranger", 60_000)
    producer.init(writer.deadline)
    producer.begin()
    producer.produce(position.topic, value, key=key.encode(), partition=position.partition)
    producer.commit(writer.deadline)


def test_a_record_of_another_query_that_cannot_be_read_is_not_passed_over(
    cluster: FakeCluster,
) -> None:
    """It may decide the very batch that is asked about."""
    writer = Writer(cluster)
    append(writer, "other-0123456789", b'{"format": 99}')
    with pytest.raises(OperatorNeededError):
        writer.register.elsewhere(writer.deadline)


def test_tombstones_and_records_under_keys_of_no_query_are_passed_over(
    cluster: FakeCluster,
) -> None:
    writer = Writer(cluster)
    append(writer, "gone-0123456789", b"")
    append(writer, "anything", b"else")
    assert writer.register.elsewhere(writer.deadline) == {}


def test_a_record_that_was_committed_at_an_unknown_offset_is_read_back(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(cluster)
    member = writer.join()
    produce = FakeProducer.produce

    def without_offset(self: FakeProducer, *record: Any, on_offset: object, **named: Any) -> None:
        produce(self, *record, **named)

    monkeypatch.setattr(FakeProducer, "produce", without_offset)
    written = writer.write(member, 0)
    assert written == Writer(cluster).register.read(writer.deadline)
    assert written.seq == 1


def test_an_error_that_needs_no_explanation_is_not_its_own_cause(cluster: FakeCluster) -> None:
    one, other = Writer(cluster), Writer(cluster)
    member = one.join()
    one.write(member, 0)
    other.write(member, 1)
    with pytest.raises(SupersededError) as refused:
        one.write(member, 1)
    assert refused.value.__cause__ is not refused.value
