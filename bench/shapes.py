"""The measured shapes: about 100 MB per batch for throughput."""

from __future__ import annotations

from dataclasses import replace

from bench.shape import Shape

MAIN = Shape("100 B", 1_000_000, 5, 2)
"""The shape of `make bench`."""
KEYS = Shape("100 B, keys", 1_000_000, 5, 2, key_bytes=9, partitions=4)
_KILOBYTE = replace(KEYS, name="1 KB, keys", rows=100_000, value_bytes=1_000)
_VARIES = replace(_KILOBYTE, name="1 KB, keys, lengths differ", varies=True)
_LARGE = replace(KEYS, name="10 KB, keys", rows=10_000, value_bytes=10_000)
_REQUESTS = "linger 20 ms, batch.size 1 MiB"

SHAPES = (
    MAIN,
    Shape("20 B", 2_000_000, 5, 2, value_bytes=20),
    Shape("1 KB", 100_000, 6, 2, value_bytes=1_000),
    Shape("100 KB", 1_000, 6, 2, value_bytes=100_000),
    Shape("100 B, 3 headers", 500_000, 5, 2, headers=3),
    Shape("100 B, zstd", 1_000_000, 5, 2, compression="zstd"),
    KEYS,
    replace(KEYS, name=f"{KEYS.name}, {_REQUESTS}", linger_ms=20, batch_bytes=1024 * 1024),
    replace(KEYS, name=f"{KEYS.name}, defaults", linger_ms=None, batch_bytes=None),
    _KILOBYTE,
    _VARIES,
    replace(_VARIES, name=f"{_VARIES.name}, {_REQUESTS}", linger_ms=20, batch_bytes=1024 * 1024),
    replace(_VARIES, name=f"{_VARIES.name}, 500 rows at once", arrow_rows=500),
    replace(_KILOBYTE, name=f"{_KILOBYTE.name}, defaults", linger_ms=None, batch_bytes=None),
    _LARGE,
    replace(_LARGE, name=f"{_LARGE.name}, 100 rows at once", arrow_rows=100),
)
