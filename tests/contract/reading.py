"""What every implementation finds when it reads: the decision log, witnesses, topics."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.interfaces import TopicDescription
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.protocol.values import Position, Transaction, Visibility
from eos_sink.rows.rows import Rows
from tests.contract.harness import TIMEOUT_MS, Harness, Task

NAMES = QueryNames("team-", "query-0123456789")
KEY, OTHER = NAMES.log_key, "another-0123456789"


def append(
    harness: Harness,
    value: bytes,
    key: str = KEY,
    *,
    commit: bool = True,
    timestamp: int | None = None,
    partition: int | None = None,
) -> int:
    """Write one record to the decision log with the driver's producer; its offset."""
    kafka = harness.kafka()
    reader = kafka.log_reader(NAMES, harness.deadline())
    position = reader.home
    producer = kafka.log_producer(harness.names.driver, TIMEOUT_MS)
    producer.init(harness.deadline())
    producer.begin()
    offsets: list[int] = []
    place = position.partition if partition is None else partition
    row = value, key.encode(), position.topic, None, place, timestamp
    producer.produce_rows(Rows.of([row]), lambda *place: offsets.append(place[-1]))
    producer.flush(harness.deadline())
    (producer.commit if commit else producer.abort)(harness.deadline())
    producer.close()
    return offsets[0]


def latest(harness: Harness) -> tuple[int, bytes] | None:
    """Offset and value of the latest record, read by a separate reader."""
    reader = harness.kafka().log_reader(NAMES, harness.deadline())
    found = reader.latest(harness.deadline())
    expected = reader.home
    if found is None:
        return None
    position, value = found
    assert (position.topic, position.partition) == (expected.topic, expected.partition)
    return position.offset, value


class LogContract:
    def test_a_key_without_records_has_no_latest(self, harness: Harness) -> None:
        append(harness, b"other", OTHER)
        assert latest(harness) is None

    def test_the_latest_of_several_writes_is_read(self, harness: Harness) -> None:
        for value in (b"1", b"2", b"3"):
            offset = append(harness, value)
        assert latest(harness) == (offset, b"3")

    def test_an_aborted_write_is_not_read(self, harness: Harness) -> None:
        offset = append(harness, b"1")
        append(harness, b"2", commit=False)
        assert latest(harness) == (offset, b"1")

    def test_other_keys_do_not_count(self, harness: Harness) -> None:
        offset = append(harness, b"1")
        append(harness, b"other", OTHER)
        assert latest(harness) == (offset, b"1")

    def test_what_lies_before_a_record_is_read_whatever_became_of_it(
        self, harness: Harness
    ) -> None:
        """Markers and other keys are passed over; what is open is not waited for."""
        kafka = harness.kafka()
        reader = kafka.log_reader(NAMES, harness.deadline())
        reader.latest(harness.deadline())
        start, home = reader.reached, reader.home
        append(harness, b"other", OTHER)
        mine = kafka.log_producer(f"{harness.names.driver}-mine", TIMEOUT_MS)
        mine.init(harness.deadline())
        mine.begin()
        at: list[int] = []
        mine.produce(
            home.topic,
            b"2",
            key=KEY.encode(),
            partition=home.partition,
            on_offset=lambda _, offset: at.append(offset),
        )
        mine.flush(harness.deadline())
        end = append(harness, b"other", OTHER)
        assert not reader.written(start, at[0], harness.deadline())
        assert reader.written(start, end, harness.deadline())
        mine.abort(harness.deadline())
        assert reader.written(start, end, harness.deadline())
        assert reader.latest(harness.deadline()) is None
        assert reader.reached > end
        mine.close()

    def test_the_records_of_a_key_are_read(self, harness: Harness) -> None:
        """Those of committed transactions, oldest first; a reader may have read on before."""
        first = append(harness, b"1")
        append(harness, b"aborted", commit=False)
        append(harness, b"other", OTHER)
        second = append(harness, b"2")
        reader = harness.kafka().log_reader(NAMES, harness.deadline())
        reader.latest(harness.deadline())
        found = reader.records(harness.deadline())
        assert [(place.offset, value) for place, value in found] == [(first, b"1"), (second, b"2")]

    def test_claims_are_the_latest_records_of_a_subject_s_keys_in_its_partition(
        self, harness: Harness
    ) -> None:
        kafka = harness.kafka()
        home = kafka.claim_home("stream one")
        for value, key, commit in (
            (b"1", "team-q claims stream one.", True),
            (b"other", "team-q claims stream two.", True),
            (b"2", "team-q claims stream one.", True),
            (b"aborted", "team-q claims stream one.", False),
            (b"3", "team-r claims stream one.", True),
        ):
            append(harness, value, key, commit=commit, partition=home.partition)
        kafka = harness.kafka()

        def read(start: int = 0) -> tuple[Mapping[str, bytes], int]:
            return kafka.claim_records(
                "stream one", " claims stream one.", harness.deadline(), start
            )

        found, reached = read()
        assert found == {"team-q claims stream one.": b"2", "team-r claims stream one.": b"3"}
        assert read(reached) == ({}, reached)
        append(harness, b"4", "team-s claims stream one.", partition=home.partition)
        later, _ = read(reached)
        assert later == {"team-s claims stream one.": b"4"}

    def test_a_claim_behind_an_open_transaction_is_waited_for(self, harness: Harness) -> None:
        kafka = harness.kafka()
        dead = kafka.log_producer(f"{harness.names.driver}-dead", 3_000)
        dead.init(harness.deadline())
        dead.begin()
        home = kafka.claim_home("stream one")
        kafka.log_reader(NAMES, harness.deadline())
        dead.produce(home.topic, b"never", key=b"d claims stream one.", partition=home.partition)
        dead.flush(harness.deadline())
        append(harness, b"1", "q claims stream one.", partition=home.partition)
        found, _ = kafka.claim_records("stream one", " claims stream one.", harness.deadline(60))
        assert found == {"q claims stream one.": b"1"}
        dead.close()

    def test_claims_before_a_transaction_are_read_while_it_is_open(self, harness: Harness) -> None:
        """Its own producer reads those that were there when it claimed."""
        kafka = harness.kafka()
        kafka.log_reader(NAMES, harness.deadline())
        home, at = kafka.claim_home("stream one"), list[int]()
        append(harness, b"1", "q claims stream one.", partition=home.partition)
        mine = kafka.log_producer(f"{harness.names.driver}-mine", TIMEOUT_MS)
        mine.init(harness.deadline())
        mine.begin()
        mine.produce(
            home.topic,
            b"2",
            key=b"r claims stream one.",
            partition=home.partition,
            on_offset=lambda _, offset: at.append(offset),
        )
        mine.flush(harness.deadline())
        deadline = harness.deadline()
        found, _ = kafka.claim_records("stream one", " claims stream one.", deadline, 0, at[0])
        assert found == {"q claims stream one.": b"1"}
        mine.abort(harness.deadline())
        mine.close()

    def test_one_reader_reads_what_was_written_since_it_last_read(self, harness: Harness) -> None:
        reader = harness.kafka().log_reader(NAMES, harness.deadline())
        assert reader.latest(harness.deadline()) is None
        for value in (b"1", b"2"):
            append(harness, value)
            found = reader.latest(harness.deadline())
            assert found is not None
            assert found[1] == value
        again = reader.latest(harness.deadline())
        assert again == found

    def test_an_end_before_what_is_known_is_believed_in_the_end(self, harness: Harness) -> None:
        """The log has lost records, which the caller has to learn."""
        offset = append(harness, b"1")
        reader = harness.kafka().log_reader(NAMES, harness.deadline())
        found = reader.latest(harness.deadline(10), known=offset + 1_000)
        assert found is not None
        assert found[1] == b"1"

    def test_a_record_behind_the_open_transaction_of_another_query_is_waited_for(
        self, harness: Harness
    ) -> None:
        """An older record in its place would be a decision that is not the latest."""
        append(harness, b"1")
        kafka = harness.kafka()
        reader = kafka.log_reader(NAMES, harness.deadline())
        home = reader.home
        other = kafka.log_producer(f"{harness.names.driver}-other", TIMEOUT_MS)
        other.init(harness.deadline())
        other.begin()
        other.produce(home.topic, b"other", key=b"other", partition=home.partition)
        other.flush(harness.deadline())
        offset = append(harness, b"2")
        with pytest.raises(OutcomeUnknownError):
            reader.latest(harness.deadline(1))
        other.abort(harness.deadline())
        found = reader.latest(harness.deadline())
        assert found is not None
        assert (found[0].offset, found[1]) == (offset, b"2")
        other.close()

    def test_a_key_is_known_by_a_record_before_the_first_open_transaction(
        self, harness: Harness
    ) -> None:
        """Without a wait for what a dead driver has left open."""
        kafka = harness.kafka()
        reader = kafka.log_reader(NAMES, harness.deadline())
        home = reader.home
        assert reader.known(harness.deadline()) is None
        append(harness, b"1", commit=False)
        assert reader.known(harness.deadline()) is None
        for known in (False, True):
            other = kafka.log_producer(f"{harness.names.driver}-{known}", TIMEOUT_MS)
            other.init(harness.deadline())
            other.begin()
            other.produce(home.topic, b"2", key=KEY.encode(), partition=home.partition)
            other.flush(harness.deadline())
            assert (reader.known(harness.deadline(5)) is not None) is known
            other.commit(harness.deadline())
            other.close()
        append(harness, b"other", OTHER)
        found = reader.latest(harness.deadline())
        assert found is not None
        assert found[1] == b"2"

    def test_an_empty_log_that_was_just_made_has_a_position(self, harness: Harness) -> None:
        assert harness.kafka().log_reader(NAMES, harness.deadline()).home.offset == 0


def keyed(task: Task, topic: str) -> Position:
    """Write one record with a key; where it is."""
    (offset,) = task.write(topic, b"v", key=b"k")
    return Position(topic, 0, offset)


def two_of_one_key(harness: Harness, topic: str) -> dict[Position, Transaction]:
    """An aborted record, then a committed one."""
    task, found = Task.start(harness), dict[Position, Transaction]()
    for finish in (task.abort, task.commit):
        found[keyed(task, topic)] = task.transaction
        finish()
        task.producer.begin()
    return found


class CompactionContract:
    def test_a_record_that_was_compacted_away_is_unreadable_whatever_became_of_it(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(compacted=True)
        first, second = Task.start(harness, 0), Task.start(harness, 1)
        gone = {keyed(task, topic): task.transaction for task in (first, second)}
        first.commit()
        second.abort()
        first.state(), second.state()
        harness.compact(topic)
        seen = harness.kafka().read_back().visibility(gone, harness.deadline())
        assert seen == dict.fromkeys(gone, Visibility.UNREADABLE)
        markers = harness.kafka().read_back().markers(gone, harness.deadline())
        assert list(markers.values()) == [True, False]


class MarkerContract:
    """The marker behind a witness tells what became of the transaction."""

    def test_a_marker_decides_when_the_witness_is_deleted(self, harness: Harness) -> None:
        topic = harness.create_topic()
        first, second = Task.start(harness, 0), Task.start(harness, 1)
        asked = {}
        for task in (first, second):
            (offset,) = task.write(topic, b"a")
            asked[Position(topic, 0, offset)] = task.transaction
        first.commit()
        first.state()
        second.abort()
        second.state()
        harness.delete_records(topic, 0, 2)
        markers = harness.kafka().read_back().markers(asked, harness.deadline())
        assert list(markers.values()) == [True, False]

    def test_the_marker_of_a_late_attempt_that_took_the_id_proves_the_abort(
        self, harness: Harness
    ) -> None:
        """InitProducerId aborts under the next epoch."""
        topic = harness.create_topic()
        task = Task.start(harness)
        first, second = task.write(topic, b"a", b"b")
        asked = {Position(topic, 0, first): task.transaction}
        later = Task.start(harness)
        later.state()
        harness.delete_records(topic, 0, second)
        assert harness.kafka().read_back().markers(asked, harness.deadline()) == dict.fromkeys(
            asked, False
        )

    def test_the_marker_of_the_next_epoch_proves_nothing_where_the_own_one_may_be_gone(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        (offset,) = task.write(topic, b"a")
        asked = {Position(topic, 0, offset): task.transaction}
        task.commit()
        task.state()
        later = Task.start(harness)
        (next_offset,) = later.write(topic, b"b")
        later.abort()
        later.state()
        harness.delete_records(topic, 0, next_offset)
        assert harness.kafka().read_back().markers(asked, harness.deadline()) == {}

    def test_a_marker_before_the_witness_is_of_an_earlier_transaction(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.write(topic, b"a")
        task.commit()
        task.producer.begin()
        (offset,) = task.write(topic, b"b")
        asked = {Position(topic, 0, offset): task.transaction}
        assert harness.kafka().read_back().markers(asked, harness.deadline(5)) == {}
        task.abort()
        task.state()
        found = harness.kafka().read_back().markers(asked, harness.deadline())
        assert found == dict.fromkeys(asked, False)

    def test_without_markers_or_topic_nothing_is_proven(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        (offset,) = task.write(topic, b"a")
        task.commit()
        task.state()
        harness.delete_records(topic, 0, offset + 2)
        asked = {
            Position(topic, 0, offset): task.transaction,
            Position(topic, 7, 0): task.transaction,
            Position(f"missing-{harness.names.query}", 0, 3): task.transaction,
        }
        assert harness.kafka().read_back().markers(asked, harness.deadline()) == {}
        assert harness.kafka().read_back().markers({}, harness.deadline()) == {}


class VisibilityContract:
    def test_committed_aborted_and_open_records_are_distinguished(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=3)
        witnesses = {}
        for number in range(3):
            task = Task.start(harness, number)
            offsets = task.write(topic, b"a", b"b", partition=number)
            witnesses[Position(topic, number, offsets[-1])] = task.transaction
            if number > 0:
                (task.commit if number == 1 else task.abort)()
        # The open one comes first: it must not use up the time of the others.
        seen = harness.kafka().read_back().visibility(witnesses, harness.deadline(3))
        _, committed, aborted = witnesses
        assert seen == {committed: Visibility.COMMITTED, aborted: Visibility.ABORTED}

    def test_an_aborted_record_before_a_committed_one_is_aborted(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        aborted = Position(topic, 0, task.write(topic, b"aborted")[0])
        asked = {aborted: task.transaction}
        task.abort()
        task.producer.begin()
        committed = Position(topic, 0, task.write(topic, b"committed")[0])
        asked[committed] = task.transaction
        task.commit()
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert seen == {aborted: Visibility.ABORTED, committed: Visibility.COMMITTED}

    def test_witnesses_near_and_far_are_looked_at_in_all_partitions(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=2)
        expected, asked = dict[Position, Visibility](), dict[Position, Transaction]()
        tasks = [Task.start(harness, number) for number in range(2)]
        for number, far in enumerate((0, 1_100, 0, 1_100)):
            for partition, task in enumerate(tasks):
                offsets = task.write(topic, *[b"x"] * far, b"witness", partition=partition)
                committed = (number + partition) % 2 == 0
                found = Visibility.COMMITTED if committed else Visibility.ABORTED
                witness = Position(topic, partition, offsets[-1])
                expected[witness], asked[witness] = found, task.transaction
                (task.commit if committed else task.abort)()
                task.producer.begin()
        assert harness.kafka().read_back().visibility(asked, harness.deadline()) == expected

    def test_a_record_behind_another_open_transaction_waits_for_it(self, harness: Harness) -> None:
        topic = harness.create_topic()
        other, task = Task.start(harness, 0), Task.start(harness, 1)
        other.write(topic, b"other")
        asked = {Position(topic, 0, task.write(topic, b"a")[0]): task.transaction}
        task.commit()
        assert harness.kafka().read_back().visibility(asked, harness.deadline(2)) == {}
        other.abort()
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert seen == dict.fromkeys(asked, Visibility.COMMITTED)

    def test_deleted_records_are_unreadable(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        first, second = task.write(topic, b"a", b"b")
        task.commit()
        harness.delete_records(topic, 0, second)
        witnesses = [Position(topic, 0, first), Position(topic, 0, second)]
        asked = dict.fromkeys(witnesses, task.transaction)
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert seen == {
            witnesses[0]: Visibility.UNREADABLE,
            witnesses[1]: Visibility.COMMITTED,
        }

    def test_a_partition_with_every_record_deleted_is_unreadable(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        (offset,) = task.write(topic, b"a")
        task.commit()
        harness.delete_records(topic, 0, offset + 2)
        asked = {Position(topic, 0, offset): task.transaction}
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert seen == dict.fromkeys(asked, Visibility.UNREADABLE)

    @pytest.mark.parametrize("number", [0, 1], ids=["another epoch", "another producer"])
    def test_a_record_of_another_transaction_is_none_of_this_one(
        self, harness: Harness, number: int
    ) -> None:
        """The topic was made again, and has another record at that offset."""
        topic = harness.create_topic()
        task = Task.start(harness)
        asked = {Position(topic, 0, task.write(topic, b"a")[0]): task.transaction}
        task.abort()
        harness.make_again(topic)
        other = Task.start(harness, number)
        other.write(topic, b"b")
        other.commit()
        other.state()
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert seen == dict.fromkeys(asked, Visibility.UNREADABLE)

    def test_an_aborted_record_that_is_still_there_proves_the_abort_in_a_compacted_topic_too(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(compacted=True)
        asked = two_of_one_key(harness, topic)
        seen = harness.kafka().read_back().visibility(asked, harness.deadline())
        assert list(seen.values()) == [Visibility.ABORTED, Visibility.COMMITTED]

    def test_a_topic_that_is_made_again_has_another_id(self, harness: Harness) -> None:
        topic, other = harness.create_topic(), harness.create_topic()
        missing = f"missing-{harness.names.query}"
        before = harness.kafka().topic_ids([topic, other, missing], harness.deadline())
        harness.make_again(topic)
        after = harness.kafka().topic_ids([topic, other, missing], harness.deadline())
        assert before.keys() == after.keys() == {topic, other}
        assert before[other] == after[other] != before[topic] != after[topic]
        assert harness.kafka().topic_ids([], harness.deadline()) == {}

    def test_no_witness_is_no_question(self, harness: Harness) -> None:
        assert harness.kafka().read_back().visibility({}, harness.deadline()) == {}


class TopicContract:
    def test_a_topic_that_exists_passes(self, harness: Harness) -> None:
        harness.kafka().check_topic(harness.create_topic(), harness.deadline())

    def test_a_missing_topic_is_a_cluster_error_that_names_it(self, harness: Harness) -> None:
        missing = f"missing-{harness.names.query}"
        with pytest.raises(ClusterError, match=missing):
            harness.kafka().check_topic(missing, harness.deadline())

    def test_topics_are_described_and_a_missing_one_is_reported(self, harness: Harness) -> None:
        topic, missing = harness.create_topic(partitions=3), f"missing-{harness.names.query}"
        views = harness.kafka().describe_topics([topic, missing], harness.deadline())
        assert views[missing] is None
        view = views[topic]
        assert isinstance(view, TopicDescription)
        assert {n: (part.replicas, part.in_sync) for n, part in view.partitions.items()} == {
            0: (1, 1),
            1: (1, 1),
            2: (1, 1),
        }
        assert (view.replicas, view.setting("min.insync.replicas")) == (1, "1")
        assert view.allowed is not None
        assert view.allowed >= {"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"}
        assert harness.kafka().describe_topics([], harness.deadline()) == {}

    def test_the_newest_values_are_those_of_topics_that_may_be_a_log(
        self, harness: Harness
    ) -> None:
        small, missing = harness.create_topic(), f"missing-{harness.names.query}"
        log = harness.create_topic(LOG_PARTITIONS, settings={"cleanup.policy": "compact"})
        deleted = harness.create_topic(LOG_PARTITIONS, settings={"cleanup.policy": "delete"})
        topics = [small, missing, log, deleted]
        assert not any(
            harness.kafka().read_back().newest_values(topics, harness.deadline()).values()
        )
        for number, end in enumerate((Task.commit, Task.abort)):
            task = Task.start(harness, number)
            task.write(small, b"a")
            task.write(deleted, b"a")
            task.write(log, b"%d" % number, partition=number, key=b"k")
            end(task)
        Task.start(harness, 2).write(log, b"2", partition=2, key=b"k")
        newest = harness.kafka().read_back().newest_values(topics, harness.deadline())
        assert newest.keys() == {log}
        # Committed, aborted and open.
        assert newest[log] == [b"0", b"1", b"2"]
        assert harness.kafka().read_back().newest_values([], harness.deadline()) == {}
