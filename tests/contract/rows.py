"""What every implementation of the producer does with rows that come a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import FailureKind
from eos_sink.kafka.interfaces import Sizes
from eos_sink.kafka.read_topic_rules import read_topic_rules
from eos_sink.protocol.values import ProduceFailed
from eos_sink.rows.rows import Row, Rows
from eos_sink.task.columns import to_rows
from eos_sink_lab.testing.waiting import wait_until
from tests.contract.harness import TIMEOUT_MS, Harness, Record, Task

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()),
]
TEXTS = ["", None, "a", "grün", "longer than what a view holds itself", "a"]


def column(texts: Iterable[str | None], kind: pa.DataType) -> Any:
    if "binary" in str(kind):
        return pa.array([None if each is None else each.encode() for each in texts], kind)
    return pa.array(texts, kind)


def encoded(texts: Iterable[str | None]) -> list[bytes | None]:
    return [None if each is None else each.encode() for each in texts]


def row(
    topic: str,
    value: bytes | None = b"v",
    key: bytes | None = None,
    headers: list[tuple[str, bytes | None]] | None = None,
    partition: int | None = None,
    timestamp: int | None = None,
) -> Row:
    return value, key, topic, headers, partition, timestamp


def committed(harness: Harness, topic: str, rows: Rows) -> list[Record]:
    """Write them in one transaction, and read them."""
    task = Task.start(harness)
    task.producer.produce_rows(rows)
    task.producer.flush(harness.deadline())
    task.commit()
    return harness.read_records(topic)


class RowsContract:
    def test_nulls_and_empty_bytes_stay_apart_in_keys_and_values(self, harness: Harness) -> None:
        topic = harness.create_topic()
        pairs: list[tuple[bytes | None, bytes | None]] = [
            (None, None), (b"", None), (None, b""), (b"", b""), (b"v", None), (None, b"k"),
        ]  # fmt: skip
        rows = Rows.of([row(topic, value, key, partition=0) for value, key in pairs])
        found = committed(harness, topic, rows)
        assert [(record.value, record.key) for record in found] == pairs

    def test_columns_of_nothing_but_nulls_and_empty_bytes_are_rows(self, harness: Harness) -> None:
        topic = harness.create_topic()
        rows = Rows(pa.nulls(2, pa.binary()), pa.array([b"", b""]), topic)
        found = committed(harness, topic, rows)
        assert [(record.value, record.key) for record in found] == [(None, b"")] * 2

    def test_each_kind_of_column_arrives_as_the_same_bytes_whole_or_sliced(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        for kind in KINDS:
            values, keys = (
                column(["cut off", *texts, "cut off"], kind) for texts in (TEXTS, TEXTS[::-1])
            )
            batch = pa.RecordBatch.from_pydict({"value": values, "key": keys})
            task.producer.produce_rows(to_rows(batch.slice(1, len(TEXTS)), topic))
        task.producer.flush(harness.deadline())
        task.commit()
        found = harness.read_records(topic)
        assert [record.value for record in found] == encoded(TEXTS) * len(KINDS)
        assert [record.key for record in found] == encoded(TEXTS[::-1]) * len(KINDS)

    def test_rows_keep_their_order_within_each_topic_of_a_column(self, harness: Harness) -> None:
        names = [harness.create_topic() for _ in range(3)]
        topics = [names[number * number % 3] for number in range(50)] + [names[2]]
        rows = Rows.of([row(topic, b"%d" % number) for number, topic in enumerate(topics)])
        found = {name: committed(harness, name, rows) for name in names[:1]}
        found |= {name: harness.read_records(name) for name in names[1:]}
        for name in names:
            expected = [b"%d" % number for number, topic in enumerate(topics) if topic == name]
            assert [record.value for record in found[name]] == expected

    @pytest.mark.parametrize("every", [1, 3])
    def test_rows_go_to_the_partitions_that_they_name_in_their_order(
        self, harness: Harness, every: int
    ) -> None:
        """Or, with `every` 3, where their key belongs, which may be the same partition."""
        topic = harness.create_topic(partitions=4)
        where = [number % 4 if number % every == 0 else None for number in range(60)]
        some = [row(topic, b"%d" % n, b"key", partition=where[n]) for n in range(60)]
        found = committed(harness, topic, Rows.of(some))
        assert len(found) == 60
        place = {int(record.value or b""): record.partition for record in found}
        assert all(place[n] == partition for n, partition in enumerate(where) if partition)
        assert len({place[n] for n, partition in enumerate(where) if partition is None}) <= 1
        for partition in range(4):
            values = [int(each.value or b"") for each in found if each.partition == partition]
            assert values == sorted(values)

    @pytest.mark.parametrize("sliced", [0, 2])
    def test_headers_and_times_arrive(self, harness: Harness, sliced: int) -> None:
        topic = harness.create_topic()
        headers: list[list[tuple[str, bytes | None]] | None] = [
            [("h", b"1"), ("h", None), ("grün", b"")], None, [], [("", b"x")], [("h", b"2")],
        ]  # fmt: skip
        times = [None, 1, 1_700_000_000_123, None, 1_700_000_000_000]
        some = [
            row(topic, b"%d" % n, b"k" if n % 2 else None, each, 0, times[n])
            for n, each in enumerate(headers)
        ]
        found = committed(harness, topic, Rows.of(some).slice(sliced))
        assert [list(record.headers) for record in found] == [each or [] for each in headers][
            sliced:
        ]
        assert [record.value for record in found] == [b"%d" % n for n in range(5)][sliced:]
        assert [record.key for record in found] == [None, b"k", None, b"k", None][sliced:]
        for record, time in zip(found, times[sliced:], strict=True):
            assert time is None or record.timestamp == time

    def test_one_record_of_a_batch_has_its_offset(self, harness: Harness) -> None:
        topic = harness.create_topic(partitions=2)
        task = Task.start(harness)
        told: list[tuple[str, int, int]] = []
        for number in range(3):
            rows = Rows.of([row(topic, b"%d %d" % (number, n), partition=1) for n in range(10)])
            task.producer.produce_rows(rows, lambda *place: told.append(place))
        task.producer.flush(harness.deadline())
        assert len(told) == 3
        assert {place[:2] for place in told} == {(topic, 1)}
        task.commit()
        values = [record.value or b"" for record in harness.read_records(topic)]
        assert sorted(values[offset][:1] for _, _, offset in told) == [b"0", b"1", b"2"]

    def test_more_rows_than_there_is_room_for_wait_and_keep_their_order(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic(partitions=2)
        task = Task.start(harness, kafka_queue_buffering_max_messages="100", kafka_linger_ms="0")
        some = [row(topic, b"%d" % number, partition=number % 2) for number in range(1500)]
        timed = [(*each[:5], 1_700_000_000_000) for each in some]
        for rows in (some, timed):
            task.producer.produce_rows(Rows.of(rows))
        task.producer.flush(harness.deadline())
        task.commit()
        for partition in range(2):
            mine = [each for each in harness.read_records(topic) if each.partition == partition]
            expected = [b"%d" % number for number in range(partition, 1500, 2)] * 2
            assert [record.value for record in mine] == expected

    def test_large_rows_arrive_among_small_ones(self, harness: Harness) -> None:
        topic = harness.create_topic()
        sizes = [10, 100_000, 1, 900_000, 100_000]
        rows = Rows.of([row(topic, bytes([65 + n]) * size) for n, size in enumerate(sizes)])
        found = committed(harness, topic, rows)
        # Their content would not fit into the report of a failure.
        got = [record.value or b"" for record in found]
        shown = [(value[:1], len(value)) for value in got]
        assert shown == [(bytes([65 + n]), size) for n, size in enumerate(sizes)], shown
        assert all(value == value[:1] * len(value) for value in got)

    @pytest.mark.parametrize("timestamp", [None, 5])
    def test_a_row_that_is_too_large_fails_its_batch(
        self, harness: Harness, timestamp: int | None
    ) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        values = [b"a", b"x" * 2_000_000, b"b"]
        with pytest.raises(ProduceFailed) as failed:
            task.producer.produce_rows(
                Rows.of([row(topic, value, timestamp=timestamp) for value in values])
            )
        assert failed.value.kind is FailureKind.MESSAGE_REJECTED
        task.abort()
        assert harness.read_records(topic) == []

    @pytest.mark.parametrize("named", [0, None])
    @pytest.mark.parametrize("known", [True, False])
    def test_a_partition_that_does_not_exist_fails_its_batch(
        self, harness: Harness, known: bool, named: int | None
    ) -> None:
        """Whether the client has heard of the topic before or not, it does not hang."""
        topic = harness.create_topic(partitions=2)
        task = Task.start(harness)
        if known:
            task.write(topic, b"known")
        some = [row(topic, partition=named), row(topic, partition=7), row(topic, partition=1)]
        with pytest.raises(ProduceFailed) as failed:  # noqa: PT012 - in any of the three
            task.producer.produce_rows(Rows.of(some))
            task.producer.flush(harness.deadline())
            task.commit()
        # A commit says only that a record has failed.
        assert failed.value.kind is FailureKind.MESSAGE_REJECTED or not known
        task.abort()
        # The coordinator may still have it, without a row: librdkafka (2.16) sends no EndTxn if the
        # answer to the first AddPartitionsToTxn comes after abort_transaction was called.
        places, control = [(topic, 0), (topic, 1)], harness.kafka().control()
        wait_until(
            lambda: not control.find_holders(places, harness.deadline()),
            harness.deadline(),
            "no reader is held up",
        )
        assert harness.read_records(topic) == []

    @pytest.mark.parametrize(
        ("settings", "wrong"),
        [
            ({"max.message.bytes": "2000"}, {"value": b"x" * 3_000}),
            ({"cleanup.policy": "compact"}, {"key": None}),
            ({"message.timestamp.before.max.ms": "60000"}, {"timestamp": 1_600_000_000_000}),
            ({"message.timestamp.after.max.ms": "60000"}, {"timestamp": 4_000_000_000_000}),
        ],
    )
    def test_a_row_that_the_rules_of_its_topic_exclude_fails_its_batch(
        self, harness: Harness, settings: dict[str, str], wrong: dict[str, Any]
    ) -> None:
        topic, plain = harness.create_topic(settings=settings), harness.create_topic()
        rules = read_topic_rules(harness.kafka(), [topic, plain], harness.deadline())
        assert rules[topic] != rules[plain]
        task = Task.start(harness)
        some = [row(topic, key=b"k"), row(topic, **{"key": b"k", **wrong})]
        with pytest.raises(ProduceFailed) as failed:  # noqa: PT012 - in any of the three
            task.producer.produce_rows(Rows.of(some))
            task.producer.flush(harness.deadline())
            task.commit()
        assert failed.value.kind is FailureKind.MESSAGE_REJECTED
        task.abort()
        assert harness.read_records(topic) == []
        assert committed(harness, topic, Rows.of(some[:1])) != []

    def test_a_producer_sends_records_and_batches_of_the_sizes_that_it_is_told(
        self, harness: Harness
    ) -> None:
        """Whatever the settings say."""
        narrow = harness.create_topic(settings={"max.message.bytes": "2000"})
        wide = harness.create_topic(settings={"max.message.bytes": "4000000"})
        sizes = Sizes(record=3_000_000, batch=2_000)
        name = harness.names.task(0, 0)
        producer = harness.kafka(kafka_max_request_size="5000").producer(name, TIMEOUT_MS, sizes)
        producer.init(harness.deadline())
        producer.begin()
        values = [b"%d" % number * 100 for number in range(50)]
        producer.produce_rows(Rows.of([row(narrow, value) for value in values]))
        producer.produce_rows(Rows.of([row(wide, b"x" * 2_000_000)]))
        producer.flush(harness.deadline())
        producer.commit(harness.deadline())
        assert [record.value for record in harness.read_records(narrow)] == values
        assert len(harness.read_records(wide)) == 1

    def test_a_batch_after_a_failed_one_is_a_new_one(self, harness: Harness) -> None:
        topic = harness.create_topic()
        task = Task.start(harness)
        with pytest.raises(ProduceFailed):
            task.producer.produce_rows(Rows.of([row(topic), row(topic, b"x" * 2_000_000)]))
        task.abort()
        task.producer.begin()
        task.producer.produce_rows(Rows.of([row(topic, b"kept")]))
        task.producer.flush(harness.deadline())
        task.commit()
        assert [record.value for record in harness.read_records(topic)] == [b"kept"]
