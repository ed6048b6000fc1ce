"""One task's Python worker and the driver's side of its query, for `bench.memory`."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.query import Query
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.topic_audit import Audit, Checker, audit
from eos_sink_lab.testing.topic_scan import Row, Source

MB = 2**20
EVERY_S = 0.05
DIGITS = 12
_ARROW_BYTES = 64 * MB
_AUDIT_S = 300.0


@dataclass(frozen=True)
class Case:
    """One batch.

    Attributes:
        buffer_mb: `kafka.buffer.memory`, 0 for the default.
        rejected: all rows are too large and go to a dead letter topic that takes up to 900 MB.
        arrow_rows: how many Spark hands over at a time (spark.sql.execution.arrow.
            maxRecordsPerBatch), fewer where they come to 64 MB (...maxBytesPerBatch).
    """

    rows: int
    size: int
    buffer_mb: int = 0
    arrow_rows: int = 10_000
    rejected: bool = False


@dataclass
class Worker:
    """A worker process and its reports."""

    process: ProcessTree
    base: dict[str, Any]
    told: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def start(case: Case, options: dict[str, str], home: Path) -> Worker:
        task = home / "task.json"
        each = max(1, min(case.arrow_rows, _ARROW_BYTES // case.size))
        given = {"options": options, "rows": case.rows, "size": case.size, "each": each}
        task.write_text(json.dumps({**given, "every_s": EVERY_S}))
        process = ProcessTree(
            [sys.executable, "-m", "bench.memory_task", task],
            home / "log",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return Worker(process, json.loads(process.stdout.readline()))

    def write(self, plan: Path) -> Iterator[dict[str, Any]]:
        """Let it write a batch; return its reports, the final one last."""
        self.process.stdin.write(f"{plan}\n".encode())
        self.process.stdin.flush()
        for line in self.process.stdout:
            told = json.loads(line)
            self.told.append(told)
            yield told
            if told["what"] == "written":
                return
        raise RuntimeError("the worker has died")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class OneTask(Query):
    """The driver's side of a query with one task, whose plans and reports are files."""

    def __init__(
        self, kafka: KafkaCluster, case: Case, home: Path, *, direct: bool = False
    ) -> None:
        self._home = home
        given = {
            "kafka.bootstrap.servers": kafka.direct_servers if direct else kafka.bootstrap_servers,
            "kafka.linger.ms": "5",
            "eos.step.timeout.ms": "120000",
        }
        if case.rejected:
            self.letters = f"letters-{uuid.uuid4().hex[:8]}"
            kafka.create_topic(self.letters, config={"max.message.bytes": 900 * MB})
            given |= {
                "eos.dead.letter.topic": self.letters,
                "kafka.max.request.size": str(max(case.size, 1_000)),
            }
        if case.buffer_mb:
            given["kafka.buffer.memory"] = str(case.buffer_mb * MB)
        super().__init__(kafka, 1, given)

    def plan(self) -> Path:
        file = self._home / "plan"
        file.write_bytes(pickle.dumps(self.planner.plan()))
        return file

    def commit(self) -> None:
        self.committer.commit([pickle.loads((self._home / "plan.report").read_bytes())])


def audited(kafka: KafkaCluster, topic: str, rows: int) -> Audit:
    """The result of an independent reader for this number of rows."""
    return audit(Checker(Source(kafka.direct_servers, topic), _row), rows, _AUDIT_S)


def _row(row: Row) -> int:
    return int((row.value() or b"")[:DIGITS])
