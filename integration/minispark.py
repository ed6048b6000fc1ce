"""Spark's part in a micro-batch without a JVM, so that a crash test takes a second.

    python -m integration.minispark CONFIG.json

It keeps an offset log and a commit log as Spark does, calls the sink's own planner, tasks and
committer in the order of Spark's MicroBatchExecution and WriteToDataSourceV2Exec, and comes back to
the first batch without a commit after a restart. Each of the three has its own connection
behind the fault points of `eos_sink_lab.testing.faults`. Exit codes: 0 all batches are done, 3 the
query stopped with an error, which is in `error.json`.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId, Numbering, TaskReport
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing.fault_gates import faulty_connect
from eos_sink_lab.testing.faults import (
    DIRECTORY_VARIABLE,
    ROLE_VARIABLE,
    FaultPoint,
    Faults,
    Strike,
)

DONE, STOPPED = 0, 3
READY = "ready"
PIECES = 3


@dataclass(frozen=True)
class Arm:
    """A fault point that is armed when the query comes to a batch, or to a partition of it."""

    point: str
    action: str
    batch: int
    partition: int = -1

    def pull(self) -> None:
        Faults(Path(os.environ[DIRECTORY_VARIABLE])).arm(
            FaultPoint(self.point), Strike(self.action)
        )


@dataclass(frozen=True)
class Config:
    """One run of the query.

    Attributes:
        options: the sink's.
        checkpoint: holds `offsets/` and `commits/`; what is planned already is replayed as it is.
        results: where this run writes `error.json`, `batches.jsonl` and each batch's reports.
        batches: the rows of each partition of each batch.
        stream: of the batches; its start says who numbers them.
        pieces: the Arrow batches of a task; the driver writes the rows of a small single one.
        topics: the rows go to them in turns; none: to that of the options.
        fail: batch and partition of a task that fails between two rows.
        reports: instead of a run, the pickled reports that `call` of the committer is given.
        call: "commit" or "abort".
    """

    options: dict[str, str]
    checkpoint: str
    results: str
    batches: list[list[list[str]]]
    stream: str
    pieces: int = PIECES
    topics: list[str] = field(default_factory=list)
    arm: list[dict[str, Any]] = field(default_factory=list)
    fail: list[int] | None = None
    reports: str = ""
    call: str = ""

    def write(self, path: Path) -> None:
        """Only what is not the default, since an earlier version of this file may read it."""
        given = asdict(self)
        for each in fields(self):
            made = each.default_factory() if callable(each.default_factory) else each.default
            if given[each.name] == made:
                del given[each.name]
        path.write_text(json.dumps(given))


class TaskBrokeOffError(Exception):
    """A row that the user's own code could not compute."""


class ConcurrentRunError(Exception):
    """Another run of the query has finished the batch: Spark's "Concurrent update to the log"."""


class Checkpoint:
    """Spark's offset and commit logs."""

    def __init__(self, directory: Path) -> None:
        self._offsets, self._commits = directory / "offsets", directory / "commits"
        self._offsets.mkdir(parents=True, exist_ok=True)
        self._commits.mkdir(parents=True, exist_ok=True)

    @property
    def next(self) -> int:
        done = [int(path.name) for path in self._commits.iterdir() if path.name.isdecimal()]
        return max(done, default=-1) + 1

    def planned(self, batch: int, rows: list[list[str]]) -> list[list[str]]:
        """The rows of a batch as they were first planned."""
        path = self._offsets / str(batch)
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(rows))
            draft.rename(path)
        planned: list[list[str]] = json.loads(path.read_text())
        return planned

    def commit(self, batch: int) -> None:
        try:
            (self._commits / str(batch)).touch(exist_ok=False)
        except FileExistsError:
            raise ConcurrentRunError(f"batch {batch} is committed already") from None


class MiniSpark:
    """The driver of one query."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._options = sink_options(config.options, config.stream)
        foreach = BatchId(config.stream, 0).numbering is Numbering.FOREACH
        self._run = uuid.uuid4().hex if foreach else ""
        self._results = Path(config.results)
        self._checkpoint = Checkpoint(Path(config.checkpoint))
        self._committer = Committer(connect("committer", self._options), self._options)

    def run(self) -> None:
        planner = Planner(connect("planner", self._options), self._options)
        for batch, rows in self._batches():
            self._arm(batch, -1)
            self._run_batch(planner, batch, rows)
            self._checkpoint.commit(batch)

    def call(self) -> None:
        """One call of the committer in a separate process, as after an interrupted one."""
        self._arm(-1, -1)
        reports = pickle.loads(Path(self._config.reports).read_bytes())
        getattr(self._committer, self._config.call)(reports)

    def _batches(self) -> Iterator[tuple[int, list[list[str]]]]:
        """The batches without a commit, and the rows of each of their partitions."""
        for batch in range(self._checkpoint.next, len(self._config.batches)):
            yield batch, self._checkpoint.planned(batch, self._config.batches[batch])

    def _run_batch(self, planner: Planner, batch: int, rows: list[list[str]]) -> None:
        plan = planner.plan()
        reports: list[TaskReport] = []
        try:
            for partition, values in enumerate(rows):
                self._arm(batch, partition)
                task = TaskWriter(connect("task", self._options), self._options, plan)
                broken = self._config.fail == [batch, partition]
                data = arrow(values, self._config.pieces, self._config.topics, breaks_off=broken)
                numbered = BatchId(self._config.stream, batch)
                reports.append(task.write(numbered, partition, data, self._run))
            self._note(batch, reports)
            self._committer.commit(reports)
        except Exception:
            self._committer.abort(reports, plan.token if self._options.origin.batch else None)
            raise

    def _arm(self, batch: int, partition: int) -> None:
        for given in self._config.arm:
            arm = Arm(**given)
            if (arm.batch, arm.partition) == (batch, partition):
                arm.pull()

    def _note(self, batch: int, reports: list[TaskReport]) -> None:
        """What a test wants to know of a batch before its decision."""
        written = [r.partition for r in reports if r.prepared]
        inlined = [r.partition for r in reports if r.inline]
        draft = self._results / f"reports-{batch}.new"
        draft.write_bytes(pickle.dumps(reports))
        draft.rename(self._results / f"reports-{batch}")
        with (self._results / "batches.jsonl").open("a") as lines:
            lines.write(json.dumps({"batch": batch, "written": written, "inlined": inlined}) + "\n")


def sink_options(given: dict[str, str], stream: str) -> SinkOptions:
    """Of a query, or of the batch writes that such a stream stands for."""
    if BatchId(stream, 0).numbering is Numbering.STREAM:
        return parse_options(given)
    return parse_batch_options(given).sink


def arrow(
    values: list[str],
    pieces: int = PIECES,
    topics: Sequence[str] = (),
    *,
    breaks_off: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Arrow batches, the key being the last part of a value. A task takes two of them before it
    writes, so of three it breaks off behind those."""
    length = -(-len(values) // pieces)
    for number in range(pieces):
        if breaks_off and number == pieces - 1:
            raise TaskBrokeOffError(f"after {number * length} of {len(values)} rows")
        part = values[number * length : (number + 1) * length]
        columns = {"key": [value.rsplit("-", 1)[-1] for value in part], "value": part}
        if topics:
            columns["topic"] = [topics[row % len(topics)] for row in range(len(part))]
        yield pa.RecordBatch.from_arrays([_column(c) for c in columns.values()], [*columns])


def _column(values: list[str]) -> pa.Array:
    """As `pa.array`, which imports pandas for a third of a second a process."""
    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def connect(role: str, options: SinkOptions) -> Any:
    os.environ[ROLE_VARIABLE] = role
    return faulty_connect(options)


def main(path: str, make: type[MiniSpark] = MiniSpark) -> int:
    config = Config(**json.loads(Path(path).read_text()))
    results = Path(config.results)
    results.mkdir(parents=True, exist_ok=True)
    try:
        spark = make(config)
        (results / READY).touch()
        if config.call:
            spark.call()
        else:
            spark.run()
    except (EosSinkError, TaskBrokeOffError, ConcurrentRunError) as error:
        story = {
            "error": type(error).__name__,
            "text": str(error),
            "data": error.data if isinstance(error, EosSinkError) else {},
        }
        (results / "error.json").write_text(json.dumps(story))
        return STOPPED
    return DONE


def process(
    path: str, environment: dict[str, str], said: str, make: type[MiniSpark] = MiniSpark
) -> None:
    """The same in a process that a warm one has forked, which saves it the imports."""
    os.environ.update(environment)
    with Path(said).open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.exit(main(path, make))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
