"""From queued records to the record batches of each partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import pytest

from eos_sink.errors import FailureKind
from eos_sink.kafka.interfaces import ProduceFailed
from eos_sink.kafka.record_queue import Batch, Place, RecordQueue, UnknownPartition
from eos_sink.kafka.rows import Row, Rows

LEADERS = {"a": {0: 1, 1: 1, 2: 2}, "b": {0: 1}, "log": {7: 1}}


def row(
    topic: str = "a",
    value: bytes = b"v",
    partition: int | None = 0,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> Row:
    return value, None, topic, headers, partition, None


def queue(**settings: str) -> RecordQueue:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return RecordQueue(named, "log")


def values(batches: Mapping[Place, deque[Batch]]) -> dict[Place, list[list[bytes | None]]]:
    return {
        place: [[each[0] for each in batch.rows] for batch in waiting]
        for place, waiting in batches.items()
    }


def test_rows_keep_their_order_in_the_batch_of_their_partition() -> None:
    waiting = queue()
    waiting.add_rows(Rows.of([row("a", b"%d" % n, n % 3) for n in range(9)] + [row("b")]), None)
    waiting.add(row("log", b"record", 7), None)
    assert waiting.topics == {"a", "b", "log"}
    assert values(waiting.take(LEADERS)) == {
        **{("a", n): [[b"%d" % m for m in range(n, 9, 3)]] for n in range(3)},
        ("b", 0): [[b"v"]],
        ("log", 7): [[b"record"]],
    }
    assert waiting.topics == set()
    assert waiting.take(LEADERS) == {}


def test_records_that_came_one_by_one_and_in_columns_keep_their_order() -> None:
    waiting = queue()
    for number in range(2):
        waiting.add(row(value=b"one %d" % number), None)
        waiting.add_rows(Rows.of([row(value=b"some %d" % number)]), None)
        waiting.add_rows(Rows.of([row(value=b"h", headers=[("h", b"")])]), None)
    expected = [[b"one 0"], [b"some 0"], [b"h", b"one 1"], [b"some 1"], [b"h"]]
    assert values(waiting.take(LEADERS)) == {("a", 0): expected}


@pytest.mark.parametrize("headers", [None, [("h", b"x")]])
def test_a_batch_is_not_larger_than_the_limit(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    waiting = queue(message_max_bytes="10000")
    some = [row(value=b"%2d" % n + b"x" * 2998, headers=headers) for n in range(10)]
    waiting.add_rows(Rows.of([*some, row(value=b"y" * 10_000, headers=headers)]), None)
    batches = waiting.take(LEADERS)["a", 0]
    assert [len(batch.rows) for batch in batches] == [3, 3, 3, 1, 1]
    assert [len(batch.records.data) < 10_000 for batch in batches] == [True] * 4 + [False]
    assert [each[0][:2] for batch in batches for each in batch.rows if each[0]] == [
        *(b"%2d" % n for n in range(10)),
        b"yy",
    ]


def test_a_row_above_the_users_limit_is_refused_and_a_record_of_the_log_is_not() -> None:
    waiting = queue(message_max_bytes="1000")
    with pytest.raises(ProduceFailed):
        waiting.add(row(value=b"x" * 1001), None)
    with pytest.raises(ProduceFailed) as failed:
        waiting.add_rows(Rows.of([row(), row("b", b"x" * 1001)]), None)
    assert (failed.value.kind, failed.value.topic) == (FailureKind.MESSAGE_REJECTED, "b")
    waiting.add(row("log", b"x" * 5000, 7), None)
    assert len(waiting.take(LEADERS)) == 1


@pytest.mark.parametrize("alone", [True, False])
def test_an_unknown_partition_leaves_the_queue_as_it_was(alone: bool) -> None:
    waiting = queue()
    waiting.add_rows(Rows.of([row()]), None)
    if alone:
        waiting.add(row("b", partition=1), None)
    else:
        waiting.add_rows(Rows.of([row("b", partition=0), row("b", partition=1)]), None)
    with pytest.raises(UnknownPartition, match="b has no partition 1"):
        waiting.take(LEADERS)
    taken = waiting.take({**LEADERS, "b": {0: 1, 1: 2}})
    assert len(taken["a", 0]) == 1
    assert ("b", 1) in taken


def test_a_query_with_a_partitioner_of_librdkafka_writes_its_records() -> None:
    waiting = queue(partitioner="consistent")
    waiting.add(row("log", b"record", 7), None)
    assert len(waiting.take(LEADERS)) == 1


def test_rows_without_a_partition_go_to_one_that_has_a_leader() -> None:
    waiting = queue()
    waiting.add_rows(Rows.of([row(partition=None)] * 50), None)
    waiting.add(row(partition=None), None)
    assert set(waiting.take({"a": {0: -1, 1: -1, 2: 5}})) == {("a", 2)}


@pytest.mark.parametrize("headers", [None, [("h", b"x")]])
def test_one_offset_of_each_call_is_reported_and_each_of_single_records(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    waiting, told = queue(), list[str]()
    waiting.add(row(), lambda *_: told.append("single"))
    waiting.add(row(), None)
    waiting.add(row(), lambda *_: told.append("third"))
    waiting.add_rows(Rows.of([row(headers=headers)] * 5), lambda *_: told.append("rows"))
    for batch in waiting.take(LEADERS)["a", 0]:
        for _, report in batch.reports:
            report("a", 0, 0)
    assert told == ["single", "third", "rows"]


@pytest.mark.parametrize("columns", [True, False])
def test_halves_of_a_batch_have_its_records_times_and_reports(columns: bool) -> None:
    waiting, told = queue(), list[int]()
    some = [row(value=b"%d" % number) for number in range(5)]
    if columns:
        waiting.add_rows(Rows.of(some), lambda _, __, offset: told.append(offset))
    else:
        for each in some:
            waiting.add(each, lambda _, __, offset: told.append(offset))
    (batch,) = waiting.take(LEADERS)["a", 0]
    halves = batch.halve()
    assert [[each[0] for each in half.rows] for half in halves] == [
        [b"0", b"1"],
        [b"2", b"3", b"4"],
    ]
    assert [half.records.count for half in halves] == [2, 3]
    assert {half.records.first_ms for half in halves} == {batch.records.first_ms}
    for base, half in zip((10, 12), halves, strict=True):
        for number, report in half.reports:
            report("a", 0, base + number)
    assert told == ([10] if columns else [10, 11, 12, 13, 14])
