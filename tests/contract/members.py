"""What every implementation of the group member does, and what its metadata is good for."""

from __future__ import annotations

import pytest

from eos_sink.model import LogPosition
from eos_sink.ports import GroupMember, MemberRefused, MemberState, TransactionStatus
from tests.contract.harness import SESSION_MS, Harness, Task, values


def join(harness: Harness) -> tuple[GroupMember, bytes]:
    """The query's member in a process of its own."""
    names = harness.names
    member = harness.kafka().member(names.group, names.driver, SESSION_MS)
    return member, member.join(harness.deadline())


def somewhere(topic: str) -> LogPosition:
    return LogPosition(topic, 0, 3)


class MemberContract:
    def test_an_offset_sent_with_live_metadata_commits_with_its_transaction(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, metadata = join(harness)
        assert member.state() is MemberState.CURRENT
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(somewhere(topic), metadata)
        task.commit()
        assert values(harness, topic) == [b"a"]

    def test_a_replaced_member_is_refused_and_its_task_can_abort(self, harness: Harness) -> None:
        topic = harness.create_topic()
        _older, metadata = join(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        newer, _ = join(harness)
        with pytest.raises(MemberRefused):
            task.send_offset(somewhere(topic), metadata)
        task.abort()
        assert task.state().status is TransactionStatus.COMPLETE_ABORT
        assert values(harness, topic) == []
        assert newer.state() is MemberState.CURRENT

    def test_a_replaced_member_knows_it(self, harness: Harness) -> None:
        older, _ = join(harness)
        join(harness)
        with pytest.raises(MemberRefused):
            older.wait_stable(harness.deadline())
        assert older.state() is MemberState.REPLACED

    def test_a_member_that_is_closed_serves_until_its_session_ends(self, harness: Harness) -> None:
        topic = harness.create_topic()
        member, metadata = join(harness)
        member.close()
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(somewhere(topic), metadata)
        task.commit()
        harness.expire_session(harness.names.group)
        task.producer.begin()
        task.write(topic, b"b")
        with pytest.raises(MemberRefused):
            task.send_offset(somewhere(topic), metadata)
        task.abort()
        assert values(harness, topic) == [b"a"]

    def test_a_new_member_is_accepted_after_a_session_has_ended(self, harness: Harness) -> None:
        topic = harness.create_topic()
        gone, _ = join(harness)
        gone.close()
        harness.expire_session(harness.names.group)
        _, metadata = join(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(somewhere(topic), metadata)
        task.commit()
        assert values(harness, topic) == [b"a"]

    def test_the_group_is_stable_without_pending_offsets(self, harness: Harness) -> None:
        member, _ = join(harness)
        assert member.wait_stable(harness.deadline())

    def test_the_group_is_not_stable_until_a_pending_offset_is_committed_or_aborted(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, metadata = join(harness)
        task = Task.start(harness)
        for finish in (task.commit, task.abort):
            task.write(topic, b"a")
            task.send_offset(somewhere(topic), metadata)
            assert not member.wait_stable(harness.deadline(2))
            finish()
            assert member.wait_stable(harness.deadline())
            task.producer.begin()

    def test_a_transaction_without_the_offset_does_not_hold_the_group_up(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        member, _ = join(harness)
        Task.start(harness).write(topic, b"a")
        assert member.wait_stable(harness.deadline())
