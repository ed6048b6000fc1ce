"""Faults of a Spark session."""

from __future__ import annotations

import base64
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from pyspark import cloudpickle

from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.doctor.findings import Check, Level
from eos_sink.ops.doctor.python import make_look
from eos_sink.ops.doctor.spark import SparkFacts, check_spark, group_executors
from tests.ops.doctor.cases import PYTHON

WELL = SparkFacts(
    "4.2.0",
    found=True,
    lookup_python="/opt/venv/bin/python",
    settings={"spark.master": "yarn", "spark.python.unix.domain.socket.enabled": "true"},
    executors=[PYTHON],
)


def setting(name: str, value: str) -> dict[str, Any]:
    return {"settings": {**WELL.settings, name: value}}


def executor(**changes: Any) -> dict[str, Any]:
    return {"executors": [PYTHON, replace(PYTHON, hosts=("host-2",), **changes)]}


def with_version(name: str, version: str) -> Any:
    return executor(versions={**PYTHON.versions, name: version})


def test_without_faults_every_check_is_ok() -> None:
    found = check_spark(PYTHON, WELL)
    assert list(found) == [Check.FORMAT, Check.EXECUTORS, Check.SPARK]
    assert [[each.level for each in some] for some in found.values()] == [[Level.OK]] * 3


CASES: list[tuple[Check, Level, dict[str, Any], str, str]] = [
    (Check.FORMAT, Level.FAILURE, {"found": False}, "asked /opt/venv", "export PYSPARK_PYTHON="),
    (
        Check.FORMAT,
        Level.WARNING,
        {"pinned": False},
        "PYSPARK_PIN_THREAD",
        "export PYSPARK_PIN_THREAD=true",
    ),
    (Check.EXECUTORS, Level.UNSEEN, {"executors": Unseen("Spark Connect")}, "Spark Connect", ""),
    (
        Check.EXECUTORS,
        Level.FAILURE,
        with_version("eos-sink", ""),
        "eos-sink is not in /opt/venv/bin/python of host-2",
        "/opt/venv/bin/python -m pip install eos-sink",
    ),
    (
        Check.EXECUTORS,
        Level.FAILURE,
        with_version("pyarrow", "9.0"),
        "pyarrow 9.0; the sink is made for 15 or newer, on host-2",
        "pip install 'pyarrow>=15'",
    ),
    (
        Check.EXECUTORS,
        Level.WARNING,
        with_version("eos-sink", "0.0.9"),
        "eos-sink 0.0.9 on host-2, 0.1.0 here",
        "eos-sink==0.1.0",
    ),
    (
        Check.EXECUTORS,
        Level.FAILURE,
        executor(unreachable={"kafka-2:9092": "timed out"}),
        "host-2 cannot reach kafka-2:9092: timed out",
        "nc -vz kafka-2 9092",
    ),
    (
        Check.EXECUTORS,
        Level.FAILURE,
        executor(login="No such file: /etc/ca.pem"),
        "host-2 cannot log in: No such file: /etc/ca.pem",
        "on each host",
    ),
    (
        Check.SPARK,
        Level.FAILURE,
        setting("spark.speculation", " True "),
        "spark.speculation=true",
        "--conf spark.speculation=false",
    ),
    (
        Check.SPARK,
        Level.WARNING,
        setting("spark.task.maxFailures", "1"),
        "spark.task.maxFailures=1",
        "--conf spark.task.maxFailures=4",
    ),
    (
        Check.SPARK,
        Level.WARNING,
        setting("spark.python.unix.domain.socket.enabled", "false"),
        "spark.python.unix.domain.socket.enabled is not true",
        "--conf spark.python.unix.domain.socket.enabled=true",
    ),
    (
        Check.SPARK,
        Level.WARNING,
        setting("spark.executor.pyspark.memory", "2g"),
        "spark.executor.pyspark.memory=2g, for 1 cores",
        "Remove it",
    ),
    (
        Check.SPARK,
        Level.WARNING,
        {
            "settings": {
                **WELL.settings,
                "spark.executor.pyspark.memory": "4096",
                "spark.executor.cores": "2",
            }
        },
        "spark.executor.pyspark.memory=4096, for 2 cores",
        "Remove it",
    ),
    (
        Check.SPARK,
        Level.OK,
        setting("spark.executor.pyspark.memory", "3g"),
        "spark.executor.pyspark.memory=3g",
        "",
    ),
    (
        Check.SPARK,
        Level.WARNING,
        setting("spark.python.worker.reuse", "false"),
        "spark.python.worker.reuse=false",
        "--conf spark.python.worker.reuse=true",
    ),
    (
        Check.SPARK,
        Level.FAILURE,
        setting("spark.datasource.kafka-eos.topik", ""),
        "spark.datasource.kafka-eos.topik: no such option",
        "docs/options.md",
    ),
    (
        Check.SPARK,
        Level.OK,
        setting("spark.datasource.kafka-eos.topic", ""),
        "eos_sink.register(spark): spark.datasource.kafka-eos.topic",
        "",
    ),
]


CASES += [
    (Check.FORMAT, level, {"found": False, "has_sources": False, **changes}, what, remedy)
    for level, changes, what, remedy in (
        (Level.OK, {}, "foreachBatch(eos_sink.foreach_batch(options))", ""),
        (Level.FAILURE, {"classic": False}, "Spark Connect", "Use a classic session"),
        (Level.FAILURE, {"pinned": False}, "PYSPARK_PIN_THREAD", "export PYSPARK_PIN_THREAD=true"),
        (Level.FAILURE, {"map_error": "No module: 'distutils'"}, "distutils", "3.11"),
        (Level.FAILURE, {"map_error": "Pandas >= 1.0.5 must be installed"}, "Pandas", "pandas>="),
        (
            Level.FAILURE,
            {"map_error": "PyArrow >= 4.0.0 must be installed"},
            "PyArrow",
            "pyarrow>=",
        ),
        (Level.FAILURE, {"map_error": "Connection reset"}, "Connection reset", "pandas>="),
    )
]


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_only_the_package_that_is_missing_is_to_be_installed(missing: str) -> None:
    error = f"ModuleNotFoundError: No module named '{missing}'"
    without = replace(WELL, found=False, has_sources=False, map_error=error)
    (finding,) = check_spark(PYTHON, without)[Check.FORMAT][:1]
    (remedy,) = finding.remedy
    assert f"pip install '{missing}>=" in remedy


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].value}: {case[3]}")
def test_a_fault_is_reported_with_its_remedy(
    case: tuple[Check, Level, dict[str, Any], str, str],
) -> None:
    check, level, changes, what, remedy = case
    found = check_spark(PYTHON, replace(WELL, **changes))
    matching = [each for each in found[check] if each.level is level and what in each.what]
    assert len(matching) == 1, found
    assert remedy in "\n".join(matching[0].remedy)


def test_a_spark_without_unix_domain_sockets_gets_no_advice_about_them() -> None:
    settings = {"spark.master": "yarn"}
    found = check_spark(PYTHON, replace(WELL, settings=settings, has_sockets=False))
    assert [each.level for each in found[Check.SPARK]] == [Level.OK]


def test_equal_executors_are_reported_once() -> None:
    seen = {**make_look()(), "hosts": ("a",)}
    found = group_executors([seen, {**seen, "hosts": ("b",)}, seen, {**seen, "executable": "/x"}])
    assert sorted(each.hosts for each in found) == [("a",), ("a", "b")]


def test_an_executor_without_the_sink_can_be_inspected() -> None:
    """The pickled function must not import the package."""
    pickled: bytes = cloudpickle.dumps(make_look())  # type: ignore[no-untyped-call]
    text = base64.b64encode(pickled).decode()
    program = (
        "import base64, pickle, sys\n"
        "for name in ('eos_sink', 'confluent_kafka'): sys.modules[name] = None\n"
        f"seen = pickle.loads(base64.b64decode('{text}'))()\n"
        "print(seen['versions']['eos-sink'] == '', bool(seen['versions']['pyarrow']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "True True\n", done.stderr
