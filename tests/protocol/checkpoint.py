"""What Spark notes of a query in its checkpoint, and what a run of the query makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eos_sink.protocol.model import BatchId
from eos_sink.protocol.values import Offsets

INPUT = "in"
Ends = dict[int, int]
"""The next offset of each partition of the input."""
_STREAMS = itertools.count(1)
MOMENTS = itertools.count(1)
"""Seconds since 1970 at which Spark constructs batches and the sink plans them."""


class AnotherRun(Exception):
    """Another run of the query has written to its checkpoint."""


class Incomplete(Exception):
    """The offset log has the latest batch and not the one before."""


class DataLoss(Exception):
    """Partitions or rows are gone that a batch was to read (`failOnDataLoss`)."""


@dataclass
class Checkpoint:
    """The directory of a query. A batch that is in the offset log but not in the commit log is
    replayed.

    It implements `eos_sink.driver.checkpoint_files.CheckpointFiles`, as Spark writes these files.

    Attributes:
        stream: the id of the query, with the prefix of its numbering; None: there is no `metadata`.
        began: the offsets of the first batch's start.
        ends: of each batch in the offset log.
        times: when these were constructed, milliseconds.
        commits: the batches in the commit log.
        state: whether the query has state.
        others: whether it reads other sources, too.
        youngest: when the youngest of the batches of a number was constructed.
    """

    stream: str | None = "stream-1"
    began: Ends = field(default_factory=dict)
    ends: dict[int, Ends] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    state: bool = False
    others: bool = False
    youngest: dict[int, int] = field(default_factory=dict)

    def delete(self) -> None:
        """A run that goes on writes its next files below the same path."""
        self.stream, self.began, self.ends, self.commits = None, {}, {}, set()

    @property
    def number(self) -> int:
        """The batch that a run which starts now runs first."""
        latest = self.latest_batch()
        return 0 if latest is None else latest + (latest == self.latest_commit())

    def start(self, number: int) -> Ends:
        """The offsets at which a batch begins."""
        return self.ends[number - 1] if number else self.began

    def stream_id(self) -> str | None:
        return self.stream

    def latest_batch(self) -> int | None:
        return max(self.ends, default=None)

    def latest_commit(self) -> int | None:
        return max(self.commits, default=None)

    def end_offsets(self, batch: int) -> Offsets | None:
        return _of_input(self.ends.get(batch))

    def initial_offsets(self) -> Offsets | None:
        return _of_input(self.began)

    def reads_others(self, batch: int) -> bool:
        return self.others and batch in self.ends

    def has_state(self) -> bool:
        return self.state and bool(self.ends)

    def constructed_ms(self, batch: int) -> int | None:
        return self.times.get(batch, 0) if batch in self.ends else None

    def shown(self, path: str = "") -> str:
        return f"/checkpoint/{path}"


class Progress:
    """Where a run of a query is. It reads the checkpoint at its start only, and goes on whatever
    becomes of the directory.

    Args:
        starting: the option `startingOffsets`, which counts for a new checkpoint.
        write: writes a file, or does so later.

    Attributes:
        before: the offsets at which the batch begins.
        ends: the offsets at which it ends, once it is constructed.

    Raises:
        Incomplete: Spark refuses the checkpoint.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        starting: Mapping[int, int] | None = None,
        write: Callable[[Callable[[], None]], None] = lambda file: file(),
    ) -> None:
        self._checkpoint, self._write = checkpoint, write
        latest = checkpoint.latest_batch()
        if checkpoint.stream is None:
            checkpoint.stream = f"stream-{next(_STREAMS)} anew"
        if latest and latest - 1 not in checkpoint.ends:
            raise Incomplete
        self._stream, self._number = checkpoint.stream, checkpoint.number
        self._begun_ms = next(MOMENTS) * 1000
        if latest is None and starting and not checkpoint.began:
            checkpoint.began = dict(starting)
        self.before = checkpoint.start(self._number)
        self.ends = checkpoint.ends.get(self._number)

    def begin(self, ends: Ends) -> BatchId:
        """Note the next batch in the offset log, unless it is there since the start."""
        if self.ends is None:
            self.check_alone()
            self.ends, number, constructed_ms = ends, self._number, next(MOMENTS) * 1000
            self._checkpoint.youngest[number] = self._begun_ms = constructed_ms

            def note() -> None:
                self._check_youngest(number, constructed_ms)
                if number in self._checkpoint.ends:
                    raise AnotherRun
                self._checkpoint.ends[number] = ends
                self._checkpoint.times[number] = constructed_ms

            self._write(note)
        return BatchId(self._stream, self._number)

    def check_alone(self) -> None:
        """Two live runs of one batch, whose files come late, are a known limit (docs/design.md).

        Raises:
            AnotherRun: a newer one has begun this batch, too.
        """
        self._check_youngest(self._number, self._begun_ms)

    def _check_youngest(self, number: int, begun_ms: int) -> None:
        if self._checkpoint.youngest.get(number, 0) > begun_ms:
            raise AnotherRun

    def commit(self) -> None:
        """Note in the commit log that the batch has succeeded."""
        assert self.ends is not None
        number = self._number

        def note() -> None:
            if number in self._checkpoint.commits:
                raise AnotherRun
            self._checkpoint.commits.add(number)

        self._write(note)
        self.before, self.ends, self._number = self.ends, None, self._number + 1


def _of_input(offsets: Mapping[int, int] | None) -> Offsets | None:
    return None if offsets is None else {(INPUT, p): at for p, at in offsets.items()}
