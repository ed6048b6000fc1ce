"""Flink's KafkaSink in EXACTLY_ONCE: the same rows, in a cluster of one JVM.

Flink has no batches: rows become visible when a checkpoint is complete, so checkpoints come as
often as the sink's batches. What is measured is what a `read_committed` reader could see.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cpu import Account, CpuClock, Part
from bench.java_peer import FLINK_LIBRARY, last_words
from bench.shape import Shape
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.topic_scan import Offsets, Source

CHECKPOINT_MS = 1_500
_CHECKPOINTS = 10
# More than it ever writes: it is ended when enough checkpoints were seen.
_ENDLESS = 2**60
_LOOK_S = 0.05
_SAME_STEP_S = 0.4
_LONGEST_S = 240.0


@dataclass(frozen=True)
class Seen:
    """Visible rows at a moment, and the CPU seconds used until then."""

    at: float
    rows: int
    cpu_s: Mapping[str, float]


@dataclass(frozen=True)
class Steady:
    """Between two checkpoints in the middle of a run.

    Attributes:
        rows_per_second: that became visible.
        cpu_s: for a million of them, by whose they are.
    """

    rows_per_second: float
    cpu_s: Mapping[str, float]


def run_flink(servers: str, topic: str, shape: Shape, tasks: int, brokers: Sequence[int]) -> Steady:
    """Write until some checkpoints were complete, and watch rows become visible.

    Args:
        servers: of the cluster.
        topic: with the partitions of the shape.
        shape: of the rows.
        tasks: that run at the same time.
        brokers: their process ids.

    Raises:
        RuntimeError: it has failed, or was too slow to show a steady part.
    """
    with tempfile.TemporaryDirectory(prefix="eos-flink-") as scratch:
        arguments = (servers, topic, _ENDLESS, shape.value_bytes, CHECKPOINT_MS, shape.compression)
        with FLINK_LIBRARY.running("FlinkPeer", (*arguments, tasks), Path(scratch)) as program:
            seen = _watch(program, Offsets(Source(servers, topic)), brokers)
        if len(steps(seen)) < _CHECKPOINTS:
            raise RuntimeError(f"Flink ended with {program.exit_code}: {last_words(program)}")
    return steady(seen)


def _watch(program: ProcessTree, offsets: Offsets, brokers: Sequence[int]) -> list[Seen]:
    clock = CpuClock(
        {
            "flink": [Account(program.pid, Part.OWN)],
            "broker": [Account(pid, Part.OWN) for pid in brokers],
        }
    )
    seen = [Seen(time.monotonic(), 0, clock.read())]
    deadline = Deadline(_LONGEST_S)
    while program.alive and len(steps(seen)) < _CHECKPOINTS:
        if deadline.passed:
            raise RuntimeError(f"Flink has not come far in {_LONGEST_S:.0f} s")
        rows = sum(offsets.find_stable().values())
        if rows > seen[-1].rows:
            seen.append(Seen(time.monotonic(), rows, clock.read()))
        time.sleep(_LOOK_S)
    return seen


def steps(seen: Sequence[Seen]) -> list[Seen]:
    """One stretch for each checkpoint, whose transactions are committed one after the other."""
    return [
        now
        for now, then in zip(seen, [*seen[1:], None], strict=True)
        if then is None or then.at - now.at > _SAME_STEP_S
    ][1:]


def steady(seen: Sequence[Seen]) -> Steady:
    """The measurements without the first two checkpoints and the last one.

    Raises:
        RuntimeError: too few checkpoints were seen.
    """
    found = steps(seen)
    if len(found) < 5:
        raise RuntimeError(f"only {len(found)} checkpoints were seen, too few for a rate")
    first, last = found[1], found[-2]
    rows = last.rows - first.rows
    return Steady(
        rows_per_second=rows / (last.at - first.at),
        cpu_s={n: (s - first.cpu_s[n]) * 1e6 / rows for n, s in last.cpu_s.items()},
    )
