"""The shim in `pyspark_kafka_eos` registers the format and cannot hurt a session.

Each test runs Spark's own look-up of Python data sources in a fresh interpreter, as Spark does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What Spark does when a session first meets a Python data source, then what a planner does with
# what it got. Prints one line of JSON.
LOOK_UP = """
import io, json, sys
from pyspark.serializers import read_int, UTF8Deserializer
from pyspark.sql.worker import lookup_data_sources
from pyspark.worker_util import pickleSer

out = io.BytesIO()
lookup_data_sources._main(io.BytesIO(), out)
out.seek(0)
found = {}
for _ in range(read_int(out)):
    name = UTF8Deserializer().loads(out)
    found[name] = pickleSer._read_with_length(out)
source = found.get("kafka-eos")
answer = {
    "formats": sorted(found),
    "source": source and source.__module__ + "." + source.__qualname__,
}
if source:
    try:
        source({})
    except Exception as error:
        answer["error"] = type(error).__name__
        answer["message"] = str(error)
print(json.dumps(answer))
"""

WITHOUT_CLIENTS = """
import sys
for name in ("confluent_kafka", "kafka", "tenacity"):
    sys.modules[name] = None  # from here on its import raises
"""

# A platform may have Python data sources and the look-up, but no Arrow writer.
OLD_SPARK = """
import pyspark, pyspark.sql.datasource as datasource
pyspark.__version__ = "3.5.2"
del datasource.DataSourceStreamArrowWriter, datasource.DataSourceArrowWriter
"""

BROKEN_SINK = """
import sys
sys.modules["eos_sink"] = None
"""

NO_DATA_SOURCES = """
import sys
sys.modules["pyspark.sql.datasource"] = None
import pyspark_kafka_eos
print("{}" if not hasattr(pyspark_kafka_eos, "DefaultSource") else '{"source": "?"}')
"""


def run(*parts: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_spark_finds_the_format_by_the_name_of_the_module() -> None:
    answer = run(LOOK_UP)
    assert answer["formats"] == ["kafka-eos"]
    assert answer["source"] == "eos_sink.spark.data_source.KafkaEosDataSource"


def test_it_is_found_without_the_kafka_clients() -> None:
    answer = run(WITHOUT_CLIENTS, LOOK_UP)
    assert answer["source"] == "eos_sink.spark.data_source.KafkaEosDataSource"


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        (OLD_SPARK, "DataSourceArrowWriter"),
        (OLD_SPARK, "pyspark 3.5.2"),
        (BROKEN_SINK, "eos_sink"),
    ],
)
def test_where_the_sink_cannot_work_the_session_lives_and_the_format_says_why(
    environment: str, cause: str
) -> None:
    answer = run(environment, LOOK_UP)
    assert answer["formats"] == ["kafka-eos"]
    assert answer["error"] == "ImportError"
    assert cause in answer["message"]
    assert "pyspark 4.0 or newer" in answer["message"]
    assert "Nothing was written" in answer["message"]


def test_a_pyspark_without_data_sources_is_left_alone() -> None:
    assert run(NO_DATA_SOURCES) == {}
