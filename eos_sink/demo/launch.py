"""Starting the driver the way a user would, with settings that suit a small machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import eos_sink
from eos_sink.testing.java import spark_environment
from eos_sink.testing.process_tree import ProcessTree

PROGRAM = Path(__file__).parent / "programs" / "flights_to_kafka.py"
FALLBACK = "kafka-at-least-once"
"""A writer in Python for the comparison, where Spark's own sink cannot be had."""

_FALLBACK_PATH = Path(__file__).parent / "programs" / "fallback"

# The driver starts again and again: what its JVM does once a start is kept short. Spark's own
# classes need no check (measured: a tenth of the CPU time of a start), and short lives no C2.
_DEFAULTS = """\
spark.master                     local[2]
spark.driver.memory              640m
spark.driver.host                127.0.0.1
spark.driver.extraJavaOptions    {java_options}
spark.ui.enabled                 false
spark.ui.showConsoleProgress     false
spark.sql.shuffle.partitions     4
spark.sql.adaptive.enabled       false
spark.sql.warehouse.dir          {work}/warehouse
spark.local.dir                  {work}/scratch
"""

_JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions "
    "-XX:-BytecodeVerificationRemote"
)

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class Program:
    """The user's program with its arguments: every life of the driver is the same command.

    Attributes:
        name: of the run, for people.
        work: directory of this run: checkpoint, Spark's files, the driver's log.
        flights: directory of the input.
        bootstrap: the cluster.
        topic: where the flights go.
        sink: the word in `writeStream.format(...)`.
        watchdog: what the environment of the driver has to hold.
        jars: a directory of jars that the sink needs, if any.
    """

    name: str
    work: Path
    flights: Path
    bootstrap: str
    topic: str
    sink: str
    watchdog: Mapping[str, str]
    jars: Path | None = None

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint"

    def write_settings(self) -> None:
        """Spark's settings and where it logs: once, before the first start."""
        conf = self.work / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        defaults = _DEFAULTS.format(work=self.work, java_options=_JAVA_OPTIONS)
        if self.jars is not None:
            defaults += f"spark.driver.extraClassPath      {self.jars}/*\n"
        (conf / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
        (conf / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")

    def start(self, life: int, environ: Mapping[str, str] = os.environ) -> ProcessTree:
        """Start the driver; `life` numbers its log."""
        command = [sys.executable, str(PROGRAM), str(self.flights), str(self.checkpoint)]
        command += ["--bootstrap-servers", self.bootstrap, "--topic", self.topic]
        command += ["--format", self.sink]
        return ProcessTree(command, self.work / f"driver-{life}.log", self._environ(environ))

    def _environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        # From a clone that is not installed the package is found by its directory.
        root = Path(eos_sink.__file__).parent.parent
        fallback = str(_FALLBACK_PATH) if self.sink == FALLBACK else ""
        paths = [str(root), fallback, environ.get("PYTHONPATH", "")]
        return {
            **spark_environment(environ=environ),
            **self.watchdog,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "SPARK_CONF_DIR": str(self.work / "conf"),
        }
