"""Builds the files of a release, and tests each as installed by pip.

    python -m tools.distributions DIRECTORY

The wheel and the source distribution are in DIRECTORY/dist afterwards. Each is installed into an
environment outside of this tree, where the command has to run and Spark has to find the
format.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from eos_sink_lab.testing.java import spark_environment
from proof.matrix.environments import build_wheel, install

# The sink's own error shows that Spark has found it: a write without options is refused.
_LOOK_UP = """
import sys
import eos_sink
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
assert eos_sink.__file__.startswith(sys.prefix), eos_sink.__file__
spark = SparkSession.builder.master("local[1]").config("spark.log.level", "OFF").getOrCreate()
try:
    spark.range(1).write.format("kafka-eos").mode("append").save()
except PySparkException as error:
    assert "eos_sink.errors.ConfigurationError" in str(error), error
else:
    raise AssertionError("a write without options was not refused")
gateway = spark.sparkContext._gateway
spark.stop()
# The JVM ends with its input; until then it needs its jars.
gateway.proc.stdin.close()
gateway.proc.wait()
"""
_PATIENCE_S = 300.0


def main() -> int:
    wheel = build_wheel(Path(sys.argv[1]).absolute())
    for file in sorted(wheel.parent.iterdir()):
        with tempfile.TemporaryDirectory() as home:
            python = install(
                Path(home, "venv"), Path(sys.executable), file, f"pyspark=={version('pyspark')}"
            )
            _run(home, str(python.with_name("eos-sink")), "--version")
            _run(home, str(python), "-c", _LOOK_UP)
        sys.stdout.write(f"{file}: installed, runs, and Spark finds the format\n")
    return 0


def _run(home: str, *command: str) -> None:
    """Run it where nothing of this tree is on the path; its error ends the whole."""
    environ = spark_environment(Path(home, "venv", "bin", "python"))
    subprocess.run(command, cwd=home, env=environ, timeout=_PATIENCE_S, check=True)


if __name__ == "__main__":
    sys.exit(main())
