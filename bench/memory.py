"""Measures the memory of a task's Python worker, for all batch sizes and behind a slow broker.

    python -m bench.memory [--cases 10000x100,10000000x100/8] [--only cases|slow|many]

A case is ROWSxBYTES, and behind a slash `kafka.buffer.memory` in MB, without it the default. Each
has its own worker (bench/memory_task.py): the sink's code for tasks in a process that has
loaded what Spark's worker loads, with a plan and a commit of the real driver. Resident memory is
noted all the time, its peak is the kernel's own (VmHWM). `slow`: every packet between task and
broker is delayed for a while, and what is in the topic is counted by the independent checker.
`many`: small batches one after the other in one worker. The result is bench/results/memory.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path

from bench import RESULTS
from bench.memory_worker import MB, Case, Query, Worker, audited
from bench.result import Label, Notebook
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.waiting import to_stderr

CASES = (
    "10000x100,100000x100,1000000x100,10000000x100,1000000x100/32,1000000x100/8,"
    "1000000x20,1000000x20/8,10000x100000,10000x100000/32"
)
SLOW = "1000000x100,1000000x100/8,20000x10000,20000x10000/32"
MANY, MANY_CASE = 500, "1000x100"
_KEPT = 200
_SLOW_S, _SLOW_FOR_S = 0.25, 15.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--slow", default=SLOW, help="cases behind a slow broker")
    parser.add_argument("--many", type=int, default=MANY, help="batches in one worker")
    parser.add_argument("--only", choices=("cases", "slow", "many"))
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    arguments = parser.parse_args()
    cases = [Case.from_text(text) for text in arguments.cases.split(",")]
    slow = [Case.from_text(text) for text in arguments.slow.split(",")]
    with start_kafka(version=arguments.version, proxied=True) as kafka:
        notebook = Notebook("memory", kafka.version, {"many": arguments.many, "delay": _SLOW_S})
        if arguments.only in (None, "cases"):
            for case in cases:
                _cases(kafka, case, notebook)
        if arguments.only in (None, "slow"):
            for case in slow:
                _slow(kafka, case, notebook)
        if arguments.only in (None, "many"):
            _many(kafka, Case.from_text(MANY_CASE), arguments.many, notebook)
    notebook.result().write(RESULTS / "memory.json")
    return 0


def _cases(kafka: KafkaCluster, case: Case, notebook: Notebook) -> None:
    with tempfile.TemporaryDirectory() as home:
        query = Query(kafka, case, Path(home), direct=True)
        worker = Worker.start(case, query.options, Path(home))
        for _ in worker.write(query.plan()):
            pass
        query.commit()
        worker.close()
        query.close()
    _note(notebook, worker, case.labels)
    to_stderr(f"{case}: {_told(worker)}")


def _slow(kafka: KafkaCluster, case: Case, notebook: Notebook) -> None:
    """A batch whose broker is slow only at first."""
    (broker,) = kafka.brokers
    with tempfile.TemporaryDirectory() as home:
        query = Query(kafka, case, Path(home))
        worker = Worker.start(case, query.options, Path(home))
        plan = query.plan()
        broker.link.delay(_SLOW_S)
        heal = threading.Timer(_SLOW_FOR_S, broker.link.heal)
        heal.start()
        for _ in worker.write(plan):
            pass
        heal.cancel()
        broker.link.heal()
        query.commit()
        worker.close()
        query.close()
        found = audited(kafka, query.topic, case.rows)
    _note(notebook, worker, {**case.labels, "slow": True})
    to_stderr(f"slow {case}: {_told(worker)}; {found}")
    if not found.perfect:
        raise RuntimeError("rows are missing or there twice")


def _many(kafka: KafkaCluster, case: Case, batches: int, notebook: Notebook) -> None:
    with tempfile.TemporaryDirectory() as home:
        query = Query(kafka, case, Path(home), direct=True)
        worker = Worker.start(case, query.options, Path(home))
        for _ in range(batches):
            for _ in worker.write(query.plan()):
                pass
            query.commit()
        worker.close()
        query.close()
    ends = [told for told in worker.told if told["what"] == "written"]
    for what, unit in (("rss", "B"), ("threads", ""), ("files", "")):
        notebook.note(f"{what} of many", unit, *(end[what] for end in ends), **case.labels)
    to_stderr(f"{batches} of {case}: first {ends[0]}, middle {ends[batches // 2]}, last {ends[-1]}")


def _note(notebook: Notebook, worker: Worker, labels: dict[str, Label]) -> None:
    last, began = worker.told[-1], worker.told[0]["at"]
    kept = worker.told[:: max(1, len(worker.told) // _KEPT)]
    notebook.note("base", "B", worker.base["rss"], **labels)
    notebook.note("peak", "B", last["peak"], **labels)
    notebook.note("time", "s", *(told["at"] - began for told in kept), **labels)
    notebook.note("rss", "B", *(told["rss"] for told in kept), **labels)
    notebook.note("rows taken", "", *(told["rows"] for told in kept), **labels)


def _told(worker: Worker) -> str:
    base, last, began = worker.base["rss"], worker.told[-1], worker.told[0]["at"]
    return (
        f"base {base / MB:.0f} MB, peak {last['peak'] / MB:.0f} MB, end {last['rss'] / MB:.0f} MB, "
        f"{last['at'] - began:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
