"""Record batches as brokers store them: version 2 of Kafka's message format (KIP-98). Pure.

From DefaultRecordBatch and DefaultRecord in Kafka's source. numpy and pyarrow are imported for
`Rows` only: a planner writes single records, and starts in a fraction of a second.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import google_crc32c

from eos_sink.kafka.interfaces import ProducerIdentity

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from eos_sink.kafka.rows import Int64s, Row, Rows

# Base offset, length, partition leader epoch, magic, CRC.
_BEFORE_CRC = struct.Struct(">qiibI")
# Attributes, last offset delta, first and last time, producer id and epoch, sequence, records.
_AFTER_CRC = struct.Struct(">hiqqqhii")
HEADER_BYTES = _BEFORE_CRC.size + _AFTER_CRC.size
_MAGIC = 2
_UNCOUNTED = 9  # Of a batch's length: all that lies between the length and the attributes.
_TRANSACTIONAL = 1 << 4
_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# At most: length, attributes, time, offset, lengths of key and value, number of headers.
_FIELD_BYTES = 5 + 1 + 10 + 5 + 5 + 5 + 5
_DEFAULT_LEVEL = -1


@dataclass(frozen=True)
class Compression:
    """How the records of a batch are compressed.

    Attributes:
        codec: a value of `compression.type`.
        level: `compression.level`; -1 is the codec's default.
    """

    codec: str = "none"
    level: int = _DEFAULT_LEVEL

    @property
    def bits(self) -> int:
        """Of a batch's attributes."""
        return _CODECS[self.codec]

    def compress(self, data: bytes) -> bytes:
        if self.codec == "none":
            return data
        if self.codec == "gzip":
            # 31: with gzip's header.
            packer = zlib.compressobj(min(self.level, zlib.Z_BEST_COMPRESSION), wbits=31)
            return packer.compress(data) + packer.flush()
        import pyarrow as pa

        if self.codec == "lz4":
            return _compress_lz4(data, self.level)
        level = None if self.level == _DEFAULT_LEVEL or self.codec == "snappy" else self.level
        packed: bytes = pa.Codec(self.codec, level).compress(data, asbytes=True)
        return packed


UNCOMPRESSED = Compression()


@dataclass(frozen=True)
class EncodedRecords:
    """Records as they follow a batch's header, not compressed.

    Attributes:
        first_ms: time of the first record, milliseconds since the epoch.
        last_ms: the latest time.
    """

    data: bytes
    count: int
    first_ms: int
    last_ms: int


def make_batch(
    records: EncodedRecords, producer: ProducerIdentity, sequence: int, compression: Compression
) -> bytes:
    """A batch of a transaction, for one partition.

    Args:
        sequence: of the first record, counted for each partition from 0 at each new epoch.
        compression: is left out if it saves nothing.
    """
    data, bits = compression.compress(records.data), compression.bits
    if len(data) >= len(records.data):
        data, bits = records.data, 0
    fields = _AFTER_CRC.pack(
        _TRANSACTIONAL | bits,
        records.count - 1,
        records.first_ms,
        records.last_ms,
        producer.producer_id,
        producer.epoch,
        sequence,
        records.count,
    )
    counted = fields + data
    crc = google_crc32c.value(counted)
    return _BEFORE_CRC.pack(0, len(counted) + _UNCOUNTED, -1, _MAGIC, crc) + counted


def measure_record(row: Row) -> int:
    """The most bytes that the record takes, without its headers' lengths."""
    value, key, _, headers, _, _ = row
    size = _FIELD_BYTES + len(value or b"") + len(key or b"")
    for name, content in headers or ():
        size += len(name.encode()) + len(content or b"") + 10
    return size


def measure_rows(rows: Rows) -> Int64s:
    """The most bytes that the record of each row takes. The rows have no headers."""
    return rows.sizes + _FIELD_BYTES


def encode_records(records: Sequence[Row], now_ms: int) -> EncodedRecords:
    """Records one by one.

    Args:
        now_ms: the time of records without one.
    """
    times = [now_ms if row[5] is None else row[5] for row in records]
    parts: list[bytes] = []
    for number, (value, key, _, headers, _, _) in enumerate(records):
        fields = [
            b"\0",
            _varint(times[number] - times[0]),
            _varint(number),
            *_with_length(key),
            *_with_length(value),
            _varint(len(headers or ())),
        ]
        for name, content in headers or ():
            fields += [*_with_length(name.encode()), *_with_length(content)]
        record = b"".join(fields)
        parts += (_varint(len(record)), record)
    return EncodedRecords(b"".join(parts), len(records), times[0], max(times))


def encode_rows(rows: Rows, edges: Int64s, now_ms: int) -> list[EncodedRecords]:
    """Rows without headers, in consecutive runs for one batch each.

    0.3 us a row; one by one they take 4 (measured with 100 bytes a row).

    Args:
        edges: where each run starts, and at the end the number of rows.
        now_ms: the time of rows without one.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from eos_sink.kafka.rows import find_lengths

    starts, counts = edges[:-1], np.diff(edges)
    times = np.full(len(rows), now_ms)
    if rows.timestamp is not None:
        times = pc.fill_null(rows.timestamp, now_ms).to_numpy(zero_copy_only=False)
    value_lengths, key_lengths = find_lengths(rows.value), np.full(len(rows), -1)
    if rows.key is not None:
        key_lengths = find_lengths(rows.key)
    value_head = _varints(value_lengths)
    head = _joined(
        (np.zeros((len(rows), 1), np.uint8), np.ones((len(rows), 1), bool)),
        _varints(times - np.repeat(times[starts], counts)),
        _varints(np.arange(len(rows)) - np.repeat(starts, counts)),
        _varints(key_lengths),
    )
    lengths = head[1].sum(1) + value_head[1].sum(1) + 1
    lengths += rows.sizes
    columns = [
        _to_arrow(_joined(_varints(lengths), head)),
        rows.key,
        _to_arrow(value_head),
        rows.value,
    ]
    kind = pa.large_binary()
    # No headers; then the separator.
    ends = pa.scalar(b"\0", kind), pa.scalar(b"", kind)
    encoded = pc.binary_join_element_wise(
        *(pc.cast(column, kind) for column in columns if column is not None),
        *ends,
        null_handling="replace",
        null_replacement="",
    )
    _, offsets, data = encoded.buffers()
    cuts = np.frombuffer(offsets, np.int64, len(rows) + 1)[edges].tolist()
    view = memoryview(data)
    return [
        EncodedRecords(bytes(view[cut:end]), count, first, last)
        for cut, end, count, first, last in zip(
            cuts[:-1],
            cuts[1:],
            counts.tolist(),
            times[starts].tolist(),
            np.maximum.reduceat(times, starts).tolist(),
            strict=True,
        )
    ]


if TYPE_CHECKING:
    Digits = tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]
    """A row of bytes for each row, and which of them are used."""


def _varints(numbers: Int64s) -> Digits:
    """Zigzag varints, as protocol buffers have them."""
    import numpy as np

    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = max(1, -(-int(zigzag.max()).bit_length() // 7))
    rest = zigzag[:, None] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    used = rest > 0
    used[:, 0] = True
    digits = (rest & np.uint64(0x7F)).astype(np.uint8)
    digits[:, :-1] |= used[:, 1:].astype(np.uint8) << 7
    return digits, used


def _joined(*parts: Digits) -> Digits:
    import numpy as np

    return np.hstack([part[0] for part in parts]), np.hstack([part[1] for part in parts])


def _to_arrow(digits: Digits) -> Any:
    import numpy as np
    import pyarrow as pa

    content, used = digits
    offsets = np.concatenate(([0], np.cumsum(used.sum(1)))).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content[used])]
    return pa.Array.from_buffers(pa.large_binary(), len(content), buffers)


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _with_length(content: bytes | None) -> tuple[bytes, bytes]:
    return (_varint(-1), b"") if content is None else (_varint(len(content)), content)


# A frame's magic number and descriptor (independent blocks of at most 64 kB, no checksums), with
# the checksum of the descriptor.
_LZ4_FRAME = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 1 << 16
_LZ4_STORED = 1 << 31


def _compress_lz4(data: bytes, level: int) -> bytes:
    """A frame as Kafka reads it. Arrow's own frames have blocks that depend on each other if there
    are more than one, which Kafka's Lz4BlockInputStream refuses."""
    import pyarrow as pa

    codec = pa.Codec("lz4_raw", None if level == _DEFAULT_LEVEL else max(level, 1))
    parts = [_LZ4_FRAME]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = codec.compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(block) | _LZ4_STORED), block)
    return b"".join([*parts, bytes(4)])
