"""The cost of a batch by the number of its tasks: straight lines through measurements. Pure.

A line goes through the fewest and the most tasks that were measured; what was measured between
them says how good it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.result import Result
from eos_sink.kafka.log_topic import LOG_PARTITIONS

HEARTBEAT = "HEARTBEAT"


@dataclass(frozen=True)
class Line:
    """`base + each * tasks`."""

    base: float
    each: float

    def at(self, tasks: float) -> float:
        return self.base + self.each * tasks


@dataclass(frozen=True)
class Fit:
    """A cost by the number of tasks.

    Attributes:
        what: the name of the cost.
        unit: of it.
        line: through the ends.
        measured: by the number of tasks, at least three.
    """

    what: str
    unit: str
    line: Line
    measured: Mapping[int, float]

    @property
    def between(self) -> Mapping[int, float]:
        """The measurements that did not define the line."""
        ends = {min(self.measured), max(self.measured)}
        return {tasks: value for tasks, value in self.measured.items() if tasks not in ends}


def fit(what: str, unit: str, measured: Mapping[int, float]) -> Fit:
    """Raises ValueError for fewer than three points: the fit could not be checked."""
    if len(measured) < 3:
        raise ValueError(f"{what} was measured for {sorted(measured)} tasks only")
    low, high = min(measured), max(measured)
    # Nothing gets cheaper by more tasks: where it seems so, the number of them does not matter.
    each = max(0.0, (measured[high] - measured[low]) / (high - low))
    return Fit(what, unit, Line(measured[low] - each * low, each), dict(sorted(measured.items())))


def medians(result: Result, what: str) -> dict[int, float]:
    """Of a quantity that was measured by the number of tasks."""
    found = [each for each in result.having(what) if "tasks" in each.labels]
    return {int(each.labels["tasks"]): each.spread.median for each in found}


def requests(result: Result, phase: str, *, inline: bool = False) -> dict[int, float]:
    """All requests of a phase in a batch, by the number of tasks, which are all inline or not at
    all. Heartbeats come by the clock, and are not of the batch."""
    found: dict[int, float] = {}
    for each in result.having("requests", phase=phase, inline=inline):
        if each.labels["api"] != HEARTBEAT:
            tasks = int(each.labels["tasks"])
            found[tasks] = found.get(tasks, 0.0) + each.spread.median
    return found


def transactional_ids(queries: int, tasks: int) -> int:
    """Two slots of each partition, and the driver's; a coordinator keeps each for seven days after
    its last use (`transactional.id.expiration.ms`)."""
    return queries * (2 * tasks + 1)


def read_by_a_plan(queries: int, record: float) -> float:
    """Bytes of the decision log that a plan reads if each query has decided once since the plan
    before: a partition is read whole, whosever records it has."""
    return max(1.0, queries / LOG_PARTITIONS) * record


def most_tasks(line: Line, limit: float) -> int:
    """The largest number of tasks within a limit of the cost."""
    return int((limit - line.base) / line.each)
