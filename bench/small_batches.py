"""Micro-batches of 1,000 rows, beside a Python sink that drops them and Spark's own sink, in turns.

    python -m bench.small_batches [--rounds N] [--without-tcp]

A turn is a query of some batches, the first of which only warm up; a round is a turn of each peer,
in an order that changes from round to round, with 2 tasks and with 200. All write to one broker on
this machine, in one Spark session that uses Unix domain sockets; a second session, for one round of
200 tasks, uses TCP as Spark does by default. Writes bench/results/small-batches.json and prints
tables; `python -m bench.publish` puts them into docs/performance.md.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.floor import FORMAT as FLOOR
from bench.pages.small_batches import NAME, lines, over_tcp
from bench.result import Label, Notebook, spread
from bench.shape import Shape
from bench.spark_turns import Bench
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

CORES = 2
# Short turns: what else the machine does is then the same for all peers of a round. Spark keeps its
# Python processes between the queries, so few batches warm up.
SHAPES = {
    2: Shape("1,000 rows, 2 tasks", 1_000, 10, 4),
    200: Shape("1,000 rows, 200 tasks", 1_000, 4, 2),
}
_TURN_S = 240.0


@dataclass(frozen=True)
class Peer:
    """A sink with options."""

    name: str
    sink: str
    options: Mapping[str, str]
    tasks: tuple[int, ...] = tuple(SHAPES)
    tcp: bool = True


_OURS = "kafka-eos"
PEERS = (
    Peer("floor", FLOOR, {}),
    Peer(_OURS, _OURS, {}),
    Peer("linger.ms 0", _OURS, {"kafka.linger.ms": "0"}, tasks=(2,)),
    Peer("not inline", _OURS, {"eos.inline.bytes": "0"}, tcp=False),
    Peer("kafka", "kafka", {}),
)


@dataclass(frozen=True)
class Scene:
    """The values that every turn needs."""

    kafka: LocalCluster
    notebook: Notebook
    out: Path

    def turn(self, bench: Bench, peer: Peer, tasks: int, sockets: bool) -> None:
        shape = SHAPES[tasks]
        with topic_for(self.kafka, f"bench-{uuid.uuid4().hex[:8]}", shape.partitions) as topic:
            servers = {"kafka.bootstrap.servers": self.kafka.bootstrap_servers}
            options = {**servers, **peer.options, "topic": topic}
            turn = bench.turn(peer.sink, shape, options, Deadline(_TURN_S), tasks=tasks)
        labels: dict[str, Label] = {"peer": peer.name, "tasks": tasks, "sockets": sockets}
        self.notebook.note("addBatch", "ms", *turn.add_batch_ms, **labels)
        for whose, seconds in turn.cpu_s.items():
            self.notebook.note("cpu", "s", seconds, **labels, whose=whose)
        # Each time, so that a run that is ended early has shown something.
        self.notebook.result().write(self.out)
        to_stderr(f"{shape.name}, {peer.name}: {spread(turn.add_batch_ms).median:.0f} ms")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--rounds", type=int, default=10, help="of 2 tasks; of 200 tasks, a quarter")
    add("--tasks", type=int, action="append", choices=SHAPES)
    add("--without-tcp", action="store_true")
    add("--version", default="4.3.0", help="of the broker")
    add("--out", type=Path, default=RESULTS / f"{NAME}.json")
    parsed = parser.parse_args(arguments)
    with start_broker(parsed.version, to_stderr) as kafka:
        notebook = Notebook(NAME, kafka.version, {"rounds": parsed.rounds, "cores": CORES})
        scene = Scene(kafka, notebook, parsed.out)
        with _session(kafka, sockets=True) as bench:
            for number in range(parsed.rounds):
                for tasks in parsed.tasks or SHAPES:
                    if tasks != min(SHAPES) and number % 4:
                        continue
                    for peer in PEERS[:: 1 if number % 2 == 0 else -1]:
                        if tasks in peer.tasks:
                            scene.turn(bench, peer, tasks, sockets=True)
        if not parsed.without_tcp:
            with _session(kafka, sockets=False) as bench:
                for peer in PEERS:
                    if peer.tcp and 200 in peer.tasks:
                        scene.turn(bench, peer, 200, sockets=False)
    results = {NAME: notebook.result()}
    print("\n".join([*lines(results), *over_tcp(results)]))
    return 0


def _session(kafka: LocalCluster, *, sockets: bool) -> contextlib.closing[Bench]:
    return contextlib.closing(Bench(CORES, kafka, sockets))


if __name__ == "__main__":
    sys.exit(main())
