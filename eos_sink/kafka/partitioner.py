"""The partitions of rows that name none, as the Java producer chooses them. Pure.

From Utils.murmur2 and BuiltInPartitioner in Kafka's source; librdkafka calls it `murmur2_random`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eos_sink.kafka.rows import Int64s

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF
# Keys are hashed word by word, all at once; few long ones are faster one after the other.
_LONG_BYTES = 256
_BY_KEY, _AT_RANDOM = "murmur2_random", "random"
_RUN_BYTES = 16_384  # Java's default of `batch.size`


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

    from eos_sink.kafka.rows import find_spans

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


@dataclass(frozen=True)
class Partitioning:
    """How the user's settings place rows.

    Attributes:
        ignore_keys: rows with a key are placed as those without one.
        run_bytes: about so many bytes of rows without a key go to one partition, then as many to
            another one at random: few batches, and an even spread in the end (KIP-480).
    """

    ignore_keys: bool = False
    run_bytes: int = _RUN_BYTES

    @staticmethod
    def of(settings: Mapping[str, str]) -> Partitioning:
        """From librdkafka's settings; rows of a query with another partitioner are for tasks."""
        name = settings.get("partitioner", _BY_KEY)
        assert name in (_BY_KEY, _AT_RANDOM), f"partitioner {name} is librdkafka's alone"
        run_bytes = int(settings.get("batch.size", _RUN_BYTES))
        if settings.get("sticky.partitioning.linger.ms") == "0":
            run_bytes = 1
        return Partitioning(name == _AT_RANDOM, run_bytes)

    def place(self, key: bytes | None, count: int, available: Sequence[int]) -> int:
        """The partition of one record.

        Args:
            key: of the record.
            count: partitions of its topic.
            available: those that have a leader, for records without a key.
        """
        if key is None or self.ignore_keys:
            return random.choice(available)
        return hash_key(key) % count

    def place_rows(self, keys: Any, sizes: Int64s, count: int, available: Sequence[int]) -> Int64s:
        """The same for rows of one topic.

        Args:
            keys: Arrow column of (large) binary; None: no row has a key.
            sizes: of the rows, in bytes.
        """
        import numpy as np

        from eos_sink.kafka.rows import find_valid

        keyed = np.zeros(len(sizes), bool)
        if keys is not None and not self.ignore_keys:
            keyed = find_valid(keys)
        placed = np.empty(len(sizes), np.int64)
        if keyed.any():
            placed[keyed] = hash_keys(keys.filter(keyed) if not keyed.all() else keys) % count
        free = sizes[~keyed]
        _, run = np.unique((np.cumsum(free) - free) // self.run_bytes, return_inverse=True)
        choices = random.choices(available, k=int(run.max(initial=-1)) + 1)
        placed[~keyed] = np.array(choices, np.int64)[run]
        return placed
