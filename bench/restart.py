"""Measures the time from a driver's restart to the first visible row, against other sinks.

    python -m bench.restart [--rounds 5] [--cases kafka-eos/clean,least/clean/unzipped] [--timeline]

A driver program writes a batch of 1,000 rows and ends in one of three ways: `clean` (the query is
stopped), `writing` (all of its processes are killed while its tasks write the next batch; of
kafka-eos with a transaction prepared) and `decided` (killed after the decision, before any commit;
kafka-eos only). Then it is started again with one more batch to write, and a read_committed reader
that polls all the time stamps the first row that comes. Time is taken from the instant at which the
session is up and the program starts its query, and from the start of the process. Apart from
kafka-eos and Spark's own sink there is `least`, the least that can be written in Python
(bench/least_sink.py), without a commit. `unzipped` runs a Spark home without `pyspark.zip`, as
docs/restart.md describes. The first start of each does not count; after that they take turns. The
result is bench/results/restart.json.

`--timeline` notes when kafka-eos passes its points of the protocol, which it writes to standard
error, and no result.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from bench import RESULTS
from bench.arrivals import Arrivals
from bench.cpu import Account, CpuClock
from bench.result import Notebook
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.faults import TIMELINE_VARIABLE, Action, FaultPoint, Faults, read_timeline
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.waiting import to_stderr

OURS, THEIRS, LEAST = "kafka-eos", "kafka", "least"
CLEAN, WRITING, DECIDED = "clean", "writing", "decided"
UNZIPPED = "unzipped"
CASES = (
    (OURS, CLEAN),
    (THEIRS, CLEAN),
    (LEAST, CLEAN),
    (OURS, CLEAN, UNZIPPED),
    (LEAST, CLEAN, UNZIPPED),
    (OURS, WRITING),
    (THEIRS, WRITING),
    (OURS, DECIDED),
)
_ARCHIVE = "pyspark.zip"
PARTITIONS, ROWS, FILES = 6, 1_000, 2
_POINTS = {WRITING: FaultPoint.TASK_PREPARED_AFTER, DECIDED: FaultPoint.COMMITTER_WRITE_AFTER}
_LONGEST_S = 180.0
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True)
class Restart:
    """One restart; times in milliseconds.

    Attributes:
        from_start: from the start of the query to the first row.
        from_process: from the start of the program to the first row.
        next_batch: from the start of the query to the first row of the batch after the one that
            was under way.
        cpu_s: what the program and its processes had used when the first row came.
        passed: when each point of the protocol was passed first, from the start of the query.
    """

    from_start: float
    from_process: float
    next_batch: float
    cpu_s: float
    passed: dict[str, float]


class Driver:
    """The driver program of one query, which comes back after it has ended."""

    def __init__(
        self, kafka: KafkaCluster, home: Path, sink: str, ended: str, archive: str = ""
    ) -> None:
        self.sink, self.ended = sink, ended
        self.name = "/".join(filter(None, (sink, ended, archive)))
        self.labels = {"peer": sink, "ended": ended, "archive": archive}
        self._home, self._input = home, home / "input"
        self._input.mkdir(parents=True)
        self._batches = 0
        self._environment = (
            {"SPARK_HOME": str(_unzipped(home / "spark"))} if archive == UNZIPPED else {}
        )
        self._faults = Faults(home / "faults")
        topic = f"restart-{sink}-{ended}-{uuid.uuid4().hex[:6]}"
        kafka.create_topic(topic, partitions=PARTITIONS)
        self._arrivals = Arrivals(kafka.bootstrap_servers, topic, PARTITIONS)
        self._options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "checkpointLocation": str(home / "checkpoint"),
            "kafka.linger.ms": "5",
        }
        if sink == OURS and ended != CLEAN:
            # Tasks that hand their rows to the driver leave no transaction behind.
            self._options["eos.inline.bytes"] = "0"

    def restart(self, *, timeline: bool) -> Restart:
        """Start the program, measure, and end it in its usual way."""
        points = self._home / "timeline"
        points.unlink(missing_ok=True)
        environment = {**os.environ, **self._environment, **self._faults.environment}
        watched = timeline and self.sink == OURS
        if watched:
            environment[TIMELINE_VARIABLE] = str(points)
        following = self._add_batch()
        given = {"conf": _conf(), "query": self._query(watched=watched)}
        began = time.time()
        program = ProcessTree(
            [sys.executable, "-m", "bench.restart_program", json.dumps(given)],
            self._home / "log",
            environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            start = _heard(program, "start")
            first = self._arrivals.first(0, start, _LONGEST_S)
            cpu = CpuClock({"all": [Account(program.pid)]}).read().get("all", 0.0)
            next_batch = self._arrivals.first(following, start, _LONGEST_S)
            self._wait_committed()
            self._end(program)
        finally:
            program.kill()
        passed = {p.point: (p.t - start) * 1000 for p in reversed(read_timeline(points))}
        return Restart(
            (first - start) * 1000,
            (first - began) * 1000,
            (next_batch - start) * 1000,
            cpu,
            dict(sorted(passed.items(), key=lambda item: item[1])),
        )

    def _end(self, program: ProcessTree) -> None:
        if self.ended == CLEAN:
            program.stdin.close()
            program.wait(_LONGEST_S)
            return
        if self.sink == OURS:
            self._faults.arm(_POINTS[self.ended], Action.KILL_ALL)
        number, since = self._add_batch(), time.time()
        query = json.dumps(self._query(watched=self.sink == OURS))
        program.stdin.write(f"{query}\n".encode())
        program.stdin.flush()
        if self.sink == OURS:
            program.wait(_LONGEST_S)
            return
        # Its tasks still write when their first row is visible and the commit log is not there.
        self._arrivals.first(number, since, _LONGEST_S)
        program.kill()
        self._arrivals.quiet()

    def _add_batch(self) -> int:
        """The files of one more batch; the number of its first row."""
        first = self._batches * ROWS
        self._batches += 1
        for part in range(FILES):
            numbers = range(first + part, first + ROWS, FILES)
            hidden = self._home / "new"
            hidden.write_text("".join(f"{number} ".ljust(100, "x") + "\n" for number in numbers))
            # Spark takes files in the order of their times.
            os.utime(hidden, (1_700_000_000 + self._batches, 1_700_000_000 + self._batches))
            hidden.rename(self._input / f"{self._batches:04}-{part}.txt")
        return first

    def _wait_committed(self) -> None:
        """Wait until Spark has recorded all batches as complete."""
        deadline = Deadline(_LONGEST_S)
        while not (self._home / "checkpoint" / "commits" / str(self._batches - 1)).exists():
            if deadline.passed:
                raise TimeoutError("the batch is not done")
            time.sleep(_LOOK_AGAIN_S)

    def _query(self, *, watched: bool) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "input": str(self._input),
            "options": self._options,
            "watched": watched,
        }

    def __enter__(self) -> Driver:
        self._arrivals.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._arrivals.__exit__(None, None, None)


def _heard(program: ProcessTree, what: str) -> float:
    for line in program.stdout:
        told = json.loads(line)
        if told["what"] == what:
            return float(told["at"])
    raise RuntimeError(f"the program has ended before it said {what!r}")


def _conf() -> dict[str, str]:
    return {
        "spark.driver.extraClassPath": f"{spark_kafka_jars(to_stderr)}/*",
        "spark.python.unix.domain.socket.enabled": "true",
    }


def _unzipped(home: Path) -> Path:
    """A Spark home with links to all that the installed one has except for `pyspark.zip`."""
    installed, archives = Path(pyspark.__path__[0]), Path("python", "lib")
    (home / archives).mkdir(parents=True)
    links = [each for each in installed.iterdir() if each.name != "python"]
    links += [each for each in (installed / archives).iterdir() if each.name != _ARCHIVE]
    for each in links:
        (home / each.relative_to(installed)).symlink_to(each)
    return home


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default="", help="such as kafka-eos/clean,kafka/clean")
    parser.add_argument("--timeline", action="store_true")
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    arguments = parser.parse_args()
    named = [tuple(each.split("/")) for each in arguments.cases.split(",") if each]
    with (
        start_kafka(version=arguments.version) as kafka,
        tempfile.TemporaryDirectory() as root,
        contextlib.ExitStack() as stack,
    ):
        drivers = [
            stack.enter_context(Driver(kafka, Path(root, "-".join(case)), *case))
            for case in named or CASES
        ]
        notebook = Notebook("restart", kafka.version, {"rounds": arguments.rounds, "rows": ROWS})
        for number in range(arguments.rounds + 1):
            for driver in drivers if number % 2 == 0 else reversed(drivers):
                restart = driver.restart(timeline=arguments.timeline)
                to_stderr(f"round {number}: {driver.name}: {restart}")
                if number:
                    _note(notebook, driver, restart)
            if number and not arguments.timeline:
                # After each round: they take long, and what is there already holds.
                notebook.result().write(RESULTS / "restart.json")
    return 0


def _note(notebook: Notebook, driver: Driver, restart: Restart) -> None:
    notebook.note("from start()", "ms", restart.from_start, **driver.labels)
    notebook.note("from the process", "ms", restart.from_process, **driver.labels)
    notebook.note("next batch", "ms", restart.next_batch, **driver.labels)
    notebook.note("CPU", "s", restart.cpu_s, **driver.labels)


if __name__ == "__main__":
    sys.exit(main())
