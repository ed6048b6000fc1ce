"""Record batches, read back by kafka-python."""

from __future__ import annotations

import random
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from eos_sink.kafka.interfaces import ProducerIdentity
from eos_sink.kafka.record_batches import (
    Compression,
    EncodedRecords,
    encode_records,
    encode_rows,
    make_batch,
    measure_record,
    measure_rows,
)
from eos_sink.kafka.rows import Row, Rows

PRODUCER = ProducerIdentity(7_000_000_000, 3)
NOW = 1_700_000_000_123
# Lengths on both sides of each varint's end.
SIZES = [0, 1, 63, 64, 8191, 8192, 70_000]
_CHANCE = random.Random(3)


def row(
    value: bytes | None = None,
    key: bytes | None = None,
    timestamp: int | None = None,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> Row:
    return value, key, "t", headers, None, timestamp


def some_rows(count: int) -> list[Row]:
    contents = [None, b"", *(_CHANCE.randbytes(size) for size in (1, 5, 63, 64, 200))]
    times = [None, 1, NOW - 5, NOW + 86_400_000]
    return [
        row(_CHANCE.choice(contents), _CHANCE.choice(contents), _CHANCE.choice(times))
        for _ in range(count)
    ]


def read(batch: bytes) -> list[Row]:
    """What kafka-python reads, once it has checked the batch."""
    found = DefaultRecordBatch(batch)
    assert found.validate_crc()
    assert found.size_in_bytes == len(batch)
    assert found.is_transactional
    assert (found.producer_id, found.producer_epoch) == (PRODUCER.producer_id, PRODUCER.epoch)
    records = list(found)
    assert [record.offset for record in records] == list(range(len(records)))
    assert found.last_offset_delta == len(records) - 1
    assert found.first_timestamp == records[0].timestamp
    assert found.max_timestamp == max(record.timestamp for record in records)
    return [row(each.value, each.key, each.timestamp, each.headers) for each in records]


def timed(rows: list[Row]) -> list[Row]:
    """With the time and the headers that a reader gets."""
    return [row(each[0], each[1], each[5] or NOW, each[3] or []) for each in rows]


def test_records_are_read_as_they_were_written() -> None:
    rows = [*some_rows(200), *(row(b"v" * size, b"k" * size) for size in SIZES)]
    rows += [row(headers=[("h", b"1"), ("h", None), ("grün", b"")]), row(headers=[])]
    encoded = encode_records(rows, NOW)
    assert read(make_batch(encoded, PRODUCER, 5, Compression())) == timed(rows)


def test_a_batch_is_what_kafka_python_writes() -> None:
    builder = DefaultRecordBatchBuilder(
        2, 0, True, PRODUCER.producer_id, PRODUCER.epoch, 9, 1 << 20
    )
    rows = some_rows(50)
    for number, (value, key, _, _, _, timestamp) in enumerate(rows):
        builder.append(number, timestamp or NOW, key, value, [])
    ours = make_batch(encode_records(rows, NOW), PRODUCER, 9, Compression())
    theirs = bytes(builder.build())
    # Bytes 12 to 15, the leader's epoch, are for the broker.
    assert (ours[:12], ours[16:]) == (theirs[:12], theirs[16:])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_rows_are_encoded_as_records_one_by_one_are(kind: pa.DataType) -> None:
    rows = [*some_rows(500), *(row(b"v" * size, b"k" * size) for size in SIZES)]
    whole = Rows.of([row(b"cut off"), *rows, row(b"cut off")])
    columns = Rows(whole.value.cast(kind), whole.key.cast(kind), "t", timestamp=whole.timestamp)
    edges = [0, 1, 3, 250, len(rows)]
    found = encode_rows(columns.slice(1, len(rows)), np.array(edges), NOW)
    parts = [rows[start:end] for start, end in pairwise(edges)]
    assert found == [encode_records(part, NOW) for part in parts]


def test_rows_without_columns_of_keys_and_times_are_encoded() -> None:
    rows = Rows(pa.array([b"a", None, b""]), topic="t")
    (found,) = encode_rows(rows, np.array([0, 3]), NOW)
    assert found == encode_records([row(b"a"), row(None), row(b"")], NOW)


def test_no_record_takes_more_than_was_measured() -> None:
    rows = [*some_rows(100), *(row(b"v" * size, b"k" * size, 1) for size in SIZES)]
    rows.append(row(b"v", headers=[("name" * 100, b"x" * 500), ("n", None)]))
    for each in rows:
        assert len(encode_records([each], NOW).data) <= measure_record(each)
    plain = rows[:-1]
    assert measure_rows(Rows.of(plain)).tolist() == [measure_record(each) for each in plain]


@pytest.mark.parametrize("level", [-1, 1, 12])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_marked_and_come_back(codec: str, level: int) -> None:
    # More than one block of 64 kB, with one that cannot be made smaller.
    rows = [row(b"a" * 150_000), row(_CHANCE.randbytes(70_000)), row(b"b" * 10)]
    encoded = encode_records(rows, NOW)
    batch = make_batch(encoded, PRODUCER, 0, Compression(codec, level))
    found = DefaultRecordBatch(batch)
    assert found.validate_crc()
    codes = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
    assert found.compression_type == codes[codec]
    packed = batch[61:]
    assert len(packed) < len(encoded.data)
    plain = pa.Codec(codec).decompress(packed, len(encoded.data), asbytes=True)
    assert plain == encoded.data


def test_blocks_of_lz4_do_not_depend_on_each_other() -> None:
    """Kafka's reader refuses a frame whose flag says that they do."""
    frame = Compression("lz4").compress(b"a" * 200_000)
    magic, flags = struct.unpack_from("<IB", frame)
    assert (magic, flags & 0x20) == (0x184D2204, 0x20)


def test_what_compression_does_not_make_smaller_stays_as_it_is() -> None:
    encoded = encode_records([row(_CHANCE.randbytes(500))], NOW)
    batch = make_batch(encoded, PRODUCER, 0, Compression("gzip"))
    assert DefaultRecordBatch(batch).compression_type == 0
    assert isinstance(encoded, EncodedRecords)
    assert batch.endswith(encoded.data)
