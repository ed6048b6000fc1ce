"""Measures the memory of a task's Python worker, for all batch sizes and behind a slow broker.

    python -m bench.memory [--version 4.3.0]

Each case has its own worker (bench/memory_task.py): the sink's code for tasks in a process that has
loaded what Spark's worker loads, with a plan and a commit of the real driver. The peak of its
resident memory is the kernel's own (VmHWM). Behind a slow broker, every packet between task and
broker is delayed for a while, and the independent checker counts what is in the topic. The result
is bench/results/memory.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path

from bench import RESULTS
from bench.memory_worker import MB, Case, OneTask, Worker, audited
from bench.result import Label, Notebook
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.waiting import to_stderr

CASES = (
    *(Case(rows, 100) for rows in (10_000, 100_000, 1_000_000)),
    Case(1_000_000, 100, buffer_mb=8),
    Case(10_000_000, 100),
    Case(3_000, 100_000),
    Case(3_000, 100_000, buffer_mb=32),
)
SLOW = (
    Case(1_000_000, 100),
    Case(1_000_000, 100, buffer_mb=8),
    Case(20_000, 10_000),
    Case(20_000, 10_000, buffer_mb=16),
)
_SLOW_S, _SLOW_FOR_S = 0.25, 15.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    with start_kafka(version=parser.parse_args().version, proxied=True) as kafka:
        notebook = Notebook("memory", kafka.version, {"delay": _SLOW_S})
        for case, slow in [*((case, False) for case in CASES), *((case, True) for case in SLOW)]:
            _measure(kafka, case, notebook, slow=slow)
            notebook.result().write(RESULTS / "memory.json")
    return 0


def _measure(kafka: KafkaCluster, case: Case, notebook: Notebook, *, slow: bool) -> None:
    """A batch, whose broker is slow only at first, or never."""
    (broker,) = kafka.brokers
    with tempfile.TemporaryDirectory() as home:
        query = OneTask(kafka, case, Path(home), direct=not slow)
        worker = Worker.start(case, query.given, Path(home))
        plan = query.plan()
        heal = threading.Timer(_SLOW_FOR_S, broker.link.heal)
        if slow:
            broker.link.delay(_SLOW_S)
            heal.start()
        for _ in worker.write(plan):
            pass
        heal.cancel()
        broker.link.heal()
        query.commit()
        worker.close()
        query.close()
        # The checker takes minutes for ten million rows, and what is slow is what may go wrong.
        found = audited(kafka, query.topic, case.rows) if slow else None
    base, peak = worker.base["rss"], worker.told[-1]["peak"]
    labels: dict[str, Label] = {"rows": case.rows, "size": case.size, "buffer_mb": case.buffer_mb}
    notebook.note("base", "B", base, **labels, slow=slow)
    notebook.note("peak", "B", peak, **labels, slow=slow)
    to_stderr(f"{case}: base {base / MB:.0f} MB, peak {peak / MB:.0f} MB; {found or ''}")
    if found is not None and not found.perfect:
        raise RuntimeError("rows are missing or there twice")


if __name__ == "__main__":
    sys.exit(main())
