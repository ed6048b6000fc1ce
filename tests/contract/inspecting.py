"""What every implementation shows a person: ends of topics, the log's queries, a group's hosts."""

from __future__ import annotations

from collections import defaultdict

from eos_sink.kafka.interfaces import Headers, PartitionTail, ProducerIdentity, Trace
from tests.contract.harness import SESSION_MS, TIMEOUT_MS, Harness, Task
from tests.contract.reading import append

MOST = 1000


class Look:
    """What was found in a topic."""

    def __init__(self, harness: Harness, topic: str, *tasks: Task, most: int = MOST) -> None:
        self.values: dict[ProducerIdentity, list[bytes | None]] = defaultdict(list)
        self.keys: list[bytes | None] = []
        self.headers: list[Headers | None] = []
        self.tails: list[PartitionTail] = harness.inspection().tails(
            topic, frozenset(map(identity, tasks)), most, self._on_row, harness.deadline()
        )

    def trace(self, task: Task, partition: int = 0) -> Trace:
        return self.tails[partition].traces.get(identity(task), Trace())

    def _on_row(
        self,
        producer: ProducerIdentity,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
    ) -> None:
        self.values[producer].append(value)
        self.keys.append(key)
        self.headers.append(headers)


def identity(task: Task) -> ProducerIdentity:
    return task.producer.identity(task.harness.deadline())


class InspectionContract:
    def test_records_are_told_apart_by_their_producers_and_ended_by_markers(
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
        assert look.trace(committed) == Trace(2, 0, True)
        assert look.trace(aborted) == Trace(1, 0, False)
        assert look.trace(open_) == Trace(1, 0, None)
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
        assert look.trace(second) == Trace(1, 0, True)

    def test_key_and_headers_are_handed_over(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        task.producer.produce(topic, None, key=b"k", headers=[("h", b"1"), ("h", None)])
        task.producer.produce(topic, b"v")
        task.producer.flush(harness.deadline())
        look = Look(harness, topic, task)
        assert look.values[identity(task)] == [None, b"v"]
        assert look.keys == [b"k", None]
        first, second = look.headers
        assert list(first or ()) == [("h", b"1"), ("h", None)]
        assert second is None

    def test_a_topic_that_is_not_there_shows_nothing(self, harness: Harness) -> None:
        assert Look(harness, f"missing-{harness.names.query}").tails == []

    def test_an_empty_topic_shows_its_partitions(self, harness: Harness) -> None:
        tails = Look(harness, harness.create_topic(partitions=2)).tails
        assert [(tail.partition, tail.end) for tail in tails] == [(0, 0), (1, 0)]

    def test_the_logs_records_are_told_and_the_log_is_not_made(self, harness: Harness) -> None:
        assert harness.inspection().records(harness.deadline()) is None
        assert harness.inspection().records(harness.deadline()) is None
        harness.kafka().log_reader(harness.deadline()).close()
        assert harness.inspection().records(harness.deadline()) == {}
        for value, key in ((b"1", "b-0123456789"), (b"2", "a-0123456789"), (b"3", "b-0123456789")):
            append(harness, value, key)
        found = harness.inspection().records(harness.deadline())
        assert found == {"a-0123456789": b"2", "b-0123456789": b"3"}

    def test_a_group_shows_its_member(self, harness: Harness) -> None:
        names = harness.names
        assert harness.inspection().members(names.group, harness.deadline()) == []
        kafka = harness.kafka()
        kafka.log_reader(harness.deadline()).close()
        kafka.member(names.group, names.driver, SESSION_MS).join(
            harness.deadline(TIMEOUT_MS / 1000)
        )
        assert len(harness.inspection().members(names.group, harness.deadline())) == 1
