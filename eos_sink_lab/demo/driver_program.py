"""Starts the driver as a user does, with settings for a small machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import eos_sink
from eos_sink_lab.testing.java import spark_environment
from eos_sink_lab.testing.process_tree import ProcessTree

_PROGRAM = Path(__file__).parent / "programs" / "flights_to_kafka.py"

# The driver starts many times, so the JVM's start is kept short: Spark's own classes are not
# verified (measured: a tenth of the CPU time of a start), and C2 does not pay off.
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
class DriverProgram:
    """The user's program and its arguments. Each start of the driver is the same command.

    Attributes:
        name: of the run.
        work: the run's directory: checkpoint, Spark's files, the driver's logs.
        flights: directory of the input.
        bootstrap: the cluster.
        topic: where the flights go.
        sink: the argument of `writeStream.format(...)`.
        watchdog: environment variables for the driver.
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
        """Write Spark's settings; once, before the first start."""
        conf = self.work / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        defaults = _DEFAULTS.format(work=self.work, java_options=_JAVA_OPTIONS)
        if self.jars is not None:
            defaults += f"spark.driver.extraClassPath      {self.jars}/*\n"
        (conf / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
        (conf / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")

    def start(self, number: int) -> ProcessTree:
        """Start the driver; `number` names its log."""
        command: list[object] = [sys.executable, _PROGRAM, self.flights, self.checkpoint]
        command += ["--bootstrap-servers", self.bootstrap, "--topic", self.topic]
        command += ["--format", self.sink]
        # Without an installation the package is found by its directory.
        paths = [str(Path(eos_sink.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environ = {
            **spark_environment(),
            **self.watchdog,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SPARK_CONF_DIR": str(self.work / "conf"),
        }
        return ProcessTree(command, self.work / f"driver-{number}.log", environ)
