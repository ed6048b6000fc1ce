"""Reads a topic as an application does, and keeps a number for each row."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Protocol

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.row_check import KeyOrder
from eos_sink_lab.testing.topic_scan import Offsets, ReaderError, Row, Scan, Span
from eos_sink_lab.verify.row_columns import Columns
from eos_sink_lab.verify.row_identity import RowIdentifier
from eos_sink_lab.verify.verify_model import PartitionRead, VerifyOptions

MOST_KEYS = 2_000_000
"""Keys whose order is checked."""
_LOOK_AGAIN_S = 0.1
_EXAMPLES = 20
_FIRST_WIDTH_MS = 1_000
_MOST_BINS = 2_048


class Meter(Protocol):
    """Shows the progress."""

    def step(self, what: str, offsets: int) -> None:
        """Begin a step that reads this number of offsets."""

    def at(self, offsets: int, rows: int) -> None: ...


class Timeline:
    """Counts timestamps in bins, whose width doubles whenever there are too many of them."""

    def __init__(self) -> None:
        self.width_ms = _FIRST_WIDTH_MS
        self._bins: defaultdict[int, int] = defaultdict(int)

    def add(self, timestamp_ms: int) -> None:
        self._bins[timestamp_ms // self.width_ms] += 1
        while len(self._bins) > _MOST_BINS:
            self.width_ms *= 2
            narrow, self._bins = self._bins, defaultdict(int)
            for place, number in narrow.items():
                self._bins[place // 2] += number

    def bins(self) -> dict[int, int]:
        """The number in each bin, by its beginning in milliseconds since the epoch."""
        return {place * self.width_ms: number for place, number in sorted(self._bins.items())}


class TopicReader:
    """Reads what an application gets of a topic, from where the options say up to its end.

    Attributes:
        kept, starts, positions: offsets by partition: first kept, first read, next to read.
        ends: high watermarks, all from one request.
        rows: number of rows by partition.
        columns, order, timeline: what is kept of the rows.
        unidentified: number of rows without an identity.
        unidentified_at: places of the first ones.
        interrupted: Ctrl-C ended the reading.
    """

    def __init__(
        self, options: VerifyOptions, meter: Meter, wanted: Callable[[Row], bool] | None = None
    ) -> None:
        """Args:
        wanted: says which rows count; None: all.
        """
        self._options, self._meter, self._wanted = options, meter, wanted
        self._identifier = RowIdentifier(options)
        self._offsets = Offsets(options.source, options.stall_s)
        self.rows: Counter[int] = Counter()
        self.columns = Columns(grouped=options.group is not None)
        self.order = KeyOrder(MOST_KEYS, _EXAMPLES)
        self.timeline = Timeline()
        self.unidentified = 0
        self.unidentified_at: list[tuple[int, int]] = []
        self.interrupted = False
        self.ends = self._find_ends()
        earliest = self._offsets.find_earliest()
        self.kept = {partition: earliest[partition] for partition in self.ends}
        self.starts = self._find_starts()
        self.positions = dict(self.starts)
        self._scan = Scan(options.source, committed=True, stall_s=options.stall_s)

    def read(self, follow_s: float) -> None:
        """Read to the end, and what is written within `follow_s` seconds from now.

        Raises:
            ReaderError: the topic cannot be read.
        """
        follow = Deadline(follow_s)
        try:
            self._read_to_ends()
            while not follow.passed:
                time.sleep(min(_LOOK_AGAIN_S, follow.left))
                self.ends = self._find_same_ends()
                self._read_to_ends()
        except KeyboardInterrupt:
            self.interrupted = True

    def grows(self) -> bool:
        """True if the topic is being written."""
        return self._find_ends() != self.ends

    def count_aborted(self) -> dict[int, int]:
        """Read everything again with aborted rows, and count these by partition.

        Raises:
            ReaderError: the topic cannot be read.
        """
        spans = [Span(p, start, self.positions[p]) for p, start in self.starts.items()]
        seen: Counter[int] = Counter()
        try:
            for row in read_again(
                self._options, [spans], self._meter, "counting aborted rows", committed=False
            ):
                seen[row.partition()] += 1
        except KeyboardInterrupt:
            self.interrupted = True
            return {}
        return {partition: seen[partition] - self.rows[partition] for partition in self.starts}

    def close(self) -> None:
        self._scan.close()

    @property
    def partitions(self) -> list[PartitionRead]:
        """Return what was read so far."""
        return [
            PartitionRead(p, self.kept[p], start, self.positions[p], self.ends[p], self.rows[p])
            for p, start in self.starts.items()
        ]

    def _read_to_ends(self) -> None:
        """Read to the ends, and wait up to `wait_s` for transactions that are open before them."""
        patience: Deadline | None = None
        begun = sum(self.starts.values())
        self._meter.step("reading", sum(self.ends.values()) - begun)
        while True:
            stable = self._find_stable()
            stops = {p: min(end, stable.get(p, 0)) for p, end in self.ends.items()}
            spans = [
                Span(p, self.positions[p], stop)
                for p, stop in stops.items()
                if self.positions[p] < stop
            ]
            try:
                for rows in self._scan.read(spans) if spans else ():
                    self._take(rows)
                    self.positions.update(self._scan.position)
                    self._meter.at(sum(self.positions.values()) - begun, self.rows.total())
            finally:
                self.positions.update(self._scan.position)
            self._meter.at(sum(self.positions.values()) - begun, self.rows.total())
            if not any(each.behind for each in self.partitions):
                return
            patience = patience or Deadline(self._options.wait_s)
            if patience.passed:
                if not stable:
                    # A transaction must not be blamed for a partition without a leader.
                    raise ReaderError("not every partition has a leader that answers")
                return
            time.sleep(_LOOK_AGAIN_S)

    def _take(self, rows: Iterable[Row]) -> None:
        number, columns, counts = self._identifier.number, self.columns, self.rows
        ordered = self._options.order is not None
        for row in rows if self._wanted is None else filter(self._wanted, rows):
            partition, offset = row.partition(), row.offset()
            counts[partition] += 1
            kind, time_ms = row.timestamp()
            if kind:
                self.timeline.add(time_ms)
            found = number(row)
            if found is None:
                self.unidentified += 1
                if len(self.unidentified_at) < _EXAMPLES:
                    self.unidentified_at.append((partition, offset))
            else:
                columns.add(partition, offset, *found)
            if ordered:
                self.order.add(partition, offset, row.key(), self._identifier.order(row))

    def _find_ends(self) -> dict[int, int]:
        return self._select(self._offsets.wait_high(Deadline(self._options.stall_s)))

    def _find_same_ends(self) -> dict[int, int]:
        """Raises ReaderError if partitions were added or removed, which are not read."""
        ends = self._find_ends()
        changed = sorted(ends.keys() ^ self.starts.keys())
        if changed:
            raise ReaderError(
                f"partitions {', '.join(map(str, changed))} were added or removed while it was read"
            )
        return ends

    def _find_stable(self) -> dict[int, int]:
        """Last stable offsets; empty if a leader does not answer."""
        try:
            return self._select(self._offsets.find_stable())
        except ReaderError:
            return {}

    def _select(self, offsets: Mapping[int, int]) -> dict[int, int]:
        only = self._options.partitions
        return {p: offset for p, offset in sorted(offsets.items()) if not only or p in only}

    def _find_starts(self) -> dict[int, int]:
        starts = dict(self.kept)
        if self._options.since_ms is not None:
            since = self._offsets.find_since(self._options.since_ms)
            for partition, end in self.ends.items():
                starts[partition] = since[partition] if since[partition] >= 0 else end
        if self._options.last is not None:
            for partition, end in self.ends.items():
                starts[partition] = max(starts[partition], end - self._options.last)
        return starts


def read_again(
    options: VerifyOptions,
    rounds: Sequence[Sequence[Span]],
    meter: Meter,
    what: str,
    *,
    committed: bool,
) -> Iterator[Row]:
    """Yield the records of spans that were read before; at most one span a partition in a round.

    Raises:
        ReaderError: they cannot be read any more.
    """
    meter.step(what, sum(span.stop - span.start for spans in rounds for span in spans))
    offsets = records = 0
    with closing(Scan(options.source, committed=committed, stall_s=options.stall_s)) as scan:
        for spans in rounds:
            for rows in scan.read(list(spans)):
                yield from rows
                records += len(rows)
                done = sum(scan.position[span.partition] - span.start for span in spans)
                meter.at(offsets + done, records)
            offsets += sum(span.stop - span.start for span in spans)
