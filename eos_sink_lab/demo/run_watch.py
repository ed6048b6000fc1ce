"""Watches a run from outside, through Kafka alone."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from confluent_kafka.admin import AdminClient

from eos_sink_lab.testing.row_check import json_field
from eos_sink_lab.testing.topic_audit import Audit, Checker, audit
from eos_sink_lab.testing.topic_scan import Row, Scan, Source

_BURST = 1_000
_QUIET_LOOKS = 3
_QUIET_S = 0.06
_FIND_TIMEOUT_S = 10.0

_find_row = json_field("row")


class Watch:
    """Readers of one run: what is written, what is visible, what is decided.

    Args:
        source: the run's topic.
        batches: rows of each batch.
        log_topic: the decision log; None for a sink without one.

    Attributes:
        records: records in the topic, visible or not.
    """

    def __init__(self, source: Source, batches: tuple[int, ...], log_topic: str | None) -> None:
        self._source = source
        self._log_topic = log_topic
        self._batches = batches
        self._ends = list(accumulate(batches))
        self._written = Scan(source, committed=False)
        self._visible = Checker(source, self._identify)
        self._log: Scan | None = None
        self._decisions = 0
        self.records = 0
        self._by_driver: dict[int, int] = {}
        self._decisions_before: dict[int, int] = {}

    def look(self, wait_s: float) -> None:
        """Read what is new; waits up to `wait_s` seconds for it."""
        written = self._written.follow(wait_s)
        for record in written:
            self.records += 1
            row = self._identify(record)
            if row is None:
                continue
            batch = bisect_right(self._ends, row)
            if batch not in self._by_driver:
                self._by_driver[batch] = 0
                self._decisions_before[batch] = self._decisions
            self._by_driver[batch] += 1
        # In a burst the moment of the strike matters more than the progress.
        if len(written) < _BURST:
            self._visible.look(0)
        if self._log is not None:
            self._decisions += len(self._log.follow(0))

    def drain(self) -> None:
        """Read until nothing more arrives; for a driver that is frozen or ended."""
        quiet = 0
        while quiet < _QUIET_LOOKS:
            before = (self.records, self._visible.check.records, self._decisions)
            self.look(_QUIET_S)
            now = (self.records, self._visible.check.records, self._decisions)
            quiet = quiet + 1 if now == before else 0

    def new_life(self) -> None:
        """Forget what was written so far: another driver wrote it."""
        self.drain()
        self._by_driver.clear()
        self._decisions_before.clear()

    def find_log(self) -> None:
        """Watch the decision log from now on, if it exists."""
        if self._log_topic is None or self._log is not None:
            return
        source = Source(self._source.bootstrap, self._log_topic)
        found = AdminClient(source.client()).list_topics(timeout=_FIND_TIMEOUT_S)
        topic = found.topics.get(self._log_topic)
        if topic is not None and topic.partitions:
            self._log = Scan(source, committed=True)

    def audit(self, timeout_s: float) -> Audit:
        """Read the whole topic again with new readers.

        Raises:
            ReaderError: a reader did not get to the end.
        """
        return audit(self._visible, sum(self._batches), timeout_s)

    @property
    def decides(self) -> bool:
        """True if the sink has a decision log."""
        return self._log_topic is not None

    @property
    def seen(self) -> int:
        """Visible rows."""
        return len(self._visible.check.rows)

    @property
    def doubled(self) -> int:
        """Visible records beyond the first of their row."""
        return self._visible.check.doubled

    @property
    def whole_batches(self) -> int:
        """Batches of which every row is visible."""
        return sum(self.visible(batch) == rows for batch, rows in enumerate(self._batches))

    def visible(self, batch: int) -> int:
        """Rows of the batch that are visible."""
        end = self._ends[batch]
        return self._visible.check.rows.count(end - self._batches[batch], end)

    def current_batch(self) -> int | None:
        """The batch that this driver writes; None before its first row."""
        return max(self._by_driver, default=None)

    def written(self, batch: int) -> int:
        """Rows of the batch that this driver has on the brokers."""
        return self._by_driver.get(batch, 0)

    def whole(self, batch: int) -> bool:
        """True if all rows of the batch are on the brokers."""
        return self.written(batch) >= self._batches[batch]

    def decided(self, batch: int) -> bool:
        """True if all rows are there and the sink, if it decides, has decided on them."""
        if self._log_topic is None:
            return self.whole(batch)
        before = self._decisions_before.get(batch, self._decisions)
        return self.whole(batch) and self._decisions > before

    def close(self) -> None:
        self._written.close()
        self._visible.close()
        if self._log is not None:
            self._log.close()

    def _identify(self, record: Row) -> int | None:
        """The number of a row of the input."""
        row = _find_row(record)
        return row if row is not None and 0 <= row < self._ends[-1] else None
