"""Leave out the rows of a decided batch that are visible already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from eos_sink.protocol.model import RowDigest
from eos_sink.rows.fingerprint import RowDigester
from eos_sink.rows.rows import Rows


class MissingRows:
    """Of a task's Arrow batches, the rows that are not visible.

    Args:
        visible: the plan's.
        to_rows: a batch as rows for Kafka.
    """

    def __init__(
        self, visible: bytes, to_rows: Callable[[pa.RecordBatch], Rows], *, topic_varies: bool
    ) -> None:
        self._visible = np.frombuffer(visible, "<u8")
        self._to_rows = to_rows
        self._all = RowDigester(topic_varies=topic_varies)

    def select(self, data: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in data:
            hashes = self._all.add(self._to_rows(part))
            places = np.searchsorted(self._visible, hashes)
            places = np.minimum(places, len(self._visible) - 1)
            yield part.filter(pa.array(self._visible[places] != hashes))
            del part

    @property
    def digest(self) -> RowDigest:
        """Of all rows, visible or not."""
        return self._all.digest
