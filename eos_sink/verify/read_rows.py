"""Reads a topic once, as an application does, and keeps a number for each row."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.row_check import KeyOrder
from eos_sink.testing.topic_scan import Offsets, ReaderError, Row, Scan, Span
from eos_sink.verify.question import Lens, Question
from eos_sink.verify.row_columns import Columns
from eos_sink.verify.time_bins import Timeline

_LOOK_AGAIN_S = 0.1
_EXAMPLES = 20
MOST_KEYS = 2_000_000
"""Keys whose order is checked."""


class Meter(Protocol):
    """Shows how far the reading has come."""

    def step(self, what: str, offsets: int) -> None:
        """Something begins that goes through so many offsets."""

    def at(self, offsets: int, rows: int) -> None: ...


class Gathering:
    """What a reader is given of a topic, from where the question says up to its end.

    Attributes:
        kept, starts, positions: offsets by partition: what is kept, read from, read to.
        ends: high watermarks, all asked at one time.
        rows: how many came of each partition.
        columns, order, timeline: accounts of them.
        nameless: rows whose identity could not be found; where some of them are.
        interrupted: with Ctrl-C.
    """

    def __init__(self, question: Question, meter: Meter) -> None:
        self._question, self._meter = question, meter
        self._lens = Lens(question)
        self._offsets = Offsets(question.source, question.stall_s)
        self._scan: Scan | None = None
        self.rows: Counter[int] = Counter()
        self.columns = Columns(grouped=self._lens.grouped)
        self.order = KeyOrder(MOST_KEYS, _EXAMPLES)
        self.timeline = Timeline()
        self.nameless = 0
        self.nameless_some: list[tuple[int, int]] = []
        self.interrupted = False
        self.ends = self._high(Deadline(question.stall_s))
        earliest = self._offsets.find_earliest()
        self.kept = {partition: earliest[partition] for partition in self.ends}
        self.starts = self._starts()
        self.positions = dict(self.starts)

    def read(self) -> None:
        """Read to the end; with `follow_s` also what comes meanwhile.

        Raises:
            ReaderError: the reader cannot go on.
        """
        follow = Deadline(self._question.follow_s)
        self._guarded(lambda: self._follow(follow))

    def read_on(self) -> None:
        """What has come since, for as long as transactions are waited for.

        Raises:
            ReaderError: the reader cannot go on.
        """
        follow = Deadline(self._question.wait_s)
        self._guarded(lambda: self._follow(follow))

    def grows(self) -> bool:
        """Whether somebody writes to the topic."""
        return self._high(Deadline(self._question.stall_s)) != self.ends

    def close(self) -> None:
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    @property
    def behind(self) -> dict[int, int]:
        """How many offsets readers wait for, where they do."""
        lag = {p: end - self.positions[p] for p, end in self.ends.items()}
        return {partition: offsets for partition, offsets in lag.items() if offsets > 0}

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except KeyboardInterrupt:
            self.interrupted = True

    def _follow(self, follow: Deadline) -> None:
        while True:
            self._read_to_ends()
            if follow.passed:
                return
            time.sleep(min(_LOOK_AGAIN_S, follow.left))
            self.ends = self._high(Deadline(self._question.stall_s))

    def _read_to_ends(self) -> None:
        """Up to what was the end, as soon as transactions that are open there have ended."""
        patience: Deadline | None = None
        begun = sum(self.starts.values())
        self._meter.step("reading", sum(self.ends.values()) - begun)
        while True:
            stable = self._stable()
            reach = {p: min(end, stable.get(p, 0)) for p, end in self.ends.items()}
            self._read(reach)
            self._meter.at(sum(self.positions.values()) - begun, self.rows.total())
            if not self.behind:
                return
            patience = patience or Deadline(self._question.wait_s)
            if patience.passed:
                if not stable:
                    # Nobody may be said to hold readers up when nobody was asked.
                    raise ReaderError("not every partition has a leader that answers")
                return
            time.sleep(_LOOK_AGAIN_S)

    def _read(self, reach: Mapping[int, int]) -> None:
        begun = sum(self.starts.values())
        spans = [
            Span(partition, self.positions[partition], stop)
            for partition, stop in reach.items()
            if self.positions[partition] < stop
        ]
        if not spans:
            return
        if self._scan is None:
            stall_s = self._question.stall_s
            self._scan = Scan(self._question.source, committed=True, stall_s=stall_s)
        try:
            for rows in self._scan.read(spans):
                self._take(rows)
                self.positions.update(self._scan.position)
                self._meter.at(sum(self.positions.values()) - begun, self.rows.total())
        finally:
            self.positions.update(self._scan.position)

    def _take(self, rows: Iterable[Row]) -> None:
        number, columns, counts = self._lens.number, self.columns, self.rows
        for row in rows:
            partition, offset = row.partition(), row.offset()
            counts[partition] += 1
            kind, time_ms = row.timestamp()
            if kind:
                self.timeline.add(time_ms)
            found = number(row)
            if found is None:
                self.nameless += 1
                if len(self.nameless_some) < _EXAMPLES:
                    self.nameless_some.append((partition, offset))
            else:
                columns.add(partition, offset, *found)
            if self._lens.ordered:
                self.order.add(partition, offset, row.key(), self._lens.order(row))

    def _high(self, deadline: Deadline) -> dict[int, int]:
        return self._select(self._offsets.wait_high(deadline))

    def _stable(self) -> dict[int, int]:
        """Empty: a leader does not answer."""
        try:
            return self._select(self._offsets.find_stable())
        except ReaderError:
            return {}

    def _select(self, offsets: Mapping[int, int]) -> dict[int, int]:
        only = self._question.partitions
        return {p: offset for p, offset in sorted(offsets.items()) if not only or p in only}

    def _starts(self) -> dict[int, int]:
        starts = dict(self.kept)
        if self._question.since_ms is not None:
            since = self._offsets.find_since(self._question.since_ms)
            for partition, end in self.ends.items():
                starts[partition] = since[partition] if since[partition] >= 0 else end
        if self._question.last is not None:
            for partition, end in self.ends.items():
                starts[partition] = max(starts[partition], end - self._question.last)
        return starts
