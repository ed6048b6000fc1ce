"""Draws docs/watch.svg: the command on a real Kafka with three queries.

    python -m tools.watch_picture

Of the queries one goes on, one was killed behind a decision, and one while it wrote.
"""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from rich.console import Console, RenderableType

from eos_sink import cli
from eos_sink.cli.arguments import cluster_config
from eos_sink.cli.watch_command import take_update
from eos_sink.cli.watch_views import Picture
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.ops.activity import ActivityTracker
from eos_sink.ops.observer import Observer
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import start_kafka

_PICTURE = Path(__file__).parent.parent / "docs" / "watch.svg"
_WIDTH = 150
_TASKS, _BATCHES = 3, 24


class _Query:
    """A query in this process, which can be killed with it."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._options = parse_options(
            {
                "kafka.bootstrap.servers": bootstrap,
                "eos.id": name,
                "topic": name,
                "eos.transaction.timeout.ms": "600000",
            }
        )
        self._kafka = ConfluentKafka(self._options.cluster)
        self._planner = Planner(self._kafka, self._options)
        self._committer = Committer(self._kafka, self._options)
        self._batch = 0

    def write(self, rows: int) -> list[TaskReport]:
        plan, batch = self._planner.plan(), BatchId("5f0c2a31-stream", self._batch)
        values = pa.RecordBatch.from_pydict({"value": [f"row {n}" for n in range(rows)]})
        writer = TaskWriter(self._kafka, self._options, plan)
        self._batch += 1
        return [writer.write(batch, task, [values]) for task in range(_TASKS)]

    def run(self, rows: int) -> None:
        self._committer.commit(self.write(rows))

    def die_behind_the_decision(self, rows: int) -> None:
        reports = self.write(rows)
        self._kafka.control().end = _kill  # type: ignore[method-assign]
        self._committer.commit(reports)


def _kill(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


def _run_and_die(bootstrap: str, name: str) -> None:
    """In a process of its own."""
    query = _Query(bootstrap, name)
    _run(query, name)
    if name == "orders":
        query.die_behind_the_decision(900)
    query.write(700)
    _kill()


def _run(query: _Query, name: str) -> None:
    sizes = random.Random(name)
    for _ in range(_BATCHES):
        query.run(sizes.randint(200, 2_000))


def main() -> None:
    if len(sys.argv) > 1:
        _run_and_die(*sys.argv[1:])
    with start_kafka() as kafka:
        bootstrap = kafka.bootstrap_servers
        for name in ("orders", "clicks"):
            kafka.create_topic(name, partitions=_TASKS)
            again = [sys.executable, "-m", "tools.watch_picture", bootstrap, name]
            subprocess.run(again, check=False)
        kafka.create_topic("payments", partitions=_TASKS)
        _run(_Query(bootstrap, "payments"), "payments")
        console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(_shown(bootstrap))
        console.save_svg(str(_PICTURE), title="eos-sink watch")


def _shown(bootstrap: str) -> RenderableType:
    given = cli.parser().parse_args(["watch", "--bootstrap-server", bootstrap])
    kafka = ConfluentAdmin(cluster_config(given), given.update_timeout)
    given.bootstrap_server = "kafka:9092"  # In the picture's commands.
    update = take_update(Observer(kafka, given.prefix), ActivityTracker(), given)
    kafka.close()
    picture = Picture(Console(file=io.StringIO()), "eos-sink watch · kafka:9092")
    return picture.draw(update)


if __name__ == "__main__":
    main()
