"""A fingerprint tells rows apart and not their order or partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_digest

from eos_sink.protocol.model import RowDigest
from eos_sink.rows.fingerprint import RowDigester
from eos_sink.rows.rows import Row, Rows
from eos_sink.task.columns import to_rows

START = 0x243F6A8885A308D3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

some_bytes = st.none() | st.binary(max_size=20)
text = st.none() | st.text("ab√∞", max_size=9)
headers = st.none() | st.lists(st.tuples(st.text("ab", max_size=2), some_bytes), max_size=2)
some_number = st.none() | st.integers(0, 2)
some_time = st.none() | st.integers(1, 3)
rows = st.tuples(some_bytes, some_bytes, st.just("t"), headers, some_number, some_time)


def digest(*parts: list[Row], topic_varies: bool = False) -> RowDigest:
    digester = RowDigester(topic_varies=topic_varies)
    for part in parts:
        digester.add(Rows.of(part))
    return digester.digest


def row(
    value: bytes | None = b"v",
    key: bytes | None = None,
    topic: str = "t",
    headers: list[tuple[str, bytes | None]] | None = None,
    partition: int | None = None,
    timestamp: int | None = None,
) -> Row:
    return value, key, topic, headers, partition, timestamp


def step(state: int, word: int) -> int:
    state = (state ^ word) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 32) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 29


def mixed(state: int) -> int:
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 31


def field(data: bytes | None) -> int:
    if data is None:
        return step(START, 2**64 - 1)
    state = step(START, len(data))
    if len(data) > 256:
        data = xxh3_64_digest(data)[::-1]
    for at in range(0, len(data), 8):
        state = step(state, int.from_bytes(data[at : at + 8], "little"))
    return state


def plainly(row: Row, *, topic_varies: bool) -> int:
    """The definition, one row at a time."""
    value, key, topic, headers, partition, timestamp = row
    state = step(step(START, field(value)), field(key))
    if topic_varies:
        state = step(state, field(topic.encode()))
    if headers:
        each = (
            mixed(step(step(step(START, field(name.encode())), field(data)), place))
            for place, (name, data) in enumerate(headers)
        )
        state = step(step(state, 1), sum(each) % 2**64)
    if partition is not None:
        state = step(step(state, 2), partition)
    if timestamp is not None:
        state = step(step(state, 3), timestamp)
    return mixed(state)


def fingerprint(some: list[Row], *, topic_varies: bool = False) -> int:
    return sum(plainly(each, topic_varies=topic_varies) for each in some) % 2**64


@given(st.lists(rows, max_size=6), st.randoms(use_true_random=False), st.integers(0, 6))
def test_order_and_partition_do_not_matter(some: list[Row], chance: object, cut: int) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest(some) == digest(shuffled) == digest(shuffled[:cut]) + digest(shuffled[cut:])
    assert digest(some) == digest(shuffled[:cut], shuffled[cut:])


@given(rows, rows)
def test_different_rows_have_different_fingerprints(one: Row, other: Row) -> None:
    # Nothing and no headers are the same record.
    assume((*one[:3], one[3] or None, one[4:]) != (*other[:3], other[3] or None, other[4:]))
    assert digest([one]).fingerprint != digest([other]).fingerprint


@given(st.lists(rows, max_size=8), st.booleans())
def test_a_fingerprint_is_the_sum_of_what_each_row_gives_by_the_definition(
    some: list[Row], topic_varies: bool
) -> None:
    counted = digest(some, topic_varies=topic_varies)
    assert counted.fingerprint == fingerprint(some, topic_varies=topic_varies)


@given(st.lists(rows, max_size=5))
def test_rows_that_come_one_by_one_count_the_same(some: list[Row]) -> None:
    digester = RowDigester(topic_varies=True)
    for each in some:
        digester.add_row(each)
    assert digester.digest == digest(some, topic_varies=True)


KINDS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            text, text, st.text("ab√", min_size=1, max_size=3), headers, some_number, some_time
        ),
        max_size=9,
    ),
    st.integers(0, 3),
)
def test_the_shape_of_the_arrow_columns_makes_no_difference(
    kind: str, some: list[Any], cut: int
) -> None:
    def column(values: list[str | None]) -> Any:
        binary = "binary" in kind
        encoded = [each.encode() if binary and each is not None else each for each in values]
        return pa.array(encoded, KINDS[kind])

    parts = [list(part) for part in zip(*some, strict=True)] if some else [[]] * 6
    value, key, topic, heads, partition, timestamp = parts
    pairs = [
        None if each is None else [{"key": name, "value": data} for name, data in each]
        for each in heads
    ]
    batch = pa.RecordBatch.from_pydict(
        {
            "value": column(value),
            "key": column(key),
            "topic": pa.array(topic, pa.string()),
            "headers": pa.array(pairs, HEADERS),
            "partition": pa.array(partition, pa.int32()),
            "at": pa.array(
                [None if each is None else each * 1000 for each in timestamp], pa.timestamp("us")
            ),
        }
    ).slice(cut)
    found = to_rows(batch, None, "at")
    digester = RowDigester(topic_varies=True)
    digester.add(found)
    assert digester.digest.fingerprint == fingerprint(list(found), topic_varies=True)
    assert digester.digest.rows == max(len(some) - cut, 0)


@pytest.mark.parametrize("length", [8, 9, 15, 16, 92, 100, 255, 256, 257, 100_000])
def test_fields_of_one_length_and_long_ones_follow_the_definition(length: int) -> None:
    """They have a path of their own."""
    data = bytes(range(256)) * (2 * length // 256 + 2)
    some = [row(data[at : at + length], data[at + 1 : at + 9]) for at in range(5)]
    assert digest(some).fingerprint == fingerprint(some)
    longer = [*some, row(data[: length + 1]), row(None), row(b"")]
    assert digest(longer).fingerprint == fingerprint(longer)


@pytest.mark.parametrize("kind", ["binary", "large_binary"])
@given(st.lists(st.none() | st.integers(0, 40) | st.integers(240, 700)), st.integers(0, 3))
def test_fields_of_any_lengths_beside_each_other_follow_the_definition(
    kind: str, lengths: list[int | None], cut: int
) -> None:
    data = bytes(range(1, 256)) * 3
    values = [None if n is None else data[at : at + n] for at, n in enumerate(lengths)]
    digester = RowDigester(topic_varies=False)
    value = pa.array(values, KINDS[kind]).slice(cut)
    digester.add(Rows(value, pa.array(values[cut:], pa.binary())))
    assert digester.digest.fingerprint == fingerprint([row(v, v) for v in values[cut:]])


def test_a_column_that_is_not_there_is_one_of_nulls() -> None:
    digester = RowDigester(topic_varies=False)
    digester.add(Rows(pa.array([b"v", b"w"]), topic="t"))
    assert digester.digest == digest([row(b"v"), row(b"w")])


def test_what_hides_behind_a_null_does_not_count() -> None:
    """An array may have any bytes where its rows are null, lists too."""
    mask = pa.py_buffer(b"\x01")
    data = pa.array([b"v", b"hidden behind the null"])
    value = pa.Array.from_buffers(pa.binary(), 2, [mask, *data.buffers()[1:]])
    lists = pa.array([[{"key": "h", "value": b"x"}], [{"key": "g", "value": b"y"}]], HEADERS)
    heads = pa.Array.from_buffers(HEADERS, 2, [mask, lists.buffers()[1]], children=[lists.values])
    digester = RowDigester(topic_varies=False)
    digester.add(Rows(value, headers=heads))
    assert digester.digest == digest([row(b"v", headers=[("h", b"x")]), row(None)])


def test_words_that_only_differ_in_their_signs_differ() -> None:
    """Steps that only multiply would let the highest bits of neighbours cancel each other."""
    signs = [bytes([first]) * 7 + bytes([second]) for first in (0, 128) for second in (0, 128)]
    values = [a + b + c for a in signs for b in signs for c in signs]
    assert len({digest([row(value)]).fingerprint for value in values}) == len(values)


def test_key_and_value_do_not_run_into_each_other() -> None:
    pairs: list[tuple[bytes | None, bytes | None]]
    pairs = [(b"ab", b"c"), (b"c", b"ab"), (b"a", b"bc"), (b"abc", b""), (b"abc", None)]
    pairs += [(None, b"abc"), (None, b""), (b"", None), (None, None), (b"", b"")]
    assert len({digest([row(v, k)]).fingerprint for v, k in pairs}) == len(pairs)


def test_headers_count_with_their_order_and_do_not_run_into_each_other() -> None:
    some: list[list[tuple[str, bytes | None]]] = [
        [("a", b"1"), ("b", b"2")],
        [("b", b"2"), ("a", b"1")],
        [("a", b"2"), ("b", b"1")],
        [("a", b"b")],
        [("b", b"a")],
        [("a", b"1")],
        [("a1", b"")],
        [("a1", None)],
        [("a", b"1"), ("b", b"2"), ("", None)],
    ]
    assert len({digest([row(headers=each)]).fingerprint for each in some}) == len(some)


def test_the_topic_counts_where_rows_choose_it() -> None:
    assert digest([row(topic="a")]) == digest([row(topic="b")])
    assert digest([row(topic="a")], topic_varies=True) != digest(
        [row(topic="b")], topic_varies=True
    )


def test_a_row_twice_is_not_the_row_once_and_no_rows_are_nothing() -> None:
    assert digest([row(), row()]) != digest([row()])
    assert digest([]) == RowDigest()


def test_rows_and_payload_bytes_are_counted() -> None:
    counted = digest([row(b"abc", b"k"), row(None, None), row(b"", headers=[("h", b"x")])])
    assert (counted.rows, counted.bytes) == (3, 4)


def test_a_fingerprint_stays_the_same_for_ever() -> None:
    """A release that hashes differently would stop a query whose last batch is replayed."""
    some = [row(), row(b"v", b"k", headers=[("h", None)], partition=2)]
    assert digest(some) == RowDigest(2, 3, 7184363802258702250)
    assert digest([row(bytes(range(256)) * 2)]) == RowDigest(1, 512, 6219715418314283832)
    timed = [row(timestamp=1_700_000_000_000), row(partition=1, timestamp=1)]
    assert digest(timed) == RowDigest(2, 2, 14529588404099290756)
