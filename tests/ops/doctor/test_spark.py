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
from eos_sink.ops.doctor.findings import Finding, Level, run_checks
from eos_sink.ops.doctor.python import make_look
from eos_sink.ops.doctor.spark import SPARK_CHECKS, SparkFacts, group_executors
from tests.ops.doctor.cases import COMMANDS, PYTHON

WELL = SparkFacts(
    PYTHON,
    "4.2.0",
    found=True,
    lookup_python="/opt/venv/bin/python",
    settings={"spark.master": "yarn", "spark.python.unix.domain.socket.enabled": "true"},
    executors=[PYTHON],
)


def check(facts: SparkFacts) -> dict[str, list[Finding]]:
    return run_checks(SPARK_CHECKS, facts, COMMANDS.grant)


def setting(name: str, value: str) -> dict[str, Any]:
    return {"settings": {**WELL.settings, name: value}}


def executor(**changes: Any) -> dict[str, Any]:
    return {"executors": [PYTHON, replace(PYTHON, hosts=("host-2",), **changes)]}


def with_version(name: str, version: str) -> Any:
    return executor(versions={**PYTHON.versions, name: version})


def test_without_faults_every_check_is_ok() -> None:
    found = check(WELL)
    assert list(found) == ["format", "executors", "Spark settings"]
    assert [[each.level for each in some] for some in found.values()] == [[Level.OK]] * 3


CASES: list[tuple[str, Level, dict[str, Any], str, str]] = [
    ("format", Level.FAILURE, {"found": False}, "asked /opt/venv", "export PYSPARK_PYTHON="),
    (
        "format",
        Level.WARNING,
        {"pinned": False},
        "PYSPARK_PIN_THREAD",
        "export PYSPARK_PIN_THREAD=true",
    ),
    ("executors", Level.UNSEEN, {"executors": Unseen("Spark Connect")}, "Spark Connect", ""),
    (
        "executors",
        Level.FAILURE,
        with_version("eos-sink", ""),
        "eos-sink is not in /opt/venv/bin/python of host-2",
        "/opt/venv/bin/python -m pip install eos-sink",
    ),
    (
        "executors",
        Level.FAILURE,
        with_version("pyarrow", "9.0"),
        "pyarrow 9.0; the sink is made for 15 or newer, on host-2",
        "pip install 'pyarrow>=15'",
    ),
    (
        "executors",
        Level.WARNING,
        with_version("eos-sink", "0.0.9"),
        "eos-sink 0.0.9 on host-2, 0.1.0 here",
        "eos-sink==0.1.0",
    ),
    (
        "executors",
        Level.FAILURE,
        executor(unreachable={"kafka-2:9092": "timed out"}),
        "host-2 cannot reach kafka-2:9092: timed out",
        "nc -vz kafka-2 9092",
    ),
    (
        "executors",
        Level.FAILURE,
        executor(login="No such file: /etc/ca.pem"),
        "host-2 cannot log in: No such file: /etc/ca.pem",
        "on each host",
    ),
    (
        "Spark settings",
        Level.FAILURE,
        setting("spark.speculation", " True "),
        "spark.speculation=true",
        "--conf spark.speculation=false",
    ),
    (
        "Spark settings",
        Level.WARNING,
        setting("spark.task.maxFailures", "1"),
        "spark.task.maxFailures=1",
        "--conf spark.task.maxFailures=4",
    ),
    (
        "Spark settings",
        Level.WARNING,
        setting("spark.python.unix.domain.socket.enabled", "false"),
        "spark.python.unix.domain.socket.enabled is not true",
        "--conf spark.python.unix.domain.socket.enabled=true",
    ),
    (
        "Spark settings",
        Level.WARNING,
        setting("spark.executor.pyspark.memory", "2g"),
        "spark.executor.pyspark.memory=2g, for 1 cores",
        "Remove it",
    ),
    (
        "Spark settings",
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
        "Spark settings",
        Level.OK,
        setting("spark.executor.pyspark.memory", "3g"),
        "spark.executor.pyspark.memory=3g",
        "",
    ),
    (
        "Spark settings",
        Level.WARNING,
        setting("spark.python.worker.reuse", "false"),
        "spark.python.worker.reuse=false",
        "--conf spark.python.worker.reuse=true",
    ),
    (
        "Spark settings",
        Level.FAILURE,
        setting("spark.datasource.kafka-eos.topik", ""),
        "spark.datasource.kafka-eos.topik: no such option",
        "docs/options.md",
    ),
    (
        "Spark settings",
        Level.OK,
        setting("spark.datasource.kafka-eos.topic", ""),
        "eos_sink.register(spark): spark.datasource.kafka-eos.topic",
        "",
    ),
]


CASES += [
    ("format", level, {"found": False, "has_sources": False, **changes}, what, remedy)
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
    (finding,) = check(without)["format"][:1]
    (remedy,) = finding.remedy
    assert f"pip install '{missing}>=" in remedy


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[3]}")
def test_a_fault_is_reported_with_its_remedy(
    case: tuple[str, Level, dict[str, Any], str, str],
) -> None:
    name, level, changes, what, remedy = case
    found = check(replace(WELL, **changes))
    matching = [each for each in found[name] if each.level is level and what in each.what]
    assert len(matching) == 1, found
    assert remedy in "\n".join(matching[0].remedy)


def test_a_spark_without_unix_domain_sockets_gets_no_advice_about_them() -> None:
    settings = {"spark.master": "yarn"}
    found = check(replace(WELL, settings=settings, has_sockets=False))
    assert [each.level for each in found["Spark settings"]] == [Level.OK]


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
