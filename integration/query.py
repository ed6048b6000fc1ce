"""The test's side of `integration.minispark`: one query, its processes and what it has written."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from eos_sink.decision_log import DecisionRegister, LogEntry
from eos_sink.driver.planner import Planner
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.protocol.values import TransactionStatus
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import (
    TIMELINE_VARIABLE,
    FaultPoint,
    Faults,
    Strike,
    read_timeline,
)
from eos_sink_lab.testing.process_tree import wait_stopped
from eos_sink_lab.testing.waiting import wait_until
from integration import minispark, reading_spark
from integration.checker import Rows, assert_each_once, read_topic
from integration.minispark import (
    DONE,
    PIECES,
    STOPPED,
    Arm,
    Checkpoint,
    Config,
    arrow,
    sink_options,
)
from integration.query_state import take_id
from integration.topics import delete_topic, unique
from proof import trace

VERSIONS = pytest.mark.kafka("4.3.0", "3.9.1")
"""Tests of what the versions of Kafka answer differently."""
PARTITIONS, ROWS = 3, 8
# Far more than such rows have.
INLINE_BYTES = 4096
# Longer than any wait here, so that a transaction that was left open is noticed.
TRANSACTION_MS = 90_000
PATIENCE_S = 75.0
_LOOK_AGAIN_S = 0.01


def rows_of(batch: int, counts: Sequence[int] = (ROWS,) * PARTITIONS) -> list[list[str]]:
    """The rows of each partition of a batch, told apart as batch-partition-number."""
    return [[f"{batch}-{p}-{i}" for i in range(count)] for p, count in enumerate(counts)]


def flat(partitions: list[list[str]]) -> list[str]:
    return [row for rows in partitions for row in rows]


def spread_over(count: int, partitions: list[list[str]]) -> list[list[str]]:
    rows = flat(partitions)
    return [rows[number::count] for number in range(count)]


# A fork of a process that has imported everything is a third as dear as a new interpreter. The
# parent of all is a process without threads, hence no client of pytest's own is inherited.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", minispark.__name__, reading_spark.__name__])


Program = Callable[[str, dict[str, str], str], None]
"""Takes the path of a configuration, environment variables, and the path of what it says."""


class Process:
    """One process of minispark.

    Args:
        program: runs in it.
    """

    def __init__(
        self, directory: Path, config: Config, program: Program = minispark.process
    ) -> None:
        self._target = program
        self.faults = Faults(directory / "faults")
        self.results = Path(config.results)
        self._said = directory / "said"
        self._timeline = directory / "timeline"
        environment = {
            **self.faults.environment,
            TIMELINE_VARIABLE: str(self._timeline),
            "EOS_TRACE": str(directory.with_name(trace.FILE)),
        }
        config.write(directory / "config.json")
        self._launch(directory, environment)

    def _launch(self, directory: Path, environment: dict[str, str]) -> None:
        self._process = _FORKS.Process(
            target=self._target,
            args=(str(directory / "config.json"), environment, str(self._said)),
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def end(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        return self._process.exitcode

    def wait_ready(self) -> None:
        """Until it has started and begins to work."""
        deadline = Deadline(PATIENCE_S)
        while not (self.results / minispark.READY).exists():
            assert not deadline.passed, f"it did not start; {self.said}"
            time.sleep(_LOOK_AGAIN_S)

    def ends_within(self, seconds: float) -> bool:
        self._process.join(seconds)
        return self.end is not None

    def finished(self) -> None:
        """Wait for a good end."""
        assert self._end() == DONE, self.said

    def stopped(self, *kinds: type[Exception]) -> dict[str, Any]:
        """Wait for an end with an error of one of these kinds; what a user would see of it."""
        assert self._end() == STOPPED, self.said
        error: dict[str, Any] = json.loads((self.results / "error.json").read_text())
        known = [each.__name__ for kind in kinds for each in (kind, *kind.__subclasses__())]
        assert error["error"] in known, self.said
        return error

    def killed_at(self, point: FaultPoint) -> None:
        """Wait for the end at an armed point."""
        end = self._end()
        assert self.faults.fired(point) == self.pid, f"{point} was not reached; {self.said}"
        assert end == -signal.SIGKILL, self.said

    def paused_at(self, point: FaultPoint) -> None:
        """Wait until it has stopped itself at an armed point."""
        deadline = Deadline(PATIENCE_S)
        while self.faults.fired(point) is None:
            assert self.end is None, f"{point} was not reached; {self.said}"
            assert not deadline.passed, f"{point} was not reached; {self.said}"
            time.sleep(_LOOK_AGAIN_S)
        wait_stopped(self.pid, deadline)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    @property
    def said(self) -> str:
        text = self._said.read_text()[-4000:] if self._said.exists() else "nothing"
        stopped = self.results / "error.json"
        return f"it said: {text}{stopped.read_text() if stopped.exists() else ''}"

    def written(self, batch: int) -> list[int] | None:
        """The partitions that were written before the decision; None: it did not come so far."""
        return self._told(batch, "written")

    def inlined(self, batch: int) -> list[int] | None:
        """The partitions whose rows the driver was given; None: it did not come so far."""
        return self._told(batch, "inlined")

    def passed(self) -> set[str]:
        """The fault points that it has passed."""
        return {entry.point for entry in read_timeline(self._timeline)}

    def reports(self, batch: int) -> Path:
        """What its tasks reported."""
        return self.results / f"reports-{batch}"

    def _told(self, batch: int, what: str) -> list[int] | None:
        log = self.results / "batches.jsonl"
        for line in log.read_text().splitlines() if log.exists() else []:
            told: dict[str, Any] = json.loads(line)
            if told["batch"] == batch:
                partitions: list[int] = told[what]
                return partitions
        return None

    def _end(self) -> int:
        self.ends_within(PATIENCE_S)
        assert self.end is not None, f"it goes on; {self.said}"
        return self.end


class Query:
    """One query with its own topic.

    Attributes:
        batches: the rows of each partition of each batch, as its source has them.
        stream: Spark's own id of the query, kept in its checkpoint.
        pieces: the Arrow batches of a task.
        topics: the rows go to them in turns.
        program: what the processes to come run.
    """

    def __init__(
        self, cluster: KafkaCluster, directory: Path, stream: str = "", **options: str
    ) -> None:
        """`options` are the sink's, with `_` for `.`; `stream` says who numbers the batches."""
        self._cluster = cluster
        self._directory = directory
        self._processes: list[Process] = []
        self._kafka: ConfluentKafka | None = None
        self._register: DecisionRegister | None = None
        self._planner: Planner | None = None
        self.topic = unique("rows")
        self.checkpoint = directory / "checkpoint"
        self.stream = stream or unique("stream")
        self.batches = [rows_of(batch) for batch in range(3)]
        self.pieces = PIECES
        self.topics: list[str] = []
        self.program: Program = minispark.process
        cluster.create_topic(self.topic, partitions=3)
        self._given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "topic": self.topic,
            "eos.id": unique("query"),
            "eos.transaction.timeout.ms": str(TRANSACTION_MS),
            # Each task opens a transaction, unless a test says otherwise.
            "eos.inline.bytes": "0",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        self.options = sink_options(self._given, self.stream)

    def change(self, options: dict[str, str]) -> None:
        """Options for the processes that come, beside those that every query has."""
        self._given.update(options)
        self.options = sink_options(self._given, self.stream)

    def drop(self, option: str) -> None:
        """The processes that come have no such option."""
        self._given.pop(option, None)
        self.change({})

    def inline(self, most_bytes: int = INLINE_BYTES) -> None:
        """Let the driver of the processes that come write partitions of up to so many bytes."""
        self.pieces = 1
        self.change({"eos.inline.bytes": str(most_bytes)})

    def stand_apart(self) -> None:
        """Give the processes that come a decision log and a prefix that no other query has."""
        prefix = f"{unique('own')}-"
        self.change({"eos.log.topic": unique("log"), "eos.transactional.id.prefix": prefix})

    @property
    def reach(self) -> list[str]:
        """What a command has to know to see this query and, if it stands apart, no other."""
        options = self.options
        words = ["--bootstrap-server", options.cluster.servers, "--log-topic", options.log_topic]
        return [*words, "--prefix", options.names.prefix]

    def spread(self) -> None:
        """Let rows go in turns to the topic and to another one."""
        other = f"{self.topic}-other"
        self._cluster.create_topic(other, partitions=PARTITIONS)
        self.to_topics([self.topic, other])

    def to_topics(self, topics: list[str]) -> None:
        """Let the rows of a task go to these topics in turns."""
        self.topics = topics
        self.drop("topic")

    # Processes.

    def run(self, *arms: Arm, fail: tuple[int, int] | None = None) -> Process:
        """Start the query, from its checkpoint."""
        return self._start(arm=arms, fail=list(fail) if fail else None)

    def run_killed_at(self, point: FaultPoint, batch: int = 1, partition: int = 2) -> Process:
        """Start the query; wait until it is killed at `point`, armed in that partition's task."""
        process = self.run(kill_at(point, batch, partition))
        process.killed_at(point)
        return process

    def run_paused_at(self, point: FaultPoint, batch: int = 1, partition: int = 2) -> Process:
        """The same, until it has stopped itself at `point`."""
        process = self.run(pause_at(point, batch, partition))
        process.paused_at(point)
        return process

    def refuses(self, zombie: Process, *kinds: type[Exception]) -> dict[str, Any]:
        """Wake a process that has stopped itself: it ends with an error of one of these kinds, and
        has written nothing to the log; what a user would see of the error."""
        before = self.log()
        zombie.wake()
        error = zombie.stopped(*kinds)
        assert self.log() == before, "it wrote to the log"
        return error

    def call(self, call: str, reports: Path, *arms: Arm) -> Process:
        """`commit` or `abort` of the committer in a separate process."""
        return self._start(arm=arms, reports=str(reports), call=call)

    def call_paused_at(self, call: str, reports: Path, point: FaultPoint) -> Process:
        """The same, until it has stopped itself at `point`."""
        process = self.call(call, reports, pause_at(point, -1, -1))
        process.paused_at(point)
        return process

    def finish(self, most: int = 3, patience_s: float = PATIENCE_S) -> Process:
        """Start the query again until it comes to its end; its last process."""
        for _ in range(most):
            process = self.run()
            if process.ends_within(patience_s) and process.end == DONE:
                return process
        raise AssertionError(f"the query did not finish; {process.said}")

    def _start(self, arm: Sequence[Arm], **more: Any) -> Process:
        directory = self._directory / f"process-{len(self._processes)}"
        directory.mkdir()
        config = Config(
            options=self._given,
            checkpoint=str(self.checkpoint),
            results=str(directory / "results"),
            batches=self.batches,
            stream=self.stream,
            pieces=self.pieces,
            topics=self.topics,
            arm=[vars(a) for a in arm],
            **more,
        )
        process = Process(directory, config, self.program)
        self._processes.append(process)
        return process

    # A session of which only the committer lives in other processes.

    def write(self, batch: int) -> Path:
        """Plan a batch and run its tasks here, where one planner lives on as in a Spark session.

        Returns:
            The reports, for `call`.
        """
        if self._planner is None:
            self._planner = Planner(self.kafka, self.options)
        plan = self._planner.plan()
        rows = Checkpoint(self.checkpoint).planned(batch, self.batches[batch])
        reports: list[TaskReport] = [
            TaskWriter(self.kafka, self.options, plan).write(
                BatchId(self.stream, batch), partition, arrow(values, self.pieces, self.topics)
            )
            for partition, values in enumerate(rows)
        ]
        path = self._directory / unique("reports")
        path.write_bytes(pickle.dumps(reports))
        return path

    def commit_log(self, batch: int) -> None:
        """What Spark does after a good `commit`."""
        Checkpoint(self.checkpoint).commit(batch)

    # The source, and the checkpoint.

    def read_topic(self) -> None:
        """Let the processes that come read a topic that has the rows of all batches, and commit its
        offsets."""
        source = f"{self.topic}-source"
        self._cluster.create_topic(source, PARTITIONS)
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap_servers})
        for partition, values in ((p, v) for batch in self.batches for p, v in enumerate(batch)):
            for value in values:
                producer.produce(source, value, partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        self.program = reading_spark.process
        self.change(
            {
                "subscribe": source,
                "eos.source.group.id": f"{self.topic}-readers",
                "checkpointLocation": str(self.checkpoint),
            }
        )

    def lose_checkpoint(self) -> Path:
        """Take the directory away; return where it is now."""
        return self.checkpoint.rename(self._directory / unique("lost"))

    def replan(self, rows: list[list[str]]) -> None:
        """The source or the checkpoint is not what it was when batch 1 was planned."""
        (self.checkpoint / "offsets" / "1").write_text(json.dumps(rows))

    def restore_checkpoint(self, next_batch: int) -> None:
        """Put back a copy of the checkpoint that knows nothing of `next_batch` and what follows."""
        for log in ("offsets", "commits"):
            for path in (self.checkpoint / log).iterdir():
                if int(path.name) >= next_batch:
                    path.unlink()

    # What is in Kafka.

    @property
    def kafka(self) -> ConfluentKafka:
        if self._kafka is None:
            self._kafka = ConfluentKafka(self.options.cluster)
        return self._kafka

    def log(self) -> LogEntry:
        """The latest record of the decision log."""
        if self._register is None:
            self._register = DecisionRegister(self.kafka, self.options.names)
        return self._register.read(Deadline(PATIENCE_S))

    def decided(self) -> int | None:
        """The number of the latest decided batch."""
        decision = self.log().decision
        return decision.batch.batch if decision else None

    def slot(self) -> int:
        decision = self.log().decision
        assert decision is not None
        return decision.slot

    def task_ids(self, *slots: int) -> list[str]:
        """The transactional ids of all partitions in these slots."""
        names = self.options.names
        return [names.task(slot, partition) for slot in slots for partition in range(PARTITIONS)]

    def wait_forgotten(self, *ids: str) -> None:
        """Until the coordinators know nothing of these transactional ids."""
        control, deadline = self.kafka.control(), Deadline(PATIENCE_S)

        def are_forgotten() -> bool:
            states = control.describe(ids, deadline).values()
            return {state.status for state in states} == {TransactionStatus.MISSING}

        wait_until(are_forgotten, deadline, f"{ids} are forgotten")

    def take_id(self, slot: int, partition: int) -> None:
        take_id(self.kafka, self.options.names, slot, partition)

    def take_all_ids(self) -> None:
        for partition in range(PARTITIONS):
            self.take_id(self.slot(), partition)

    def delete_log(self) -> None:
        """And wait until every broker has heard of it. Its numbers begin again."""
        (self._directory / trace.FILE).unlink(missing_ok=True)
        topic, servers = self.options.log_topic, self._cluster.bootstrap_servers
        delete_topic(servers, topic)
        admin = AdminClient({"bootstrap.servers": servers})
        wait_until(
            lambda: topic not in admin.list_topics(timeout=30).topics,
            Deadline(30),
            f"{topic} is gone",
        )

    def visible(self) -> Rows:
        """All that a reader sees, once none is held up."""
        return read_topic(self._cluster.bootstrap_servers, self.topic)

    def check(self, batches: int | None = None) -> None:
        """Every row of the batches is visible once and in order, no reader is held up, and the
        steps of all processes were in the order that the protocol needs."""
        assert not trace.find_wrong_steps(self._directory)
        wanted = [row for batch in self.batches[:batches] for part in batch for row in part]
        rows = self.visible()
        assert_each_once(rows, wanted)
        for partition in range(3):
            numbers = [tuple(map(int, row.split("-"))) for row in rows.of(partition)]
            assert [n[0] for n in numbers] == sorted(n[0] for n in numbers), "batches are mixed"
            by_task: dict[tuple[int, ...], list[int]] = {}
            for number in numbers:
                by_task.setdefault(number[:2], []).append(number[2])
            for order in by_task.values():
                assert order == sorted(order), "rows of a task are out of order"

    def close(self) -> None:
        for process in self._processes:
            process.kill()
        for client in (self._planner, self._register, self._kafka):
            if client is not None:
                client.close()


def kill_at(point: FaultPoint, batch: int = 0, partition: int = -1) -> Arm:
    return Arm(point.value, Strike.KILL_PROCESS.value, batch, partition)


def pause_at(point: FaultPoint, batch: int = 0, partition: int = -1) -> Arm:
    return Arm(point.value, Strike.PAUSE.value, batch, partition)
