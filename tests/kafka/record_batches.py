"""Record batches as a Fetch response has them."""

from __future__ import annotations

import struct
from typing import Any

from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

ABORT, COMMIT = 0, 1


def batch_bytes(
    offset: int, *values: bytes, producer: int = -1, epoch: int = 0, transactional: bool = True
) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=transactional,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=0,
        batch_size=1 << 20,
    )
    for number, value in enumerate(values):
        builder.append(number, 1_000 + number, b"k", value, [("h", b"1")])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, offset)
    return data


def marker(offset: int, producer: int, kind: int) -> bytearray:
    """A control batch (EndTransactionMarker.java)."""
    plain = batch_bytes(offset, struct.pack(">hi", 0, 1), producer=producer)
    key, at = struct.pack(">hh", 0, kind), DefaultRecordBatch.HEADER_STRUCT.size
    record = bytes([0, 0, 0, len(key) << 1]) + key + bytes([6 << 1]) + bytes(6) + bytes([0])
    data = plain[:at] + bytes([len(record) << 1]) + record
    flags = DefaultRecordBatch.TRANSACTIONAL_MASK | DefaultRecordBatch.CONTROL_MASK
    struct.pack_into(">h", data, DefaultRecordBatch.ATTRIBUTES_OFFSET, flags)
    struct.pack_into(">i", data, 8, len(data) - DefaultRecordBatch.AFTER_LEN_OFFSET)
    return data


def batches(*data: bytearray) -> list[Any]:
    records, found = MemoryRecords(b"".join(data)), []
    while (batch := records.next_batch()) is not None:
        found.append(batch)
    return found
