"""Flink's KafkaSink in EXACTLY_ONCE: the same rows, in a cluster of one JVM.

Flink has no batches: rows become visible when a checkpoint is complete, so checkpoints come as
often as the sink's batches. What is measured is what a `read_committed` reader could see.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cpu import Account, CpuClock, Part
from bench.shape import Shape
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.topic_scan import Offsets, Source
from eos_sink_lab.testing.waiting import to_stderr

_FLINK, _CONNECTOR = "2.2.1", "5.0.0-2.2"
JARS = (
    Artifact("org.apache.flink", "flink-clients", _FLINK),
    Artifact("org.apache.flink", "flink-connector-kafka", _CONNECTOR),
    Artifact("org.apache.flink", "flink-streaming-java", _FLINK),
    Artifact("org.apache.flink", "flink-connector-base", _FLINK),
    Artifact("org.apache.flink", "flink-connector-datagen", _FLINK),
)
VERSION = f"{_FLINK}, connector {_CONNECTOR}"
CHECKPOINT_MS = 1_500
_CHECKPOINTS = 10
# More than it ever writes: it is ended when enough checkpoints were seen.
_ENDLESS = 2**60
_PROGRAM = Path(__file__).parent / "java" / "FlinkPeer.java"
_OPENS = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")
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


def compiled(there: Path) -> str:
    """The class path of the program, made in this directory; jars are downloaded into the cache."""
    directory = cache_root() / "flink" / f"{_FLINK}-{_CONNECTOR}"
    ensure_jars(directory, _download, "flink", to_stderr)
    jars = f"{directory}/*"
    javac = find_java().home / "bin" / "javac"
    subprocess.run([str(javac), "-cp", jars, "-d", str(there), str(_PROGRAM)], check=True)
    return f"{there}:{jars}"


def _download(draft: Path) -> None:
    download_jars(JARS, draft, find_java(), label="flink", progress=to_stderr)


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
        command = [
            *(str(find_java().executable), "-Xmx1g"),
            *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENS),
            *("-cp", compiled(Path(scratch)), "FlinkPeer"),
            *(str(each) for each in (*arguments, tasks)),
        ]
        program = ProcessTree(command, Path(scratch) / "log")
        try:
            seen = _watch(program, Offsets(Source(servers, topic)), brokers)
        finally:
            program.kill()
        if len(steps(seen)) < _CHECKPOINTS:
            said = "\n".join(program.read_log())[-3000:]
            raise RuntimeError(f"Flink ended with {program.exit_code}: {said}")
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
