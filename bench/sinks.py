"""`kafka-eos` beside its peers, in turns, in one process of measurement.

    python -m bench.sinks [--full] [--shape NAME] [--peer NAME] [--rounds N]

A turn is a query of some batches, the first of which only warm up; a round is a turn of every
peer, in an order that changes from round to round. All peers write the same rows to one broker on
this machine with acks all and the shape's linger, batch size and compression. Writes
bench/results/sinks.json and prints tables; `python -m bench.publish` puts it into the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.cpu import Account, CpuClock, Part
from bench.flink import CHECKPOINT_MS, run_flink
from bench.floor import FORMAT as FLOOR
from bench.java_peer import FLINK_LIBRARY
from bench.limits import run_producer
from bench.pages.sinks import lines
from bench.result import Notebook, spread
from bench.shape import Shape
from bench.shapes import MAIN, SHAPES
from bench.spark_turns import Bench, TurnFailedError
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

NAME = "sinks"
OURS, THEIRS = "kafka-eos", "kafka"
STREAMS = (OURS, THEIRS, FLOOR, "noop")
LIMIT, FLINK = "producer", "flink"
PEERS = (*STREAMS, LIMIT, FLINK)
TASKS = 2
_TURN_S = 240.0


@dataclass(frozen=True)
class Scene:
    """The values that every turn needs."""

    kafka: LocalCluster
    bench: Bench
    notebook: Notebook


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    names = parsed.shape or [shape.name for shape in (SHAPES if parsed.full else [MAIN])]
    shapes = [shape for shape in SHAPES if shape.name in names]
    peers = parsed.peer or (PEERS if parsed.full else PEERS[:-1])
    parameters = {
        "rounds": parsed.rounds,
        "tasks": TASKS,
        "peers": list(peers),
        "shapes": [asdict(shape) for shape in shapes],
        "flink": f"{FLINK_LIBRARY.version}, a checkpoint each {CHECKPOINT_MS} ms",
    }
    with (
        start_broker(parsed.version, to_stderr) as kafka,
        contextlib.closing(Bench(TASKS, kafka)) as bench,
    ):
        scene = Scene(kafka, bench, Notebook(NAME, kafka.version, parameters))
        _warm_up(scene)
        began = time.monotonic()
        for number in range(parsed.rounds):
            for shape in shapes:
                for peer in peers if number % 2 == 0 else reversed(peers):
                    _turn(scene, peer, shape, f"{time.monotonic() - began:4.0f} s, {number + 1}")
                # Each time, so that a run that is ended early has shown something.
                scene.notebook.result().write(parsed.out)
    print("\n".join(lines({NAME: scene.notebook.result()})))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--full", action="store_true", help="Run all shapes, not only those of `make bench`.")
    add("--shape", action="append", choices=[shape.name for shape in SHAPES])
    add("--peer", action="append", choices=PEERS)
    add("--rounds", type=int, default=5)
    add("--version", default="4.3.0", help="Version of the broker.")
    add("--out", type=Path, default=RESULTS / f"{NAME}.json")
    return parser


def _warm_up(scene: Scene) -> None:
    """Warm up the broker's compiler, so that it does not slow down the first peer."""
    topic = "bench-warm-up"
    with topic_for(scene.kafka, topic, MAIN.partitions):
        run_producer(scene.kafka.bootstrap_servers, topic, MAIN)


def takes_part(peer: str, shape: Shape) -> bool:
    """True if there is something to compare: what `noop` and the limit tell of a shape does not
    depend on the topic or on compression."""
    if peer in STREAMS:
        return peer != "noop" or shape is MAIN
    plain = not (shape.key_bytes or shape.headers or shape.varies)
    return plain and (shape.compression == MAIN.compression or peer == FLINK)


def _turn(scene: Scene, peer: str, shape: Shape, where: str) -> None:
    if not takes_part(peer, shape):
        return
    run = _stream if peer in STREAMS else _flink if peer == FLINK else _limit
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    try:
        with topic_for(scene.kafka, topic, shape.partitions):
            told = run(scene, peer, shape, topic)
    except (RuntimeError, TurnFailedError, subprocess.SubprocessError) as failed:
        # The other peers' figures are worth having.
        told = f"NOT MEASURED: {failed}"
    to_stderr(f"{where}: {shape.name}, {peer}: {told}")


def _stream(scene: Scene, peer: str, shape: Shape, topic: str) -> str:
    servers = {"kafka.bootstrap.servers": scene.kafka.bootstrap_servers}
    options = {**servers, **shape.options, "topic": topic}
    turn = scene.bench.turn(peer, shape, options, Deadline(_TURN_S))
    note = scene.notebook.note
    labels = {"peer": peer, "shape": shape.name}
    note("addBatch", "ms", *turn.add_batch_ms, **labels)
    for whose, seconds in turn.cpu_s.items():
        note("cpu", "s/Mrow", seconds * 1e6 / shape.rows, **labels, whose=whose)
    return f"{spread(turn.add_batch_ms).median:.0f} ms"


def _limit(scene: Scene, peer: str, shape: Shape, topic: str) -> str:
    clock = CpuClock({"broker": [Account(pid, Part.OWN) for pid in _brokers(scene)]})
    before = clock.read()
    written = run_producer(scene.kafka.bootstrap_servers, topic, shape)
    labels = {"peer": peer, "shape": shape.name}
    note = scene.notebook.note
    note("rate", "rows/s", written.rows_per_second, **labels)
    note("cpu", "s/Mrow", written.cpu_s, **labels, whose="producer")
    for whose, seconds in clock.since(before).items():
        note("cpu", "s/Mrow", seconds * 1e6 / written.rows, **labels, whose=whose)
    return f"{written.rows_per_second:,.0f} rows/s"


def _flink(scene: Scene, peer: str, shape: Shape, topic: str) -> str:
    servers = scene.kafka.bootstrap_servers
    steady = run_flink(servers, topic, shape, TASKS, _brokers(scene))
    labels = {"peer": peer, "shape": shape.name}
    scene.notebook.note("rate", "rows/s", steady.rows_per_second, **labels)
    for whose, seconds in steady.cpu_s.items():
        scene.notebook.note("cpu", "s/Mrow", seconds, **labels, whose=whose)
    return f"{steady.rows_per_second:,.0f} rows/s"


def _brokers(scene: Scene) -> list[int]:
    return [node.pid for node in scene.kafka.nodes]


if __name__ == "__main__":
    sys.exit(main())
