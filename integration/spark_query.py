"""The test's side of `integration.spark_program`: one query, its files, its runs and crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eos_sink.clients.cluster import ConfluentKafka
from eos_sink.deadline import Deadline
from eos_sink.options import SinkOptions, parse_options
from eos_sink.testing import KafkaCluster
from eos_sink.testing.faults import Action, FaultPoint, Faults
from eos_sink.testing.victims import kill_session
from integration import spark_program
from integration.checker import Rows, read_topic

TASKS = 2
PARTITIONS = 3
ROWS = 40
PATIENCE_S = 120.0
DONE, STOPPED = 0, 3
_LOOK_AGAIN_S = 0.1


class Run:
    """The query as a program of its own, which can be killed."""

    def __init__(self, home: Path, config: dict[str, Any], faults: Faults) -> None:
        home.mkdir()
        self._error = home / "error"
        self._log = home / "log"
        given = home / "config.json"
        given.write_text(json.dumps({**config, "error": str(self._error)}))
        program = Path(spark_program.__file__)
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                [sys.executable, str(program), str(given)],
                start_new_session=True,
                stdout=log,
                stderr=log,
                env={**os.environ, **faults.environment},
            )

    @property
    def session(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    @property
    def said(self) -> str:
        return self._log.read_text()[-4000:]

    def stopped(self) -> str:
        """Wait until the query has stopped with an error; its text."""
        assert self._popen.wait(PATIENCE_S) == STOPPED, self.said
        return self._error.read_text()

    def killed(self) -> None:
        """Wait until a fault has ended it."""
        assert self._popen.wait(PATIENCE_S) not in (DONE, STOPPED), self.said
        self.end()

    def workers(self) -> list[int]:
        """Planner, committer and task processes: what Spark's daemons have forked."""
        found = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,sess=,args="], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        rows = [line.split(None, 3) for line in found]
        # The forks carry the command line of their daemon.
        python = {
            pid: parent
            for pid, parent, session, command in rows
            if int(session) == self.session and "pyspark.daemon" in command
        }
        return [int(pid) for pid, parent in python.items() if parent in python]

    def end(self) -> None:
        kill_session(self.session)
        self._popen.wait(PATIENCE_S)


class SparkQuery:
    """One query with a topic of its own.

    Attributes:
        expected: the rows of all files so far.
        columns: what the query selects, changeable before a run.
        options: of the sink, likewise.
    """

    def __init__(self, kafka: KafkaCluster, spark: SparkSession, home: Path) -> None:
        self.kafka = kafka
        self.home = home
        self.topic = f"out-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.checkpoint = home / "checkpoint"
        self.faults = Faults(home / "faults")
        self.expected: list[str] = []
        self.columns = ["value", "split(value, '-')[1] AS key"]
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": self.topic,
            "checkpointLocation": str(self.checkpoint),
            "eos.step.timeout.ms": "60000",
        }
        self._spark = spark
        self._input = home / "input"
        self._input.mkdir()
        self._runs: list[Run] = []
        self._clients: list[ConfluentKafka] = []

    def add_batch(self, rows: int = ROWS) -> None:
        """One more file, which becomes one more batch."""
        number = len(list(self._input.iterdir()))
        texts = [f"{number}-{i % 7}-{i}" for i in range(rows)]
        self.write_file(number, texts)
        self.expected += texts

    def write_file(self, number: int, texts: list[str]) -> None:
        hidden = self.home / "new"
        hidden.write_text("".join(f"{text}\n" for text in texts))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(self._input / f"{number:04}.txt")

    def finish(self) -> None:
        """Write all that is there."""
        query = spark_program.start(self._spark, self._config({"availableNow": True}))
        assert query.awaitTermination(int(PATIENCE_S))

    def fail(self) -> str:
        """Run into an error; its text."""
        try:
            self.finish()
        except PySparkException as error:
            return str(error)
        raise AssertionError("the query went on")

    def program(self, trigger: dict[str, Any] | None = None) -> Run:
        """Start it as a program of its own, with its fault points."""
        config = self._config(trigger or {"availableNow": True})
        run = Run(self.home / f"run-{len(self._runs)}", config, self.faults)
        self._runs.append(run)
        return run

    def crash(self, point: FaultPoint, action: Action = Action.KILL_ALL) -> None:
        """A run that dies at a point."""
        self.faults.arm(point, action)
        run = self.program()
        self.faults.wait_fired(point, PATIENCE_S)
        run.killed()

    def zombie(self, point: FaultPoint) -> str:
        """A run stopped at `point` that wakes up when its successor has finished; its error."""
        self.faults.arm(point, Action.PAUSE)
        run = self.program()
        paused = self.faults.wait_fired(point, PATIENCE_S)
        self.finish()
        self.assert_exactly_once()
        os.kill(paused, signal.SIGCONT)
        return run.stopped()

    def wait_committed(self, batch: int, run: Run) -> None:
        """Until Spark has written a batch into its commit log."""
        deadline = Deadline(PATIENCE_S)
        while not (self.checkpoint / "commits" / str(batch)).exists():
            assert run.alive, run.said
            assert not deadline.passed, f"batch {batch} is not done; {run.said}"
            time.sleep(_LOOK_AGAIN_S)

    def take_id(self, slot: int, partition: int) -> None:
        """What a late attempt of a task does: init the id, which aborts what is open under it."""
        producer = self.clients().producer(self.sink.names.task(slot, partition), 60_000)
        producer.init(Deadline(PATIENCE_S))
        producer.close()

    @property
    def sink(self) -> SinkOptions:
        return parse_options(self.options)

    def clients(self) -> ConfluentKafka:
        self._clients.append(clients := ConfluentKafka(self.sink))
        return clients

    def log_record(self) -> bytes:
        """The query's latest record in the decision log."""
        deadline = Deadline(PATIENCE_S)
        reader = self.clients().log_reader(deadline)
        found = reader.latest(self.sink.names.query, deadline)
        reader.close()
        assert found is not None
        return found[1]

    def seen(self, topic: str | None = None) -> Rows:
        return read_topic(self.kafka.bootstrap_servers, topic or self.topic)

    def assert_exactly_once(self) -> None:
        assert Counter(self.seen().values()) == Counter(self.expected)

    def close(self) -> None:
        for run in self._runs:
            run.end()
        for clients in self._clients:
            clients.close()

    def _config(self, trigger: dict[str, Any]) -> dict[str, Any]:
        return {
            "input": str(self._input),
            "tasks": TASKS,
            "columns": self.columns,
            "options": self.options,
            "trigger": trigger,
        }
