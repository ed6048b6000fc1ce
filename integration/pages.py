"""Runs what is in the pages of the documentation, as their reader would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pyspark

from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.java import spark_environment
from eos_sink_lab.testing.spark_jars import spark_kafka_jars

# Spark's Kafka source, which a reader's Spark downloads.
_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
_OURS = ("EOS_BOOTSTRAP", "EOS_KAFKA")

# Stands for a user who waits until rows have gone through the query.
WAIT = """
def _rows_went_through(query):
    import time
    until = time.monotonic() + 150
    while not any(p["numInputRows"] for p in query.recentProgress):
        assert query.isActive and time.monotonic() < until, query.exception() or "no rows"
        time.sleep(0.2)
"""


def adapted(text: str, kafka: KafkaCluster, place: Path) -> str:
    text = text.replace("localhost:9092", kafka.bootstrap_servers)
    text = re.sub(r'"(/var/spark|/tmp)/', f'"{place}/', text)
    text = re.sub(r"^query\.lastProgress.*$", "_rows_went_through(query)", text, flags=re.MULTILINE)
    if re.search(r"--packages|jars\.packages", text):
        text = text.replace(f"--packages {_PACKAGE}", f"--jars {kafka_jars()}")
        text = text.replace('"spark.jars.packages", package', f'"spark.jars", "{kafka_jars()}"')
        assert "packages" not in text, f"it would download another one than {_PACKAGE}"
    return text.replace("query.awaitTermination()", "_rows_went_through(query)\nquery.stop()")


def kafka_jars() -> str:
    """Spark's Kafka source from the cache, for `spark.jars`."""
    return ",".join(str(jar) for jar in sorted(spark_kafka_jars(print).glob("*.jar")))


def run(command: list[str], cwd: Path, timeout_s: float, python: Path, **environ: str) -> str:
    """Run a program that starts Spark, to its good end; what it prints.

    Args:
        python: what Spark's processes run.
        environ: beside what Spark needs, and without the tests' own settings.
    """
    given = spark_environment(python)
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**{name: value for name, value in given.items() if name not in _OURS}, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "\tat " not in line]
    assert done.returncode == 0, "\n".join(said)[-9000:]
    return done.stdout
