"""What every implementation of the group member does, and what its metadata is good for."""

from __future__ import annotations

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.interfaces import GroupMember
from eos_sink.protocol.values import MemberRefused, MemberState, Position, TransactionStatus
from tests.contract.harness import SESSION_MS, Harness, Task, values

# A loaded machine may not answer heartbeats within SESSION_MS, and the session ends.
LONG_SESSION_MS = 10 * SESSION_MS


def join(harness: Harness, session_ms: int = LONG_SESSION_MS) -> tuple[GroupMember, bytes]:
    """The query's member in a separate process; the decision log is there by then."""
    names, kafka = harness.names, harness.kafka()
    kafka.log_reader(harness.names, harness.deadline())
    member = kafka.member(names.group, names.driver, session_ms)
    return member, member.join(harness.deadline())


def log_position(harness: Harness) -> Position:
    """The offset that the group commits is one of the decision log."""
    return harness.kafka().log_reader(harness.names, harness.deadline()).home


class MemberContract:
    def test_an_offset_sent_with_live_metadata_commits_with_its_transaction(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, metadata = join(harness)
        assert member.state() is MemberState.CURRENT
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(log_position(harness), metadata)
        task.commit()
        assert values(harness, topic) == [b"a"]

    def test_a_replaced_member_is_refused_and_its_task_can_abort(self, harness: Harness) -> None:
        topic = harness.create_topic()
        _older, metadata = join(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        newer, _ = join(harness)
        with pytest.raises(MemberRefused) as refusal:
            task.send_offset(log_position(harness), metadata)
        assert refusal.value.replaced
        task.abort()
        assert task.state().status is TransactionStatus.COMPLETE_ABORT
        assert values(harness, topic) == []
        assert newer.state() is MemberState.CURRENT

    def test_a_replaced_member_learns_it_from_its_heartbeats(self, harness: Harness) -> None:
        older, _ = join(harness)
        newer, _ = join(harness)
        deadline = harness.deadline()
        while older.state() is MemberState.CURRENT:
            assert not deadline.passed
        assert older.state() is MemberState.REPLACED
        assert newer.state() is MemberState.CURRENT

    def test_a_member_that_is_replaced_does_not_wait_any_longer(self, harness: Harness) -> None:
        topic = harness.create_topic()
        older, metadata = join(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(log_position(harness), metadata)
        join(harness)
        with pytest.raises(MemberRefused) as refusal:
            older.wait_stable(log_position(harness), harness.deadline())
        assert refusal.value.replaced

    def test_a_member_that_is_closed_serves_until_its_session_ends(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        position = log_position(harness)
        member, metadata = join(harness, SESSION_MS)
        member.close()
        task.send_offset(position, metadata)
        task.commit()
        harness.expire_session(harness.names.group)
        task.producer.begin()
        task.write(topic, b"b")
        with pytest.raises(MemberRefused) as refusal:
            task.send_offset(position, metadata)
        assert not refusal.value.replaced
        task.abort()
        assert values(harness, topic) == [b"a"]

    def test_a_new_member_is_accepted_after_a_session_has_ended(self, harness: Harness) -> None:
        topic = harness.create_topic()
        gone, _ = join(harness, SESSION_MS)
        gone.close()
        harness.expire_session(harness.names.group)
        _, metadata = join(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(log_position(harness), metadata)
        task.commit()
        assert values(harness, topic) == [b"a"]

    def test_the_longest_session_is_known_and_a_longer_one_is_refused(
        self, harness: Harness
    ) -> None:
        kafka, names = harness.kafka(), harness.names
        kafka.log_reader(harness.names, harness.deadline())
        longest = kafka.longest_session(harness.deadline())
        assert longest == harness.max_session_ms
        with pytest.raises(ConfigurationError):
            kafka.member(names.group, names.driver, longest + 1).join(harness.deadline())
        kafka.member(names.group, names.driver, longest).join(harness.deadline())

    def test_a_member_that_was_idle_for_too_long_has_expired_and_a_new_one_joins(
        self, harness: Harness
    ) -> None:
        idle = harness.idle_member()
        assert idle.state() is MemberState.EXPIRED
        idle.close()
        member, _ = join(harness)
        assert member.state() is MemberState.CURRENT

    def test_the_group_is_stable_without_pending_offsets(self, harness: Harness) -> None:
        member, _ = join(harness)
        assert member.wait_stable(log_position(harness), harness.deadline())

    def test_the_group_is_not_stable_until_a_pending_offset_is_committed_or_aborted(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, metadata = join(harness)
        task = Task.start(harness)
        for finish in (task.commit, task.abort):
            task.write(topic, b"a")
            task.send_offset(log_position(harness), metadata)
            assert not member.wait_stable(log_position(harness), harness.deadline(2))
            finish()
            assert member.wait_stable(log_position(harness), harness.deadline())
            task.producer.begin()

    def test_a_transaction_without_the_offset_does_not_hold_the_group_up(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, _ = join(harness)
        Task.start(harness).write(topic, b"a")
        assert member.wait_stable(log_position(harness), harness.deadline())
