"""Rows against the declared destinations, an Arrow batch at a time and before any of it is sent."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from eos_sink.kafka_config.destinations import Destinations


def check_rows(batch: pa.RecordBatch, topic: str | None, declared: Destinations) -> None:
    """Args:
        batch: rows of the query.
        topic: the option `topic`, or None for the column.
        declared: the option `eos.destinations`.

    Raises:
        ConfigurationError: a row goes elsewhere.
    """
    for place in _places(batch, topic):
        if not declared.allow(*place):
            raise declared.make_error(*place)


def _places(batch: pa.RecordBatch, topic: str | None) -> Iterable[tuple[str, int | None]]:
    """Where the rows go, each place once."""
    by_partition = "partition" in batch.schema.names
    if topic is not None:
        numbers = pc.unique(batch.column("partition")).to_pylist() if by_partition else [None]
        return [(topic, number) for number in numbers]
    names = ["topic", "partition"] if by_partition else ["topic"]
    found = pa.Table.from_batches([batch.select(names)]).group_by(names).aggregate([])
    # A row without a topic is somebody else's error.
    return [
        (row["topic"], row.get("partition"))
        for row in found.to_pylist()
        if row["topic"] is not None
    ]
