"""A look at a cluster as samples of metrics. Pure: nothing here asks anybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from eos_sink.kafka.admin_interface import PartitionOffsets
from eos_sink.metrics.names import Count, Gauge, Step
from eos_sink.metrics.stats import StepTime
from eos_sink.ops.snapshot import Driver, QueryStatus, Snapshot
from eos_sink.protocol.outcome import Outcome

_MS = 1000
# What could not be seen is left out: a sample says something.
_UNSETTLED = {
    Outcome.COMMITTED: 0,
    Outcome.ACCEPTED: 0,
    Outcome.OPEN: 1,
    Outcome.LOST: 1,
    Outcome.IN_DOUBT: 1,
}
_ALIVE = {Driver.LIVE: 1, Driver.GONE: 0}


@dataclass(frozen=True)
class Readers:
    """What readers of a topic wait for.

    Attributes:
        delay: offsets between the last stable ones and the high watermarks.
        held: seconds since when the longest held one of its partitions has stood still.
    """

    topic: str
    delay: int
    held: float


@dataclass(frozen=True)
class Standstill:
    """Since when each partition's last stable offset has stood still with more behind it.

    `since` has by topic and partition that offset, and when it was first seen there.
    """

    since: Mapping[tuple[str, int], tuple[int, float]] = field(default_factory=dict)

    def then(self, ends: Mapping[str, Iterable[PartitionOffsets]], now: float) -> Standstill:
        """Args:
        now: seconds of a clock that only grows.
        """
        found: dict[tuple[str, int], tuple[int, float]] = {}
        for topic, partitions in ends.items():
            for each in partitions:
                if each.end > each.stable:
                    before = self.since.get((topic, each.partition))
                    same = before is not None and before[0] == each.stable
                    at = before[1] if before is not None and same else now
                    found[topic, each.partition] = (each.stable, at)
        return Standstill(found)

    def readers(
        self, ends: Mapping[str, Iterable[PartitionOffsets]], now: float
    ) -> tuple[Readers, ...]:
        return tuple(
            Readers(
                topic,
                sum(max(0, each.end - each.stable) for each in partitions),
                max(
                    (now - at for (name, _), (_, at) in self.since.items() if name == topic),
                    default=0.0,
                ),
            )
            for topic, partitions in sorted(ends.items())
        )


@dataclass(frozen=True)
class Look:
    """A look at a cluster.

    Attributes:
        snapshot: None: the cluster could not be looked at, and `error` says why.
        unseen: how many parts of it could not be seen.
        seconds: how long the look took.
    """

    snapshot: Snapshot | None
    readers: tuple[Readers, ...]
    unseen: int
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Sample:
    """One value; labels as the metric has them."""

    metric: Count | Gauge
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class StepSample:
    """How often a query has made a step, and what that took together."""

    query: str
    step: Step
    time: StepTime


def samples(look: Look) -> Iterator[Sample | StepSample]:
    """All that is told of a look; of a cluster that could not be looked at, no more than that."""
    yield Sample(Gauge.UP, (), int(look.snapshot is not None))
    yield Sample(Gauge.DURATION, (), look.seconds)
    if look.snapshot is None:
        return
    yield Sample(Gauge.UNSEEN, (), look.unseen)
    yield Sample(Gauge.UNREADABLE, (), len(look.snapshot.unreadable))
    yield Sample(Gauge.STRANGERS, (), len(look.snapshot.strangers))
    for each in look.readers:
        yield Sample(Gauge.READER_DELAY, (each.topic,), each.delay)
        yield Sample(Gauge.READER_HELD, (each.topic,), each.held)
    for status in look.snapshot.queries:
        yield from _counted(status)
        yield from _decided(status)
        yield from _open(status, look.snapshot.at_ms)


def _counted(status: QueryStatus) -> Iterator[Sample | StepSample]:
    """What its latest record tells; records of older versions count nothing."""
    stats = status.record.stats if status.record else None
    if stats is None or not stats.counts:
        return
    for count in Count:
        yield Sample(count, (status.query,), stats.count(count))
    for step, time in stats.steps.items():
        yield StepSample(status.query, step, time)
        yield Sample(Gauge.LAST_STEP, (status.query, step.label), time.last)
    if stats.left_ms is not None:
        yield Sample(Gauge.VOTE_LEFT, (status.query,), stats.left_ms / _MS)
    if stats.timeout_ms is not None:
        yield Sample(Gauge.TIMEOUT, (status.query,), stats.timeout_ms / _MS)


def _decided(status: QueryStatus) -> Iterator[Sample]:
    decision, labels = status.decision, (status.query,)
    if decision is None:
        return
    if status.decided_at_ms:
        yield Sample(Gauge.LAST_DECISION, labels, status.decided_at_ms / _MS)
    yield Sample(Gauge.LAST_ROWS, labels, status.rows)
    yield Sample(Gauge.LAST_BYTES, labels, status.bytes)
    yield Sample(Gauge.LAST_PARTITIONS, labels, status.partitions)
    if status.outcome in _UNSETTLED:
        yield Sample(Gauge.UNSETTLED, labels, _UNSETTLED[status.outcome])
        yield Sample(Gauge.LOST, labels, len(status.lost))
        yield Sample(Gauge.DOUBTFUL, labels, len(status.doubtful))


def _open(status: QueryStatus, now_ms: int) -> Iterator[Sample]:
    labels = (status.query,)
    # The driver's own, which writes the log, has another time-out and is over in milliseconds.
    tasks = [each for each in status.open if each.task]
    for decided in (True, False):
        number = sum(1 for each in tasks if each.decided is decided)
        yield Sample(Gauge.OPEN, (status.query, str(decided).lower()), number)
    ages = [each.age_ms(now_ms) for each in tasks]
    yield Sample(Gauge.OLDEST, labels, max(ages, default=0) / _MS)
    if tasks:
        left = min(each.left_ms(now_ms) for each in tasks)
        yield Sample(Gauge.LEAST_LEFT, labels, left / _MS)
    if status.driver in _ALIVE:
        yield Sample(Gauge.DRIVER, labels, _ALIVE[status.driver])
