"""Decompresses record batches. kafka-python needs further libraries for all codecs but gzip."""

from __future__ import annotations

from typing import Any

from eos_sink.kafka.internals import put_plain, take_compressed

_SNAPPY, _LZ4, _ZSTD = 2, 3, 4  # CompressionType.java
_STREAMS = {_LZ4: "lz4", _ZSTD: "zstd"}
# SnappyOutputStream.java, which Java producers use: blocks, each with its length in front.
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_MORE = 0x80


def decompress(batch: Any) -> None:
    """Decompress a kafka-python batch in place if kafka-python cannot. Imports pyarrow, which takes
    a quarter of a second, only for such a batch.

    Raises:
        ValueError, OSError: the data is corrupt.
    """
    codec = batch.compression_type
    if not batch.records_count or codec not in (_SNAPPY, *_STREAMS):
        return
    data = take_compressed(batch)
    if data is None:
        return
    import pyarrow as pa

    if codec == _SNAPPY:
        plain = b"".join(map(_decompress_snappy, _split_blocks(data)))
    else:
        plain = pa.CompressedInputStream(pa.BufferReader(data), _STREAMS[codec]).read()
    put_plain(batch, plain)


def _split_blocks(data: bytes) -> list[bytes]:
    if not data.startswith(_XERIAL):
        return [data]
    blocks, at = [], _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        blocks.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return blocks


def _decompress_snappy(block: bytes) -> bytes:
    """A block begins with its decompressed size as a varint."""
    import pyarrow as pa

    size = shift = 0
    for byte in block:
        size |= (byte & ~_MORE) << shift
        shift += 7
        if not byte & _MORE:
            break
    plain: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return plain
