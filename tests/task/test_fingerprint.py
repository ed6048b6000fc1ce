"""A fingerprint tells rows apart and not their order or partition."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from eos_sink.model import Tally
from eos_sink.task.columns import Row
from eos_sink.task.fingerprint import Tallier

some_bytes = st.none() | st.binary(max_size=4)
headers = st.none() | st.lists(st.tuples(st.text("ab", max_size=2), some_bytes), max_size=2)
some_number = st.none() | st.integers(0, 2)
rows = st.tuples(some_bytes, some_bytes, st.just("t"), headers, some_number, some_number)


def tally(*parts: list[Row], topic_varies: bool = False) -> Tally:
    tallier = Tallier(topic_varies=topic_varies)
    for part in parts:
        assert list(tallier.through(part)) == part
    return tallier.tally


def row(
    value: bytes | None = b"v",
    key: bytes | None = None,
    topic: str = "t",
    headers: list[tuple[str, bytes | None]] | None = None,
    partition: int | None = None,
    timestamp: int | None = None,
) -> Row:
    return value, key, topic, headers, partition, timestamp


@given(st.lists(rows, max_size=6), st.randoms(use_true_random=False), st.integers(0, 6))
def test_order_and_partition_do_not_matter(some: list[Row], chance: object, cut: int) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert tally(some) == tally(shuffled) == tally(shuffled[:cut]) + tally(shuffled[cut:])
    assert tally(some) == tally(shuffled[:cut], shuffled[cut:])


@given(rows, rows)
def test_different_rows_have_different_fingerprints(one: Row, other: Row) -> None:
    # Nothing and no headers are the same record.
    assume((*one[:3], one[3] or None, one[4:]) != (*other[:3], other[3] or None, other[4:]))
    assert tally([one]).fingerprint != tally([other]).fingerprint


def test_key_and_value_do_not_run_into_each_other() -> None:
    pairs = [(b"ab", b"c"), (b"a", b"bc"), (b"abc", b""), (b"abc", None), (None, b"abc")]
    assert len({tally([row(v, k)]).fingerprint for v, k in pairs}) == len(pairs)


def test_the_topic_counts_where_rows_choose_it() -> None:
    assert tally([row(topic="a")]) == tally([row(topic="b")])
    assert tally([row(topic="a")], topic_varies=True) != tally([row(topic="b")], topic_varies=True)


def test_a_row_twice_is_not_the_row_once_and_no_rows_are_nothing() -> None:
    assert tally([row(), row()]) != tally([row()])
    assert tally([]) == Tally()


def test_rows_and_payload_bytes_are_counted() -> None:
    counted = tally([row(b"abc", b"k"), row(None, None), row(b"", headers=[("h", b"x")])])
    assert (counted.rows, counted.bytes) == (3, 4)


def test_a_fingerprint_stays_the_same_for_ever() -> None:
    """A release that hashes differently would stop a query whose last batch is replayed."""
    some = [row(), row(b"v", b"k", headers=[("h", None)], partition=2)]
    assert tally(some) == Tally(2, 3, 9672718797238000343)
    timed = [row(timestamp=1_700_000_000_000), row(partition=1, timestamp=1)]
    assert tally(timed) == Tally(2, 2, 3218257776620470833)
