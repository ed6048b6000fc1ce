"""The partitions of rows that name none, as the Java producer chooses them. Pure.

From Utils.murmur2 and BuiltInPartitioner in Kafka's source; librdkafka calls it `murmur2_random`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eos_sink.rows.rows import Int64s

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF
# Keys are hashed word by word, all at once; few long ones are faster one after the other.
_LONG_BYTES = 256


def hash_key(key: bytes) -> int:
    """Utils.toPositive(Utils.murmur2(key))."""
    size = len(key)
    mixed = (_SEED ^ size) & _MASK
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> _R) * _M & _MASK
        mixed = mixed * _M & _MASK ^ word
    if size > whole:
        mixed = (mixed ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    mixed = (mixed ^ mixed >> 13) * _M & _MASK
    return (mixed ^ mixed >> 15) & 0x7FFFFFFF


def hash_keys(keys: Any) -> Int64s:
    """`hash_key` of each value of an Arrow column of (large) binary without a null."""
    import numpy as np

    from eos_sink.rows.rows import find_spans

    data, starts, sizes = find_spans(keys)
    if not len(sizes):
        return np.zeros(0, np.int64)
    m, r = np.uint32(_M), np.uint32(_R)
    # Room to read a whole word behind the last key.
    content = np.frombuffer(bytes(data or b"") + bytes(4), np.uint8)

    def words(rows: Int64s, at: int) -> Any:
        first = starts[rows] + at
        return sum(content[first + n].astype(np.uint32) << np.uint32(8 * n) for n in range(4))

    hashes = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    some = np.flatnonzero(sizes <= _LONG_BYTES)
    for at in range(0, int(sizes[some].max(initial=0)) & ~3, 4):
        rows = some[sizes[some] >= at + 4]
        word = words(rows, at) * m
        hashes[rows] = (hashes[rows] * m) ^ ((word ^ (word >> r)) * m)
    for extra in (1, 2, 3):
        rows = some[sizes[some] % 4 == extra]
        last = starts[rows] + sizes[rows] - extra
        rest = sum(content[last + n].astype(np.uint32) << np.uint32(8 * n) for n in range(extra))
        hashes[rows] = (hashes[rows] ^ rest) * m
    hashes = (hashes ^ (hashes >> np.uint32(13))) * m
    found: Int64s = ((hashes ^ (hashes >> np.uint32(15))) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    for row in np.flatnonzero(sizes > _LONG_BYTES).tolist():
        found[row] = hash_key(keys[row].as_py())
    return found
