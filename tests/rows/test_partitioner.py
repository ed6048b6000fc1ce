"""Rows go where the Java client puts them; kafka-python has the same hash."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

from eos_sink.rows.partitioner import hash_key, hash_keys

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
