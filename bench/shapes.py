"""The measured shapes: about 100 MB per batch for throughput."""

from __future__ import annotations

from dataclasses import replace

from bench.shape import Shape

MAIN = Shape("100 B", 1_000_000, 5, 2)
"""The shape of `make bench`."""
KEYS = Shape("100 B, keys", 1_000_000, 5, 2, key_bytes=9, partitions=4)

SHAPES = (
    MAIN,
    Shape("20 B", 2_000_000, 5, 2, value_bytes=20),
    Shape("1 KB", 100_000, 6, 2, value_bytes=1_000),
    Shape("100 KB", 1_000, 6, 2, value_bytes=100_000),
    Shape("100 B, 3 headers", 500_000, 5, 2, headers=3),
    Shape("100 B, lz4", 1_000_000, 5, 2, compression="lz4"),
    Shape("100 B, zstd", 1_000_000, 5, 2, compression="zstd"),
    Shape("100 B, 1 partition", 1_000_000, 5, 2, partitions=1),
    Shape("100 B, 16 partitions", 1_000_000, 5, 2, partitions=16),
    KEYS,
    replace(KEYS, name="1 KB, keys", rows=100_000, value_bytes=1_000),
    replace(KEYS, name="10 KB, keys", rows=10_000, value_bytes=10_000),
    replace(KEYS, name="100 B, keys, 16 partitions", partitions=16),
    replace(KEYS, name="100 B, keys, linger 20 ms", linger_ms=20),
    replace(KEYS, name="100 B, keys, batch.size 16 KiB", batch_bytes=16 * 1024),
    replace(KEYS, name="100 B, keys, batch.size 1 MiB", batch_bytes=1024 * 1024),
    replace(KEYS, name="100 B, keys, defaults", linger_ms=None, batch_bytes=None),
    replace(
        KEYS,
        name="1 KB, keys, defaults",
        rows=100_000,
        value_bytes=1_000,
        linger_ms=None,
        batch_bytes=None,
    ),
)
