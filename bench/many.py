"""Measures one cluster with many tasks, many queries and many topics, in one run.

    python -m bench.many [--tasks 10,1000,10000] [--queries 1000] [--version 4.3.0]

Three brokers as in `bench.settle`. Batches of one query, by their number of tasks; then as many
queries as asked for, one after the other, each with a topic of its own and a batch of ten tasks,
each of which has a transaction; then a query that writes to the topics of all of them. Two cores
cannot run the drivers of a thousand queries at once: each leaves when it has written. Writes
bench/results/many.json; progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa

from bench import RESULTS
from bench.query import Query, Rows, row_for_each
from bench.result import Notebook
from bench.settle import BROKERS, COORDINATORS, TRANSACTIONS, Batches
from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.observer import Observer
from eos_sink.options import parse_options
from eos_sink_lab.testing import start_kafka
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

TASKS = (10, 1_000, 10_000)
QUERIES, OF_EACH = 1_000, 10
# As many of the first queries and of the last ones are shown.
SHOWN = 20
_LOOKS = 3
_LONG_S = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)))
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--version", default="4.3.0", help="of the brokers")
    arguments = parser.parse_args()
    notebook = Notebook("many", arguments.version, {"queries": arguments.queries})
    with start_kafka(BROKERS, arguments.version, properties=COORDINATORS) as kafka:
        assert isinstance(kafka, LocalCluster)
        with closing(Batches(kafka, notebook)) as batches:
            batches.warm_up()
            for tasks in map(int, arguments.tasks.split(",")):
                batches.committed(tasks)
                to_stderr(f"{tasks} tasks")
                notebook.result().write(RESULTS / "many.json")
        many = Many(kafka, notebook)
        topics = many.start_queries(arguments.queries)
        many.look()
        many.write_to(topics)
        many.close()
        notebook.result().write(RESULTS / "many.json")
    return 0


class Many:
    """Queries, one after the other; committers and tasks share their clients."""

    def __init__(self, kafka: LocalCluster, notebook: Notebook) -> None:
        self._kafka = kafka
        self._notebook = notebook
        self._first = Query(kafka, 1, TRANSACTIONS)
        self._cluster = parse_options(self._first.given).cluster

    def start_queries(self, count: int) -> list[str]:
        """Let each begin, and write its first batch; return their topics."""
        topics = []
        for number in range(1, count + 1):
            query = Query(self._kafka, 1, TRANSACTIONS, like=self._first)
            one = [row_for_each(1)] * OF_EACH
            # Of a thousand starts the first and the last ones are kept.
            if SHOWN < number <= count - SHOWN:
                query.committer.commit(query.write(query.planner.plan(), one))
            else:
                ends = SHOWN if number <= SHOWN else count
                for warm in (False, True):
                    self._measure_batch(query, one, queries=ends, warm=warm)
            query.leave()
            topics.append(query.topic)
            if number % 100 == 0:
                to_stderr(f"{number} queries")
        logs = self._kafka.directory.glob(f"node-*/data/{self._cluster.log_topic}-*/*.log")
        size = sum(each.stat().st_size for each in logs) / BROKERS
        self._notebook.note("decision log", "B", size, queries=count)
        return topics

    def look(self) -> None:
        """What `eos-sink status` sees of all of them."""
        cluster = self._cluster
        for _ in range(_LOOKS):
            with closing(ConfluentAdmin(cluster, _LONG_S)) as admin, self._measured("status"):
                found = Observer(admin, cluster.prefix).look(Deadline(_LONG_S))
        self._notebook.note("queries seen", "", len(found.queries))
        with closing(ConfluentAdmin(cluster, _LONG_S)) as admin:
            ids = admin.control().list_transactions(cluster.prefix, Deadline(_LONG_S))
        self._notebook.note("transactional ids", "", len(ids))
        to_stderr("status")

    def write_to(self, topics: Sequence[str]) -> None:
        """A query whose one task has a row for each topic."""
        everywhere = {**TRANSACTIONS, "topic": ""}
        query = Query(self._kafka, 1, everywhere, like=self._first)
        rows = pa.RecordBatch.from_pydict({"topic": topics, "value": [b"x" * 100] * len(topics)})
        for warm in (False, True, True, True):
            self._measure_batch(query, [[rows]], topics=len(topics), warm=warm)
            to_stderr(f"{len(topics)} topics")
        query.leave()

    def close(self) -> None:
        self._first.close()

    def _measure_batch(self, query: Query, tasks: Sequence[Rows], **labels: int) -> None:
        with self._measured("plan", **labels):
            plan = query.planner.plan()
        with self._measured("write", **labels):
            reports = query.write(plan, tasks)
        with self._measured("commit", **labels):
            query.committer.commit(reports)

    @contextmanager
    def _measured(self, what: str, **labels: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._notebook.note(what, "s", time.perf_counter() - began, **labels)


if __name__ == "__main__":
    sys.exit(main())
