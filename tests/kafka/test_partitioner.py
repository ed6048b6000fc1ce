"""Rows go where the Java client puts them; kafka-python has the same hash."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

from eos_sink.kafka.partitioner import Partitioning, hash_key, hash_keys

_CHANCE = random.Random(7)
KEYS = [
    b"",
    b"\0",
    bytes(range(256)),
    b"\xff" * 300,
    b"long" * 5_000,
    *(_CHANCE.randbytes(_CHANCE.randrange(40)) for _ in range(500)),
]
# From UtilsTest.testMurmur2 in Kafka's source.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_a_key_has_the_hash_that_java_gives_it() -> None:
    assert {key: hash_key(key) for key in JAVA} == {
        key: value & 0x7FFFFFFF for key, value in JAVA.items()
    }
    assert [hash_key(key) for key in KEYS] == [murmur2(key) & 0x7FFFFFFF for key in KEYS]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_column_of_keys_is_hashed_as_each_of_them(kind: pa.DataType) -> None:
    column = pa.array([b"cut off", *KEYS, b"cut off"], kind).slice(1, len(KEYS))
    assert hash_keys(column).tolist() == [hash_key(key) for key in KEYS]
    assert hash_keys(column.slice(0, 0)).tolist() == []
    assert hash_keys(pa.array([b"", b""], kind)).tolist() == [hash_key(b"")] * 2


def sizes(count: int) -> np.ndarray:
    return np.full(count, 100)


def test_rows_with_a_key_go_where_it_belongs_and_others_to_partitions_with_a_leader() -> None:
    keys = pa.array([b"a", None, b"b", None, b"a"])
    placed = Partitioning().place_rows(keys, sizes(5), 7, [3]).tolist()
    at = {key: hash_key(key) % 7 for key in (b"a", b"b")}
    assert placed == [at[b"a"], 3, at[b"b"], 3, at[b"a"]]
    assert Partitioning().place(b"a", 7, [3]) == at[b"a"]
    assert Partitioning().place(None, 7, [3]) == 3


def test_rows_without_a_key_go_to_one_partition_for_some_bytes_then_to_another() -> None:
    partitioning = Partitioning.of({"batch.size": "1000"})
    placed = partitioning.place_rows(None, sizes(10_000), 5, range(5)).tolist()
    assert all(len(run) % 10 == 0 for run in _runs(placed))
    spread = Counter(placed)
    assert set(spread) == set(range(5))
    assert min(spread.values()) > 1000


def _runs(placed: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for each in placed:
        if runs and runs[-1][-1] == each:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def test_settings_may_spread_rows_one_by_one_or_ignore_their_keys() -> None:
    spread = Partitioning.of({"sticky.partitioning.linger.ms": "0"})
    assert len(set(spread.place_rows(None, sizes(300), 4, range(4)).tolist())) == 4
    ignoring = Partitioning.of({"partitioner": "random"})
    keys = pa.array([b"k"] * 300)
    assert set(ignoring.place_rows(keys, sizes(300), 4, [2]).tolist()) == {2}
    assert ignoring.place(b"k", 4, [2]) == 2


def test_other_partitioners_are_not_for_the_driver() -> None:
    with pytest.raises(AssertionError):
        Partitioning.of({"partitioner": "consistent"})
