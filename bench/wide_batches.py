"""Measures the driver of batches with many tasks, most of them empty or tiny, without Spark.

    python -m bench.wide_batches [--rounds 3] [--tasks 10,1000,10000] [--version 4.3.0]

One task in ten writes 100 rows of 100 bytes and the others nothing (`mostly empty`), or each task
writes 5 rows (`tiny`). They run in this process, one after the other. As in Spark, the driver is a
process that gets their reports pickled, one each; its memory is the kernel's own peak (VmHWM).
Writes bench/results/wide-batches.json; progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import RESULTS
from bench.result import Label, Notebook
from eos_sink.decision_log.codec import encode
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, LogRecord, Plan
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.waiting import to_stderr

NAME = "wide-batches"
TASKS = (10, 1_000, 10_000)
KINDS = {"mostly empty": (10, 100), "tiny": (1, 5)}
"""One task in so many has rows, and how many rows."""
PARTITIONS = 6
_WARM_UP = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)))
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    # How this program starts the driver's process.
    parser.add_argument("--driver", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.driver:
        return run_driver(json.loads(arguments.driver))
    with start_kafka(version=arguments.version) as kafka:
        notebook = Notebook(NAME, arguments.version, {"rounds": arguments.rounds})
        for kind in KINDS:
            for tasks in map(int, arguments.tasks.split(",")):
                measure(kafka, notebook, kind, tasks, arguments.rounds)
                notebook.result().write(RESULTS / f"{NAME}.json")
    return 0


def measure(kafka: KafkaCluster, notebook: Notebook, kind: str, tasks: int, rounds: int) -> None:
    """Note each batch of a query: its times and sizes, and the memory of the driver."""
    topic = f"wide-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, PARTITIONS)
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "eos.id": topic, "topic": topic}
    options = parse_options(given)
    of_plan = ConfluentKafka(options)
    planner, driver = Planner(of_plan, options), Driver(given)
    labels: dict[str, Label] = {"kind": kind, "tasks": tasks}
    base = 0
    for batch in range(_WARM_UP + rounds):
        # The first one is small, to know what the driver takes by itself.
        number = tasks if batch else 1
        began = time.perf_counter()
        plan = planner.plan()
        planned = time.perf_counter()
        reports = []
        for partition in range(number):
            task = TaskWriter(ConfluentKafka(options), options, plan)
            found = task.write(BatchId("wide", batch), partition, _rows(kind, partition))
            reports.append(pickle.dumps(found))
        written = time.perf_counter()
        told = driver.commit(reports)
        if not batch:
            base = told["peak"]
        if batch < _WARM_UP:
            continue
        to_stderr(f"{kind}, {number} tasks: plan {planned - began:.3f} s, {told}")
        notebook.note("plan", "s", planned - began, **labels)
        notebook.note("task", "s", (written - planned) / number, **labels)
        notebook.note("unpickle", "s", told["unpickle"], **labels)
        notebook.note("commit", "s", told["commit"], **labels)
        notebook.note("CPU", "s", told["cpu"], **labels)
        notebook.note("driver's memory", "B", told["peak"], **labels)
        notebook.note("driver's memory, more", "B", told["peak"] - base, **labels)
        notebook.note("reports", "B", sum(map(len, reports)), **labels)
        notebook.note("largest report", "B", max(map(len, reports)), **labels)
    notebook.note("decision", "B", _decision_size(planner.plan()), **labels)
    driver.close()
    planner.close()
    of_plan.close()


def _rows(kind: str, partition: int) -> Iterator[pa.RecordBatch]:
    every, rows = KINDS[kind]
    if partition % every == 0:
        yield pa.RecordBatch.from_pydict({"value": [b"%100d" % n for n in range(rows)]})


def _decision_size(plan: Plan) -> int:
    assert plan.decision is not None
    return len(encode(LogRecord(1, plan.decision, uuid.uuid4().hex)))


class Driver:
    """The process that commits, with one file of reports a line of its input."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.wide_batches", "--driver", json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def commit(self, reports: list[bytes]) -> dict[str, Any]:
        file = Path(self._home.name) / "reports"
        file.write_bytes(pickle.dumps(reports))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{file}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._home.cleanup()


def run_driver(given: Mapping[str, str]) -> int:
    options = parse_options(given)
    kafka = ConfluentKafka(options)
    committer = Committer(kafka, options)
    for line in sys.stdin:
        pickled: list[bytes] = pickle.loads(Path(line.strip()).read_bytes())
        began, used = time.perf_counter(), time.process_time()
        reports = [pickle.loads(each) for each in pickled]
        unpickled = time.perf_counter()
        committer.commit(reports)
        ended = time.perf_counter()
        told = {
            "unpickle": unpickled - began,
            "commit": ended - unpickled,
            "cpu": time.process_time() - used,
            "peak": _peak(),
        }
        print(json.dumps(told), flush=True)
    kafka.close()
    return 0


def _peak() -> int:
    """Bytes. Not ru_maxrss, which a process inherits from the one that has started it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    sys.exit(main())
