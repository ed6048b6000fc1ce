"""What a Spark session is like, beside what the sink needs of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.doctor.clients import Python, judge_clients
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.finding import (
    Check,
    Finding,
    Findings,
    Level,
    failure,
    ok,
    unseen,
    warning,
)
from eos_sink.ops.doctor.spark import Executor, SparkFacts
from eos_sink.options import SESSION_PREFIX, Kind, kind_of

_SINK = "eos-sink"


def judge_spark(here: Python, facts: SparkFacts, commands: Commands) -> list[Finding]:
    """All checks of a session."""
    return [
        *_judge_format(facts),
        *_judge_executors(here, facts, commands),
        *_judge_settings(facts),
    ]


def _judge_format(facts: SparkFacts) -> Findings:
    if facts.found:
        yield ok(Check.FORMAT, f"Spark {facts.version} finds kafka-eos")
        return
    asked = facts.lookup_python or "python3 of the PATH"
    yield failure(
        Check.FORMAT,
        f"Spark {facts.version} does not find the format kafka-eos; it has asked {asked}",
        "format('kafka-eos') ends with DATA_SOURCE_NOT_FOUND: formats are looked for with "
        "PYSPARK_PYTHON of the driver's environment, whatever spark.pyspark.python says.",
        f"export PYSPARK_PYTHON={sys.executable}",
        "Or call eos_sink.register(spark) in the program.",
    )


def _judge_executors(here: Python, facts: SparkFacts, commands: Commands) -> Findings:
    if isinstance(facts.executors, Unseen):
        yield unseen(Check.EXECUTORS, "what executors find", facts.executors, commands)
        return
    for executor in facts.executors:
        found = [*_python(here, executor), *_way(executor)]
        yield from found or [ok(Check.EXECUTORS, _described(executor))]


def _python(here: Python, executor: Executor) -> Iterator[Finding]:
    python, where = executor.python, _where(executor)
    version = python.versions.get(_SINK, "")
    if not version:
        yield failure(
            Check.EXECUTORS,
            f"eos-sink is not in {python.executable} of {where}",
            "Every task fails with a ModuleNotFoundError.",
            f"On each of these hosts: {python.executable} -m pip install eos-sink",
            "Or name the Python that has it: --conf spark.pyspark.python=PATH (docs/ways.md has "
            "more ways).",
        )
        return
    for each in judge_clients(python):
        if each.level is not Level.OK:
            yield replace(each, check=Check.EXECUTORS, what=f"{each.what}, on {where}")
    if version != here.versions.get(_SINK):
        yield warning(
            Check.EXECUTORS,
            f"eos-sink {version} on {where}, {here.versions.get(_SINK)} here",
            "Driver and tasks have to understand each other's plans and reports.",
            f"On each of these hosts: {python.executable} -m pip install "
            f"eos-sink=={here.versions.get(_SINK)}",
        )


def _way(executor: Executor) -> Iterator[Finding]:
    where = _where(executor)
    for address, why in sorted(executor.unreachable.items()):
        yield failure(
            Check.EXECUTORS,
            f"{where} cannot reach {address}: {why}",
            "A task there waits for the partitions and coordinators of that broker, then fails.",
            f"Open the way; this tells there whether it is: nc -vz {address.replace(':', ' ')}",
        )
    if executor.login and not executor.unreachable:
        yield failure(
            Check.EXECUTORS,
            f"{where} cannot log in: {executor.login.splitlines()[0]}",
            "Every task there fails. What worked here is not the same there.",
            "Files that options name (kafka.ssl.*.location) have to be there on each host.",
        )


def _judge_settings(facts: SparkFacts) -> Findings:
    found = [*_speculation(facts), *_failures(facts), *_speed(facts), *_defaults(facts)]
    told = ", ".join(f"{name}={value}" for name, value in sorted(facts.settings.items()) if value)
    yield from found or [ok(Check.SPARK, told)]


def _speculation(facts: SparkFacts) -> Iterator[Finding]:
    if facts.settings.get("spark.speculation", "false").strip().lower() == "true":
        yield failure(
            Check.SPARK,
            "spark.speculation=true",
            "Two attempts of one task cannot hold one transaction: the query is stopped by its "
            "first task.",
            "--conf spark.speculation=false",
        )


def _failures(facts: SparkFacts) -> Iterator[Finding]:
    master = facts.settings.get("spark.master", "")
    if not master.startswith("local") and facts.settings.get("spark.task.maxFailures") == "1":
        yield warning(
            Check.SPARK,
            "spark.task.maxFailures=1",
            "A task that fails once, with its executor perhaps, ends the query.",
            "--conf spark.task.maxFailures=4",
        )


def _speed(facts: SparkFacts) -> Iterator[Finding]:
    if facts.settings.get("spark.python.unix.domain.socket.enabled", "false").lower() != "true":
        yield warning(
            Check.SPARK,
            "spark.python.unix.domain.socket.enabled is not true",
            "Only time is lost: delayed acknowledgements cost a micro-batch some 40 ms.",
            "--conf spark.python.unix.domain.socket.enabled=true",
        )
    if facts.settings.get("spark.python.worker.reuse", "true").lower() == "false":
        yield warning(
            Check.SPARK,
            "spark.python.worker.reuse=false",
            "Only time is lost: each task starts a Python, and makes its clients anew.",
            "--conf spark.python.worker.reuse=true",
        )


def _defaults(facts: SparkFacts) -> Iterator[Finding]:
    names = sorted(name for name in facts.settings if name.startswith(SESSION_PREFIX))
    unknown = [n for n in names if kind_of(n.removeprefix(SESSION_PREFIX)) is Kind.UNKNOWN]
    if unknown:
        yield failure(
            Check.SPARK,
            f"{', '.join(unknown)}: no such option",
            "The program is stopped where it calls eos_sink.register(spark).",
            "Correct the name: docs/options.md has them all.",
        )
    if names:
        yield ok(
            Check.SPARK,
            f"defaults of options, for programs that call eos_sink.register(spark): "
            f"{', '.join(names)}",
        )


def _described(executor: Executor) -> str:
    python = executor.python
    return (
        f"{_where(executor)}: {python.executable} ({python.version}), eos-sink "
        f"{python.versions[_SINK]}, librdkafka {python.librdkafka}; all brokers reached"
    )


def _where(executor: Executor) -> str:
    shown = ", ".join(executor.hosts[:5])
    return shown if len(executor.hosts) <= 5 else f"{shown} and {len(executor.hosts) - 5} more"
