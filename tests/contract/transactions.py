"""What every implementation of the producer and of the transaction control does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.errors import ConfigurationError, OutcomeUnknownError
from eos_sink.kafka.retry import retry_until
from eos_sink.protocol.values import (
    MAY_HAVE_COMMITTED,
    RECORDED_MS,
    EndOutcome,
    ProduceFailed,
    ProducerFenced,
    Transaction,
    TransactionStatus,
)
from tests.contract.harness import TIMEOUT_MS, Harness, Task, state, values
from tests.contract.members import join, log_position


def end(harness: Harness, transaction: Transaction, *, commit: bool) -> EndOutcome:
    answers = harness.kafka().control().end([transaction], commit, harness.deadline())
    return answers[transaction]


class ProducerContract:
    def test_a_committed_record_is_seen_and_an_open_one_is_not(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        assert values(harness, topic) == []
        task.commit()
        assert values(harness, topic) == [b"a"]

    def test_an_aborted_record_is_never_seen(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"aborted")
        task.abort()
        task.producer.begin()
        task.write(topic, b"kept")
        task.commit()
        assert values(harness, topic) == [b"kept"]

    def test_offsets_are_reported_after_a_flush_and_skip_control_markers(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        assert task.write(topic, b"a", b"b") == [0, 1]
        task.commit()
        task.producer.begin()
        assert task.write(topic, b"c") == [3]
        task.commit()

    def test_key_and_partition_reach_the_topic(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=3)
        task = Task.start(harness)
        seen: list[tuple[int, int]] = []
        task.producer.produce(
            topic,
            None,
            key=b"k",
            partition=2,
            on_offset=lambda partition, offset: seen.append((partition, offset)),
        )
        task.producer.flush(harness.deadline())
        task.commit()
        assert seen == [(2, 0)]
        assert harness.read_committed(topic) == [(b"k", None)]

    def test_init_fences_the_older_producer_and_aborts_its_transaction(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        older = Task.start(harness)
        older.write(topic, b"older")
        transaction = older.transaction
        newer = Task.start(harness)
        newer.write(topic, b"newer")
        assert newer.transaction.producer_id == transaction.producer_id
        assert newer.transaction.epoch > transaction.epoch
        with pytest.raises(ProducerFenced):
            older.commit()
        newer.commit()
        assert values(harness, topic) == [b"newer"]

    def test_a_fenced_producer_writes_nothing_more(self, harness: Harness) -> None:
        topic = harness.create_topic()
        older = Task.start(harness)
        older.write(topic, b"older")
        Task.start(harness)
        with pytest.raises((ProducerFenced, ProduceFailed)):
            older.write_and_commit(topic, b"zombie")
        assert values(harness, topic) == []

    def test_a_fenced_producer_fails_at_flush_or_at_the_next_call(self, harness: Harness) -> None:
        topic = harness.create_topic()
        kafka, offsets = harness.kafka(), list[int]()
        older, newer = (kafka.log_producer(harness.names.driver, TIMEOUT_MS) for _ in range(2))
        for producer in (older, newer):
            producer.init(harness.deadline())
        older.begin()
        with pytest.raises(ProducerFenced):  # noqa: PT012 - in either of the two
            older.produce(topic, b"zombie", on_offset=lambda _, at: offsets.append(at))
            older.flush(harness.deadline())
            older.commit(harness.deadline())
        assert offsets == []

    def test_a_fenced_producer_that_waits_for_room_fails(self, harness: Harness) -> None:
        topic = harness.create_topic()
        kafka = harness.kafka()
        older, newer = (kafka.log_producer(harness.names.driver, TIMEOUT_MS) for _ in range(2))
        for producer in (older, newer):
            producer.init(harness.deadline())
        older.begin()
        with pytest.raises(ProducerFenced):  # noqa: PT012 - in any of them
            # More rows than wait for the brokers.
            for _ in range(40_000):
                older.produce(topic, b"zombie")
            older.flush(harness.deadline())
            older.commit(harness.deadline())
        assert values(harness, topic) == []

    def test_a_dropped_producer_leaves_its_transaction_open(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        transaction = task.transaction
        task.producer.close()
        assert task.state().status is TransactionStatus.ONGOING
        assert end(harness, transaction, commit=True) is EndOutcome.DONE
        assert values(harness, topic) == [b"a"]

    def test_a_commit_after_a_foreign_abort_fails_and_shows_nothing(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        end(harness, task.transaction, commit=False)
        with pytest.raises((ProducerFenced, ProduceFailed)):
            task.commit()
        assert values(harness, topic) == []

    def test_a_record_for_a_partition_that_does_not_exist_is_rejected(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(partitions=1)
        task = Task.start(harness)
        with pytest.raises(ProduceFailed):
            task.write_and_commit(topic, b"a", partition=7)
        assert values(harness, topic) == []

    def test_a_record_that_was_not_delivered_is_reported_without_a_commit(
        self, harness: Harness
    ) -> None:
        """No commit comes before a task has reported that all its records arrived."""
        topic = harness.create_topic(partitions=1)
        member, metadata = join(harness)
        position = log_position(harness)
        task = Task.start(harness)
        task.write(topic, b"a")
        task.send_offset(position, metadata)
        with pytest.raises(ProduceFailed):  # noqa: PT012 - in either of the two
            task.write(topic, b"lost", partition=7)
            task.send_offset(position, metadata)
        task.abort()
        member.close()


class ControlContract:
    def test_brokers_that_are_new_enough_pass(self, harness: Harness) -> None:
        harness.kafka().control().check_brokers(harness.deadline())

    def test_end_again_with_the_same_outcome_is_done_with_the_other_refused(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        committed, aborted = Task.start(harness, 0), Task.start(harness, 1)
        for task, commit in ((committed, True), (aborted, False)):
            task.write(topic, b"committed" if commit else b"aborted")
            transaction = task.transaction
            assert end(harness, transaction, commit=commit) is EndOutcome.DONE
            assert end(harness, transaction, commit=commit) is EndOutcome.DONE
            assert end(harness, transaction, commit=not commit) is EndOutcome.REFUSED
        assert values(harness, topic) == [b"committed"]

    def test_end_under_an_older_epoch_is_refused(self, harness: Harness) -> None:
        topic = harness.create_topic()
        older = Task.start(harness)
        older.write(topic, b"older")
        transaction = older.transaction
        newer = Task.start(harness)
        newer.write(topic, b"newer")
        for commit in (True, False):
            assert end(harness, transaction, commit=commit) is EndOutcome.REFUSED
        assert newer.state().status is TransactionStatus.ONGOING

    def test_end_of_a_transaction_that_never_began_is_refused(self, harness: Harness) -> None:
        task = Task.start(harness)
        assert end(harness, task.transaction, commit=True) is EndOutcome.REFUSED

    def test_end_under_an_unknown_id_or_another_producer_id_is_refused(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        stranger = replace(task.transaction, producer_id=task.transaction.producer_id + 100_000)
        unknown = replace(task.transaction, transactional_id=harness.names.task(1, 9))
        assert end(harness, stranger, commit=True) is EndOutcome.REFUSED
        assert end(harness, unknown, commit=True) is EndOutcome.REFUSED
        assert values(harness, topic) == []

    def test_end_answers_for_two_epochs_of_one_id_apart(self, harness: Harness) -> None:
        topic = harness.create_topic()
        older = Task.start(harness)
        older.write(topic, b"older")
        past = older.transaction
        newer = Task.start(harness)
        newer.write(topic, b"newer")
        present = newer.transaction
        for order in ([past, present], [present, past]):
            answers = harness.kafka().control().end(order, True, harness.deadline())
            assert answers == {past: EndOutcome.REFUSED, present: EndOutcome.DONE}
        assert values(harness, topic) == [b"newer"]

    def test_end_of_many_transactions_ends_each(self, harness: Harness) -> None:
        topic = harness.create_topic()
        # More than there are connections to a coordinator.
        tasks = [Task.start(harness, number) for number in range(20)]
        for number, task in enumerate(tasks):
            task.write(topic, b"%d" % number)
        transactions = [task.transaction for task in tasks]
        answers = harness.kafka().control().end(transactions, True, harness.deadline())
        assert answers == dict.fromkeys(transactions, EndOutcome.DONE)
        assert sorted(values(harness, topic), key=str) == [
            b"%d" % n for n in sorted(range(20), key=str)
        ]

    def test_end_of_nothing_sends_no_request(self, harness: Harness) -> None:
        assert harness.kafka().control().end([], True, harness.deadline()) == {}

    def test_a_foreign_abort_leaves_the_epoch_and_the_task_opens_a_new_transaction(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(partitions=2)
        task = Task.start(harness)
        task.write(topic, b"first half", partition=0)
        transaction = task.transaction
        end(harness, transaction, commit=False)
        assert task.state().status is TransactionStatus.COMPLETE_ABORT
        assert task.state().transaction == transaction
        task.write(topic, b"second half", partition=1)
        assert task.state().status is TransactionStatus.ONGOING
        assert task.state().transaction == transaction
        assert end(harness, transaction, commit=True) is EndOutcome.DONE
        assert values(harness, topic) == [b"second half"]

    def test_describe_follows_a_transaction_through_its_life(self, harness: Harness) -> None:
        topic = harness.create_topic()
        name = harness.names.task(0, 0)
        assert state(harness, name).status is TransactionStatus.MISSING
        task = Task.start(harness, 0, timeout_ms=45_000)
        assert task.state().status is TransactionStatus.EMPTY
        task.write(topic, b"a")
        open_ = task.state()
        assert open_.transaction == task.transaction
        assert open_.status is TransactionStatus.ONGOING
        assert open_.timeout_ms == 45_000
        assert open_.started_ms > 0
        end(harness, task.transaction, commit=True)
        assert task.state().transaction == open_.transaction
        assert task.state().status is TransactionStatus.COMPLETE_COMMIT

    def test_describe_answers_for_known_and_unknown_ids_at_once(self, harness: Harness) -> None:
        task = Task.start(harness)
        unknown = harness.names.task(1, 5)
        states = (
            harness.kafka().control().describe([task.transactional_id, unknown], harness.deadline())
        )
        assert {name: s.status for name, s in states.items()} == {
            task.transactional_id: TransactionStatus.EMPTY,
            unknown: TransactionStatus.MISSING,
        }

    def test_the_oldest_open_transaction_of_a_partition_holds_readers_up(
        self, harness: Harness
    ) -> None:
        topic, tasks = harness.create_topic(), [Task.start(harness, number) for number in range(3)]
        for task in tasks:
            task.write(topic, b"a")
        control, place = harness.kafka().control(), (topic, 0)
        end(harness, tasks[0].transaction, commit=True)

        def wait_for(*holders: Transaction) -> None:
            # The marker comes soon after EndTxn is answered.
            soon = harness.deadline()

            def find() -> tuple[Transaction, ...]:
                found = control.find_holders([place], soon)
                return tuple(each.transaction for each in found.values() if each)

            assert retry_until(soon, find, holders.__eq__) == holders

        wait_for(tasks[1].transaction)
        for task in tasks[1:]:
            end(harness, task.transaction, commit=False)
        wait_for()

    def test_a_list_has_those_in_the_states_under_the_prefix_only(self, harness: Harness) -> None:
        topic = harness.create_topic()
        tasks = [Task.start(harness, number) for number in range(4)]
        for task in tasks[:3]:
            task.write(topic, b"a")
        end(harness, tasks[0].transaction, commit=True)
        end(harness, tasks[1].transaction, commit=False)
        control = harness.kafka().control()
        prefix, is_open = harness.names.group, TransactionStatus.ONGOING
        listed = control.list_transactions(prefix, harness.deadline(), is_open)
        assert [each.transaction for each in listed] == [tasks[2].transaction]
        assert control.list_transactions(f"{prefix}-other", harness.deadline(), is_open) == []

    def test_a_list_sees_what_was_committed_until_the_id_is_inited_again(
        self, harness: Harness
    ) -> None:
        """The last trace of a query whose log is gone."""
        topic = harness.create_topic()
        tasks = [Task.start(harness, number) for number in range(5)]
        for task in tasks[:4]:
            task.write(topic, b"a")
        tasks[0].commit()
        end(harness, tasks[1].transaction, commit=True)
        end(harness, tasks[2].transaction, commit=False)
        for task in tasks:
            task.state()  # No marker is on its way any more.
        names = harness.names
        assert _list_committed(harness) == [names.task(0, 0), names.task(0, 1)]
        Task.start(harness, 0)
        assert _list_committed(harness) == [names.task(0, 1)]

    def test_a_list_sees_the_id_of_a_driver_that_has_seen_a_record(self, harness: Harness) -> None:
        """It is initialised long before it writes, and has no committed transaction any more."""
        names = harness.names
        for prefix, timeout_ms in (("seen", RECORDED_MS), ("new", TIMEOUT_MS)):
            producer = harness.kafka().log_producer(f"{names.group}-{prefix}", timeout_ms)
            producer.init(harness.deadline())
        assert _list_committed(harness) == [f"{names.group}-seen"]

    def test_a_time_out_above_the_brokers_maximum_is_a_configuration_error(
        self, harness: Harness
    ) -> None:
        control = harness.kafka().control()
        name = harness.names.driver
        control.check_timeout(name, harness.max_timeout_ms, harness.deadline())
        with pytest.raises(ConfigurationError):
            control.check_timeout(name, harness.max_timeout_ms + 1, harness.deadline())

    def test_the_check_of_the_time_out_fences_producers_of_the_id(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        control = harness.kafka().control()
        control.check_timeout(task.transactional_id, TIMEOUT_MS, harness.deadline())
        with pytest.raises(ProducerFenced):
            task.commit()
        assert values(harness, topic) == []


def _list_committed(harness: Harness) -> list[str]:
    control, prefix = harness.kafka().control(), harness.names.group
    states = control.list_transactions(prefix, harness.deadline(), *MAY_HAVE_COMMITTED)
    return [each.transaction.transactional_id for each in states if each.has_committed]


class StandstillContract:
    @pytest.mark.parametrize("commit", [True, False])
    def test_an_end_without_an_answer_is_carried_out_when_the_coordinator_goes_on(
        self, harness: Harness, commit: bool
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        end_it = task.producer.commit if commit else task.producer.abort
        with harness.standstill(), pytest.raises(OutcomeUnknownError):
            end_it(harness.deadline(2))
        task.producer.close()
        done = TransactionStatus.COMPLETE_COMMIT if commit else TransactionStatus.COMPLETE_ABORT
        deadline = harness.deadline()
        while task.state().status is not done:
            assert not deadline.passed
        assert values(harness, topic) == ([b"a"] if commit else [])

    def test_a_coordinator_that_stands_still_answers_nothing(self, harness: Harness) -> None:
        control, name = harness.kafka().control(), harness.names.task(0, 0)
        control.describe([name], harness.deadline())
        with harness.standstill():
            for ask in (
                lambda: control.describe([name], harness.deadline(1)),
                lambda: control.list_transactions(name, harness.deadline(1)),
            ):
                with pytest.raises(OutcomeUnknownError):
                    ask()
