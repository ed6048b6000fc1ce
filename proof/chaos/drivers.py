"""The drivers of the query: their commands, and how each ended."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eos_sink_lab.testing.faults import DIRECTORY_VARIABLE, TIMELINE_VARIABLE
from eos_sink_lab.testing.java import spark_environment
from eos_sink_lab.testing.process_tree import ProcessTree, find_last_error
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.waiting import to_stderr
from integration.standalone import StandaloneCluster
from proof import trace
from proof.chaos.kinds import Master

_ROOT = Path(__file__).parents[2]
_ERROR = re.compile(r"eos_sink\.errors\.(\w+Error)")
_NEEDS_A_PERSON = ("OperatorNeededError", "ConfigurationError")
_WORDS = 600

# The driver is restarted often: keep the start of its JVM short.
_SPARK = {
    "spark.driver.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.adaptive.enabled": "false",
    # One task reads a file, however large, which keeps the order of its rows.
    "spark.sql.files.minPartitionNum": "1",
}


@dataclass(frozen=True)
class End:
    """How a driver ended.

    Attributes:
        code: its exit code; above 128 or below 0: killed.
        error: the error class of the sink; empty: another error.
        text: the error message, shortened.
    """

    code: int
    error: str
    text: str

    @property
    def needs_a_person(self) -> bool:
        """A restart would not help (docs/errors.md)."""
        return self.error in _NEEDS_A_PERSON


class Life:
    """One driver, with its JVM and its Python processes.

    Args:
        stands_by: it starts its session, and its query when `go` is called.

    Attributes:
        number: from 0.
        master: where its tasks run.
        started: seconds since the epoch; of one that stood by, when its query was.
        timeline: the file in which its processes record the points that they pass.
        processes: all its processes.
    """

    def __init__(
        self, number: int, master: Master, home: Path, command: Command, stands_by: bool = False
    ) -> None:
        self.number, self.master = number, master
        self.timeline = home / "timeline.jsonl"
        self._error, self._go = home / "error", home / "go"
        home.mkdir(parents=True)
        config = home / "config.json"
        variables = command.variables(self.timeline)
        given = command.config(self._error, variables, self._go if stands_by else None)
        config.write_text(json.dumps(given, indent=1))
        self.started = time.time()
        self.processes = ProcessTree(
            [sys.executable, "-m", "proof.chaos.program", config],
            home / "driver.log",
            {**command.environ(), **variables},
        )

    @property
    def alive(self) -> bool:
        return self.processes.alive

    def has_committed(self) -> bool:
        """True once its driver has committed a batch, or tried to."""
        return self.timeline.exists() and b'"committer"' in self.timeline.read_bytes()

    def go(self, command: Command) -> None:
        """Let one that stands by start this query."""
        draft = self._go.with_suffix(".new")
        draft.write_text(json.dumps(command.query))
        self.started = time.time()
        draft.rename(self._go)

    def end(self) -> End:
        """How the driver ended; call it only after that."""
        code = self.processes.exit_code
        assert code is not None
        text = self._error.read_text() if self._error.exists() else ""
        return ending(code, text or find_last_error(self.processes.read_log()))


class Command:
    """The command of a driver, apart from its files.

    Args:
        query: the program's settings: input, options of the sink, and so on.
        faults: the directory in which points are armed.
        scratch: for Spark's own files.
        watchdog: environment variables for the watchdog.
        cluster: where tasks run; None: in the driver's JVM.
    """

    def __init__(
        self,
        query: dict[str, Any],
        faults: Path,
        scratch: Path,
        watchdog: Mapping[str, str],
        cluster: StandaloneCluster | None,
    ) -> None:
        self.query, self._faults, self._scratch = query, faults, scratch
        self._watchdog, self._cluster = watchdog, cluster

    def variables(self, timeline: Path) -> dict[str, str]:
        """Environment variables of all processes, including executors."""
        return {
            DIRECTORY_VARIABLE: str(self._faults),
            TIMELINE_VARIABLE: str(timeline),
            "EOS_TRACE": str(self._faults.with_name(trace.FILE)),
        }

    def config(
        self, error: Path, variables: dict[str, str], go: Path | None = None
    ) -> dict[str, Any]:
        spark = dict(_SPARK)
        spark["spark.local.dir"] = str(self._scratch)
        spark["spark.sql.warehouse.dir"] = str(self._scratch / "warehouse")
        if self.query["input"] is None:
            jars = f"{spark_kafka_jars(to_stderr)}/*"
            spark |= {f"spark.{each}.extraClassPath": jars for each in ("driver", "executor")}
        if self._cluster is None:
            spark["spark.master"] = "local[2]"
        else:
            spark |= {"spark.master": self._cluster.url, **self._cluster.conf}
            for name, value in {**variables, "PYTHONPATH": str(_ROOT)}.items():
                spark[f"spark.executorEnv.{name}"] = value
        waits = str(go) if go else None
        return {**self.query, "error": str(error), "go": waits, "spark": spark}

    def environ(self) -> dict[str, str]:
        return {**spark_environment(), **self._watchdog, "PYTHONPATH": str(_ROOT)}


def ending(code: int, text: str) -> End:
    """Read the end of a driver's log."""
    found = _ERROR.findall(text)
    return End(code, found[-1] if found else "", _shortened(text))


MakeCommand = Callable[[Master], Command]


def _shortened(text: str) -> str:
    for mark in ("eos_sink.errors.", "Error: ", "Exception: "):
        if mark in text:
            text = text[text.index(mark) :]
            break
    return " ".join(text.split())[:_WORDS]
