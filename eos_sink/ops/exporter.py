"""The metrics of all queries in the text format of Prometheus; the only user of its client."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from eos_sink.errors import EosSinkError
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.metrics.names import STEP_SECONDS, Count, Gauge
from eos_sink.ops.documents import query_document
from eos_sink.ops.observer import Observer
from eos_sink.ops.status import Driver, Ends, QueryStatus, Snapshot, count_held
from eos_sink.protocol.outcome import Outcome

_CLOSE_S = 1.0
_MS = 1000
_READABLE = 0o644
_UNSETTLED = {
    Outcome.COMMITTED.value: 0,
    Outcome.ACCEPTED.value: 0,
    Outcome.OPEN.value: 1,
    Outcome.LOST.value: 1,
    Outcome.IN_DOUBT.value: 1,
}
_ALIVE = {Driver.LIVE.value: 1, Driver.ENDED.value: 1, Driver.GONE.value: 0}

Delays = dict[str, tuple[int, float]]
"""By topic: the offsets that readers wait for, and for how many seconds a partition has held them
up: its last stable offset has not moved, with more behind it."""


class ReaderDelays:
    """Measures from one scrape to the next how far and how long readers of topics are held up."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, int], float] = {}

    def update(self, ends: Ends, now: float) -> Delays:
        """Args:
        now: seconds of a monotonic clock.
        """
        self._since = {
            key: self._since.get(key, now)
            for topic, partitions in ends.items()
            for each in partitions
            if each.end > each.stable
            for key in [(topic, each.partition, each.stable)]
        }
        held: dict[str, float] = {}
        for (topic, *_), since in self._since.items():
            held[topic] = max(held.get(topic, 0.0), now - since)
        return {
            topic: (count_held(partitions), held.get(topic, 0.0))
            for topic, partitions in sorted(ends.items())
        }


@dataclass(frozen=True)
class Scrape(Collector):
    """The result of one scrape.

    Attributes:
        snapshot: None if the cluster did not answer; `error` says why.
        seconds: how long the scrape took.
    """

    snapshot: Snapshot | None
    delays: Delays
    seconds: float
    error: str = ""

    def collect(self) -> Iterator[Metric]:
        """Every metric that has a sample. Without an answer of the cluster, only that."""
        families, snapshot = _Families(), self.snapshot
        families.add(Gauge.UP, int(snapshot is not None))
        families.add(Gauge.DURATION, self.seconds)
        if snapshot is not None:
            # A log that is gone is a part of the cluster that could not be read.
            families.add(Gauge.UNSEEN, len(snapshot.problems) + bool(snapshot.unrecorded))
            families.add(Gauge.UNREADABLE, len(snapshot.unreadable))
            unknown = snapshot.unknown
            families.add(Gauge.UNKNOWN_OPEN, None if unknown is None else len(unknown))
            for topic, (delay, held) in self.delays.items():
                families.add(Gauge.READER_DELAY, delay, topic)
                families.add(Gauge.READER_HELD, held, topic)
            for status in snapshot.queries:
                families.add_query(status, snapshot.at_ms)
        return families.all()

    def text(self) -> str:
        """The metrics as Prometheus reads them."""
        return generate_latest(self).decode()


class Scraper(Collector):
    """Scrapes a cluster on demand, at most once per interval.

    Args:
        connect: makes clients of the cluster; tried again if it fails, since a token or a store
            may be missing for now.
        prefix: of queries whose records cannot be read.
        timeout: seconds that one scrape may take.
        interval: seconds for which a scrape serves all requests.
        clock: seconds of a monotonic clock.
        on_error: called with the reason when scrapes begin to fail, or fail for another one.
    """

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        connect: Callable[[], Admin],
        prefix: str,
        timeout: float,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connect = connect
        self._prefix = prefix
        self._timeout = timeout
        self._interval = interval
        self._clock = clock
        self._on_error = on_error
        self._admin: Admin | None = None
        self._observer: Observer | None = None
        self._delays = ReaderDelays()
        self._scraping = Lock()
        self._latest: Scrape | None = None
        self._at = 0.0

    def describe(self) -> Iterable[Metric]:
        """The families without samples, which `/metrics?name[]=` looks names up in; registration
        must not scrape."""
        return _Families().declare()

    def collect(self) -> Iterator[Metric]:
        return self.scrape().collect()

    def scrape(self) -> Scrape:
        """A new scrape or, within the interval, the latest one. Concurrent calls share one; an
        error of the cluster is in the result."""
        with self._scraping:
            if self._latest is None or self._clock() - self._at >= self._interval:
                before, self._latest = self._latest, self._scrape()
                if self._latest.error and (before is None or before.error != self._latest.error):
                    self._on_error(self._latest.error)
                self._at = self._clock()
            return self._latest

    def close(self) -> None:
        """Close the clients, unless a long scrape is running."""
        if self._scraping.acquire(timeout=_CLOSE_S):
            if self._admin is not None:
                self._admin.close()
            self._scraping.release()

    def _scrape(self) -> Scrape:
        begun, deadline = self._clock(), Deadline(self._timeout)
        try:
            if self._observer is None:
                self._admin = self._connect()
                self._observer = Observer(self._admin, self._prefix)
            snapshot = self._observer.look(deadline)
        except EosSinkError as error:
            return Scrape(None, {}, self._clock() - begun, str(error))
        now = self._clock()
        return Scrape(snapshot, self._delays.update(snapshot.ends, now), now - begun)


class _Families:
    """Metric families, each created with its first sample."""

    def __init__(self) -> None:
        self._found: dict[Count | Gauge, CounterMetricFamily | GaugeMetricFamily] = {}
        self._steps = SummaryMetricFamily(
            STEP_SECONDS,
            "Time of each step of batches that were decided, and how often it was taken.",
            labels=("query", "step"),
        )

    def add(self, name: Count | Gauge, value: float | None, *labels: str) -> None:
        """Add a sample, unless the value is not known."""
        if value is not None:
            self._family(name).add_metric(labels, value)

    def declare(self) -> Iterator[Metric]:
        yield from map(self._family, (*Count, *Gauge))
        yield self._steps

    def _family(self, name: Count | Gauge) -> CounterMetricFamily | GaugeMetricFamily:
        if name not in self._found:
            family = CounterMetricFamily if isinstance(name, Count) else GaugeMetricFamily
            self._found[name] = family(name.prometheus, name.meaning, labels=name.labels)
        return self._found[name]

    def add_query(self, status: QueryStatus, now_ms: int) -> None:
        """Render the query's document, and the figures of its record that only metrics show."""
        document, query = query_document(status, now_ms), status.query
        if document["batch"] is not None:
            self.add(Gauge.LAST_DECISION, _seconds(document["decided_at_ms"]), query)
            self.add(Gauge.LAST_ROWS, document["rows"], query)
            self.add(Gauge.LAST_BYTES, document["bytes"], query)
            self.add(Gauge.LAST_PARTITIONS, document["partitions"], query)
        if document["outcome"] in _UNSETTLED:
            self.add(Gauge.UNSETTLED, _UNSETTLED[document["outcome"]], query)
            self.add(Gauge.LOST, len(document["lost"]), query)
            self.add(Gauge.DOUBTFUL, len(document["in_doubt"]), query)
        if (open_ := document["open"]) is not None:
            decided = document["open_decided"]
            self.add(Gauge.OPEN, decided, query, "true")
            self.add(Gauge.OPEN, len(open_) - decided, query, "false")
            self.add(Gauge.OLDEST, max((each["age_ms"] for each in open_), default=0) / _MS, query)
        # The driver's own has another timeout, and alerts compare this with that of the tasks.
        left = [each["left_ms"] for each in open_ or () if each["partition"] is not None]
        if left:
            self.add(Gauge.LEAST_LEFT, min(left) / _MS, query)
        self.add(Gauge.DRIVER, _ALIVE.get(document["driver"]), query)
        if source := document["source"]:
            self.add(Gauge.SOURCE_STALE, int(source["stale"]), query, source["group"])
            self.add(Gauge.SOURCE_LAG, source["lag"], query, source["group"])
        # Records of older versions have no statistics.
        if status.record is None or not document["counts"]:
            return
        for count in Count:
            self.add(count, document["counts"].get(count.label, 0), query)
        stats = status.record.stats
        for step, took in stats.steps.items():
            self._steps.add_metric((query, step.label), took.count, took.total)
            self.add(Gauge.LAST_STEP, took.last, query, step.label)
        # A decision without transactions had no vote: the figure is of an older batch.
        had_vote = document["batch"] is None or document["transactions"]
        self.add(Gauge.VOTE_LEFT, _seconds(stats.left_ms) if had_vote else None, query)
        self.add(Gauge.TIMEOUT, _seconds(stats.timeout_ms), query)

    def all(self) -> Iterator[Metric]:
        yield from self._found.values()
        if self._steps.samples:
            yield self._steps


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / _MS


def serve(scraper: Scraper, address: str, port: int) -> None:
    """Answer requests of Prometheus from now on, in another thread.

    Raises:
        OSError: the port is in use, or this machine does not have the address.
    """
    # The client's default registry would add metrics of the exporter's own process.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(scraper)
    start_http_server(port, address, registry)


def write_text(scrape: Scrape, file: Path) -> None:
    """Replace the file atomically, so that node_exporter never reads half of it.

    Raises:
        OSError: the file cannot be written.
    """
    # The collector of node_exporter reads every *.prom, so the temporary file must not be one.
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as text:
            text.write(scrape.text())
        os.chmod(name, _READABLE)  # mkstemp's is for its owner; node_exporter is another user.
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
