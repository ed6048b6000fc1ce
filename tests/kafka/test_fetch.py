"""What of a Fetch response a reader gets: committed records, whatever codec they are written in."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from kafka.record.default_records import DefaultRecordBatch

from eos_sink.errors import ClusterError
from eos_sink.kafka.fetch import Fetched, read_records
from eos_sink.kafka.wire import Leader
from tests.kafka.record_batches import ABORT, COMMIT, batch_bytes, batches, marker


def values(data: list[bytearray], *aborted: tuple[int, int]) -> list[bytes]:
    """Of the records that a reader gets, with aborted transactions by producer and offset."""
    rows = [SimpleNamespace(producer_id=p, first_offset=offset) for p, offset in aborted]
    found = Fetched(Leader(1, 0), 0, 0, 0, batches(*data), rows)
    return [record.value for record in found.records()]


def test_batches_of_aborted_transactions_are_passed_over() -> None:
    """Also if they lie between others; until the marker, since the producer goes on."""
    data = [
        batch_bytes(0, b"before", producer=7),
        marker(1, 7, COMMIT),
        batch_bytes(2, b"aborted", b"too", producer=7),
        batch_bytes(4, b"other", producer=8),
        batch_bytes(5, b"plain", producer=7, transactional=False),
        batch_bytes(6, b"aborted later", producer=7),
        marker(7, 7, ABORT),
        marker(8, 8, COMMIT),
        batch_bytes(9, b"after", producer=7),
        marker(10, 7, COMMIT),
        batch_bytes(11, b"aborted again", producer=8),
        marker(12, 8, ABORT),
    ]
    expected = [b"before", b"other", b"plain", b"after"]
    assert values(data, (8, 11), (7, 2)) == expected
    assert values(data[3:], (7, 2), (8, 11)) == expected[1:]


def test_markers_are_no_records() -> None:
    assert values([batch_bytes(0, b"1"), marker(1, 7, COMMIT), marker(2, 7, ABORT)]) == [b"1"]


def snappy(plain: bytes) -> bytes:
    """As librdkafka writes it."""
    data: bytes = pa.Codec("snappy").compress(plain, asbytes=True)
    return data


def snappy_java(plain: bytes) -> bytes:
    """In blocks, as SnappyOutputStream.java writes them."""
    blocks = [snappy(plain[at : at + 100]) for at in range(0, len(plain), 100)]
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def stream(codec: str) -> Callable[[bytes], bytes]:
    def compress(plain: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as out:
            out.write(plain)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    return compress


CODECS = [
    (1, gzip.compress),
    (2, snappy),
    (2, snappy_java),
    (3, stream("lz4")),
    (4, stream("zstd")),
]


def compressed(codec: int, compress: Callable[[bytes], bytes], *values: bytes) -> Any:
    plain, at = batch_bytes(5, *values), DefaultRecordBatch.HEADER_STRUCT.size
    data = plain[:at] + compress(bytes(plain[at:]))
    struct.pack_into(">h", data, DefaultRecordBatch.ATTRIBUTES_OFFSET, codec)
    struct.pack_into(">i", data, 8, len(data) - DefaultRecordBatch.AFTER_LEN_OFFSET)
    return batches(data)[0]


@pytest.mark.parametrize(("codec", "compress"), CODECS)
def test_a_batch_is_read_whatever_it_is_compressed_with(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    rows = [b"row %d" % number * 20 for number in range(300)]
    found = list(read_records(compressed(codec, compress, *rows)))
    assert [record.value for record in found] == rows
    assert [record.offset for record in found] == list(range(5, 305))
    assert [record.timestamp for record in found] == list(range(1_000, 1_300))
    assert {(record.key, tuple(record.headers)) for record in found} == {(b"k", (("h", b"1"),))}


@pytest.mark.parametrize(("codec", "compress"), CODECS)
def test_a_batch_that_is_corrupt_is_an_error(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(ClusterError):
        list(read_records(compressed(codec, lambda _: compress(b"no records" * 9)[:-12], b"1")))
