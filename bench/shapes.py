"""The measured shapes: about 100 MB per batch for throughput."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.shape import Shape

MAIN = Shape("100 B", 1_000_000, 5, 2)
"""The shape of `make bench`."""
KEYS = Shape("100 B, keys", 1_000_000, 5, 2, key_bytes=9, partitions=4)
_KILOBYTE = replace(KEYS, name="1 KB, keys", rows=100_000, value_bytes=1_000)
_LARGE = replace(KEYS, name="10 KB, keys", rows=10_000, value_bytes=10_000)


def _but(shape: Shape, what: str, **changes: Any) -> Shape:
    return replace(shape, name=f"{shape.name}, {what}", **changes)


def _defaults(shape: Shape) -> Shape:
    return _but(shape, "defaults", linger_ms=None, batch_bytes=None)


def _requests(shape: Shape) -> Shape:
    changes = {"linger_ms": 20, "batch_bytes": 1024 * 1024}
    return _but(shape, "linger 20 ms, batch.size 1 MiB", **changes)


_VARIES = _but(_KILOBYTE, "lengths differ", varies=True)

SHAPES = (
    MAIN,
    Shape("20 B", 2_000_000, 5, 2, value_bytes=20),
    Shape("1 KB", 100_000, 6, 2, value_bytes=1_000),
    Shape("100 KB", 1_000, 6, 2, value_bytes=100_000),
    Shape("100 B, 3 headers", 500_000, 5, 2, headers=3),
    Shape("100 B, zstd", 1_000_000, 5, 2, compression="zstd"),
    KEYS,
    _requests(KEYS),
    _defaults(KEYS),
    _KILOBYTE,
    _VARIES,
    _requests(_VARIES),
    _but(_VARIES, "500 rows at once", arrow_rows=500),
    _defaults(_KILOBYTE),
    _LARGE,
    _but(_LARGE, "100 rows at once", arrow_rows=100),
)
