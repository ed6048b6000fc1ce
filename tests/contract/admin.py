"""What every implementation shows an operator: the log, transactions, topics, groups, brokers."""

from __future__ import annotations

from collections import defaultdict

from eos_sink.kafka.admin_interface import Quorum
from eos_sink.kafka.hanging import check_coordinators
from eos_sink.kafka.interfaces import PartitionTail, Trace
from eos_sink.ops.holders import read_ends
from eos_sink.protocol.values import FirstOpen, ProducerIdentity, TransactionStatus
from eos_sink.rows.rows import Row, Rows
from tests.contract.harness import SESSION_MS, TIMEOUT_MS, Harness, Task
from tests.contract.reading import KEY, NAMES, append

OTHER = "another-0123456789"
MOST = 1000


class Look:
    """What was found in a topic."""

    def __init__(
        self,
        harness: Harness,
        topic: str,
        *tasks: Task,
        most: int = MOST,
    ) -> None:
        self.values: dict[ProducerIdentity, list[bytes | None]] = defaultdict(list)
        self.keys: list[bytes | None] = []
        self.headers: list[list[tuple[str, bytes | None]] | None] = []
        wanted = frozenset(map(identity, tasks))
        self.tails: list[PartitionTail] = (
            harness.admin()
            .read_back()
            .scan_topic(topic, wanted, most, self._on_row, harness.deadline())
        )

    def trace(self, task: Task, partition: int = 0) -> Trace:
        return self.tails[partition].traces.get(identity(task), Trace())

    def _on_row(self, producer: ProducerIdentity, row: Row) -> None:
        value, key, _, headers, *_ = row
        self.values[producer].append(value)
        self.keys.append(key)
        self.headers.append(headers)


def identity(task: Task) -> ProducerIdentity:
    return task.producer.identity(task.harness.deadline())


class AdminContract:
    def test_a_log_that_is_not_there_is_none_and_is_not_made(self, harness: Harness) -> None:
        for _ in range(2):
            assert harness.admin().read_log({}, harness.deadline()) is None

    def test_all_that_is_committed_is_read_with_its_place_and_time(self, harness: Harness) -> None:
        first = append(harness, b"1")
        append(harness, b"aborted", commit=False)
        second, third = append(harness, b"2"), append(harness, b"o", OTHER)
        page = harness.admin().read_log({}, harness.deadline())
        assert page is not None
        mine = [(line.position.offset, line.value) for line in page.lines if line.key == KEY]
        assert mine == [(first, b"1"), (second, b"2")]
        (other,) = (line for line in page.lines if line.key == OTHER)
        assert (other.position.offset, other.value) == (third, b"o")
        assert not page.recreated
        times = [line.at_ms for line in page.lines]
        assert times == sorted(times)
        assert min(times) > 1_600_000_000_000

    def test_a_partitions_records_keep_their_order_whatever_their_timestamps_say(
        self, harness: Harness
    ) -> None:
        """A query may move to a machine whose clock is behind."""
        append(harness, b"1", timestamp=1_790_000_000_000)
        append(harness, b"o", OTHER, timestamp=1_780_000_000_000)
        append(harness, b"2", timestamp=1_770_000_000_000)
        page = harness.admin().read_log({}, harness.deadline())
        assert page is not None
        assert [line.value for line in page.lines if line.key == KEY] == [b"1", b"2"]

    def test_only_what_has_come_since_is_read(self, harness: Harness) -> None:
        admin = harness.admin()
        append(harness, b"1")
        before = admin.read_log({}, harness.deadline())
        assert before is not None
        nothing = admin.read_log(before.ends, harness.deadline())
        assert nothing is not None
        assert nothing.lines == ()
        append(harness, b"2")
        append(harness, b"o", OTHER)
        after = admin.read_log(before.ends, harness.deadline())
        assert after is not None
        assert sorted(line.value for line in after.lines) == [b"2", b"o"]
        assert all(after.ends[number] >= end for number, end in before.ends.items())

    def test_an_open_transaction_on_the_log_is_not_waited_for(self, harness: Harness) -> None:
        append(harness, b"1")
        kafka = harness.kafka()
        reader = kafka.log_reader(NAMES, harness.deadline())
        place = reader.home
        open_ = kafka.log_producer(f"{harness.names.driver}-open", TIMEOUT_MS)
        open_.init(harness.deadline())
        open_.begin()
        open_.produce(place.topic, b"2", key=KEY.encode(), partition=place.partition)
        open_.flush(harness.deadline())
        admin = harness.admin()
        page = admin.read_log({}, harness.deadline())
        assert page is not None
        assert [line.value for line in page.lines] == [b"1"]
        assert page.held == {place.partition}
        open_.commit(harness.deadline())
        after = admin.read_log(page.ends, harness.deadline())
        deadline = harness.deadline()
        while not (after and after.lines):  # EndTxn answers before the markers are written.
            assert not deadline.passed, "the record that was committed is not in the log"
            after = admin.read_log(page.ends, deadline)
        assert [line.value for line in after.lines] == [b"2"]
        assert not after.held
        open_.close()

    def test_offsets_that_the_log_does_not_have_any_more_are_not_heeded(
        self, harness: Harness
    ) -> None:
        append(harness, b"1")
        admin = harness.admin()
        before = admin.read_log({}, harness.deadline())
        assert before is not None
        beyond = {number: end + 100 for number, end in before.ends.items()}
        page = admin.read_log(beyond, harness.deadline())
        assert page is not None
        assert page.recreated
        assert [line.value for line in page.lines] == [b"1"]
        assert page.ends == before.ends

    def test_open_transactions_are_described_and_ended_ones_if_wanted(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        open_, done = Task.start(harness, 0), Task.start(harness, 1)
        open_.write(topic, b"o")
        done.write_and_commit(topic, b"d")
        done.state()
        prefix = harness.names.group
        admin = harness.admin()
        control, is_open = admin.control(), TransactionStatus.ONGOING
        (found,) = control.list_transactions(prefix, harness.deadline(), is_open)
        assert found == open_.state()
        assert found.started_ms > 1_600_000_000_000
        every = control.list_transactions(prefix, harness.deadline())
        assert [state.status for state in every] == [
            TransactionStatus.ONGOING,
            TransactionStatus.COMPLETE_COMMIT,
        ]
        assert control.list_transactions(f"{prefix}-1", harness.deadline()) == []
        assert open_.transaction in [
            s.transaction for s in control.list_transactions("", harness.deadline(), is_open)
        ]
        check_coordinators(control, prefix, harness.deadline())

    def test_ends_are_read_for_many_topics_at_once(self, harness: Harness) -> None:
        one, two = harness.create_topic(), harness.create_topic(partitions=2)
        admin, deadline = harness.admin(), harness.deadline()
        done, open_ = Task.start(harness, 0), Task.start(harness, 1)
        done.write(one, b"a", b"b")
        done.commit()
        done.state()
        open_.write(one, b"o")
        harness.delete_records(one, 0, 1)
        missing = f"missing-{harness.names.query}"
        views = admin.describe_topics([one, missing, two], deadline, settings=False)
        found = read_ends(admin, views, deadline)
        assert found[missing] == ()
        shown = {
            topic: [(e.partition, e.start, e.stable, e.end) for e in ends]
            for topic, ends in found.items()
            if isinstance(ends, tuple)
        }
        assert shown == {one: [(0, 1, 3, 4)], two: [(0, 0, 0, 0), (1, 0, 0, 0)], missing: []}
        assert admin.list_offsets([], deadline) == {}

    def test_the_members_of_many_groups_are_described_at_once(self, harness: Harness) -> None:
        names, unknown = harness.names, f"{harness.names.group}-unknown"
        admin = harness.admin()
        assert admin.describe_groups([names.group], harness.deadline()) == {names.group: ()}
        kafka = harness.kafka()
        kafka.log_reader(NAMES, harness.deadline())
        kafka.member(names.group, names.driver, SESSION_MS).join(
            harness.deadline(TIMEOUT_MS / 1000)
        )
        found = admin.describe_groups([names.group, unknown], harness.deadline())
        assert found[unknown] == ()
        members = found[names.group]
        assert isinstance(members, tuple)
        assert [member.instance for member in members] == [names.driver]
        assert members[0].host
        assert admin.describe_groups([], harness.deadline()) == {}
        assert admin.list_groups(names.group, harness.deadline()) == [names.group]
        assert admin.list_groups(unknown, harness.deadline()) == []

    def test_the_transaction_that_blocks_readers_is_named(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=3)
        done, open_ = Task.start(harness, 0), Task.start(harness, 1)
        done.write(topic, b"d", partition=0)
        done.commit()
        done.state()
        (offset,) = open_.write(topic, b"o", partition=1)
        assert open_.state().partitions == ((topic, 1),)
        admin, deadline = harness.admin(), harness.deadline()
        control = admin.control()
        found = control.find_holders([(topic, number) for number in range(3)], deadline)
        assert found == {(topic, 1): FirstOpen(open_.transaction, offset)}
        missing = f"missing-{harness.names.query}"
        assert control.find_holders([(missing, 0)], deadline) == {}
        assert topic in admin.topic_ids(None, deadline)

    def test_brokers_and_permissions_are_described(self, harness: Harness) -> None:
        admin, name = harness.admin(), f"{harness.names.group}-permission"
        brokers = admin.describe_brokers(harness.deadline())
        assert brokers
        assert all(broker.unreachable == "" for broker in brokers)
        assert isinstance(admin.describe_features(harness.deadline()), dict)
        quorum = admin.describe_quorum(harness.deadline())
        assert isinstance(quorum, Quorum)
        assert quorum.leader >= 0
        assert admin.may_write(name, harness.deadline()) is True
        assert admin.may_join(name, harness.deadline()) is True
        assert admin.refusal_to_create_log(1, harness.deadline()) == ""
        assert admin.read_log({}, harness.deadline()) is None


class TopicScanContract:
    def test_records_are_distinguished_by_their_producers_and_ended_by_markers(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(partitions=2)
        committed, aborted, open_ = (Task.start(harness, number) for number in range(3))
        identities = [identity(task) for task in (committed, aborted, open_)]
        for task, value in ((committed, b"c"), (aborted, b"a"), (open_, b"o"), (committed, b"d")):
            task.write(topic, value, partition=0)
        aborted.abort()
        committed.commit()
        for task in (committed, aborted):
            task.state()
        look = Look(harness, topic, committed, aborted, open_)
        assert [look.values[i] for i in identities] == [[b"c", b"d"], [b"a"], [b"o"]]
        assert look.trace(committed) == Trace(2, True)
        assert look.trace(aborted) == Trace(1, False)
        assert look.trace(open_) == Trace(1, None)
        assert look.tails[1].traces == {}

    def test_a_partition_says_where_it_begins_is_stable_and_ends(self, harness: Harness) -> None:
        topic = harness.create_topic()
        done, open_ = Task.start(harness, 0), Task.start(harness, 1)
        offsets = done.write(topic, b"a", b"b")
        done.commit()
        done.state()
        open_.write(topic, b"o")
        harness.delete_records(topic, 0, offsets[1])
        (tail,) = Look(harness, topic, done).tails
        assert (tail.topic, tail.partition) == (topic, 0)
        assert (tail.start, tail.stable, tail.end) == (1, 3, 4)
        assert (tail.read_from, tail.unread) == (1, "")
        look = Look(harness, topic, done)
        assert look.values[identity(done)] == [b"b"]

    def test_only_the_last_offsets_are_read(self, harness: Harness) -> None:
        topic = harness.create_topic()
        first, second = Task.start(harness, 0), Task.start(harness, 1)
        for task in (first, second):
            task.write(topic, b"a")
            task.commit()
            task.state()
        look = Look(harness, topic, first, second, most=2)
        assert look.tails[0].read_from == 2
        assert look.trace(first) == Trace()
        assert look.trace(second) == Trace(1, True)

    def test_transactions_of_one_producer_id_are_told_apart_by_their_epochs(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        before, other = Task.start(harness, 0), Task.start(harness, 1)
        before.write_and_commit(topic, b"a")
        other.write(topic, b"o")
        before.state()
        after = Task.start(harness, 0)
        after.write(topic, b"b")
        assert identity(after).epoch > identity(before).epoch
        look = Look(harness, topic, before, after)
        assert look.values == {identity(before): [b"a"], identity(after): [b"b"]}
        assert [look.trace(each) for each in (before, after)] == [Trace(1, True), Trace(1)]

    def test_key_and_headers_are_handed_over(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        headers = [("h", b"1"), ("h", None)]
        rows = [(None, b"k", topic, headers, None, None), (b"v", None, topic, None, None, None)]
        task.producer.produce_rows(Rows.of(rows))
        task.producer.flush(harness.deadline())
        look = Look(harness, topic, task)
        assert look.values[identity(task)] == [None, b"v"]
        assert look.keys == [b"k", None]
        first, second = look.headers
        assert list(first or ()) == headers
        assert second is None

    def test_a_topic_that_is_not_there_shows_nothing(self, harness: Harness) -> None:
        assert Look(harness, f"missing-{harness.names.query}").tails == []

    def test_an_empty_topic_shows_its_partitions(self, harness: Harness) -> None:
        tails = Look(harness, harness.create_topic(partitions=2)).tails
        assert [(tail.partition, tail.end) for tail in tails] == [(0, 0), (1, 0)]
