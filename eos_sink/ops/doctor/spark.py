"""A Spark session and its executors, looked at from inside a job."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.doctor.clients import Python
from eos_sink.ops.doctor.python import as_python, looker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMAT = "kafka-eos"
_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
# Of each core of the cluster, so that a short job comes to every executor.
_TASKS = 4
_SETTINGS = (
    "spark.master",
    "spark.python.unix.domain.socket.enabled",
    "spark.python.worker.reuse",
    "spark.speculation",
    "spark.task.maxFailures",
)
_DEFAULTS = "spark.datasource."


@dataclass(frozen=True)
class Executor:
    """A Python of Spark's on some host, and what it reaches.

    Attributes:
        hosts: where there is one like it.
        unreachable: why it cannot reach a broker, by "host:port".
        login: why it cannot log in; empty: it can, or was not asked to.
    """

    hosts: tuple[str, ...]
    python: Python
    unreachable: Mapping[str, str] = field(default_factory=dict)
    login: str = ""


@dataclass(frozen=True)
class SparkFacts:
    """What was seen of a session.

    Attributes:
        found: Spark finds the sink's format.
        lookup_python: with which Spark looks formats up: PYSPARK_PYTHON of the driver's process.
        settings: those that matter here, as far as they are set; without values of defaults.
        executors: those that differ in something.
    """

    version: str
    found: bool
    lookup_python: str
    settings: Mapping[str, str]
    executors: Sequence[Executor] | Unseen


def look_at_spark(addresses: Sequence[str], kafka: Mapping[str, str]) -> SparkFacts:
    """Make or take the session, and run one short job in it.

    Args:
        addresses: of the brokers, "host:port".
        kafka: the query's settings, to log in with.
    """
    with warnings.catch_warnings():
        # spark-submit puts what a program says on its standard error on the standard output.
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        ours = SparkSession.getActiveSession() is None
        session = SparkSession.builder.appName("eos-sink doctor").getOrCreate()
        try:
            return _look(session, addresses, kafka)
        finally:
            if ours:
                session.stop()


def _look(session: SparkSession, addresses: Sequence[str], kafka: Mapping[str, str]) -> SparkFacts:
    given = _settings(session)
    return SparkFacts(
        version=session.version,
        found=_is_found(session),
        lookup_python=os.environ.get("PYSPARK_PYTHON", ""),
        settings=given,
        executors=_executors(session, addresses, kafka),
    )


def _settings(session: SparkSession) -> dict[str, str]:
    """What `spark.datasource.*` says may be a secret, and which names are set is enough."""
    every = session.conf.getAll
    known = dict(every() if callable(every) else every)
    found = {name: known[name] for name in _SETTINGS if name in known}
    return found | {name: "" for name in known if name.startswith(_DEFAULTS)}


def _is_found(session: SparkSession) -> bool:
    """The sink cannot be read from, and an error that says so comes from the sink."""
    try:
        session.read.format(_FORMAT).load()
    except Exception as error:  # noqa: BLE001 - Py4J's, Spark's or ours
        return _NOT_FOUND not in str(error)
    return True


def _executors(
    session: SparkSession, addresses: Sequence[str], kafka: Mapping[str, str]
) -> Sequence[Executor] | Unseen:
    places = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in addresses)]
    look = looker(places, kafka)
    try:
        context = session.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has its own error for it
        return Unseen("Spark Connect runs no such job: start this with spark-submit instead")
    tasks = max(1, context.defaultParallelism) * _TASKS
    try:
        seen = context.parallelize(range(tasks), tasks).map(lambda _: look()).collect()
    except Exception as error:  # noqa: BLE001 - Py4J's
        return Unseen(f"the job failed: {_first_line(error)}")
    return executors_of(seen)


def executors_of(seen: Iterable[Mapping[str, Any]]) -> list[Executor]:
    """Those that are alike, as one."""
    alike: dict[str, tuple[set[str], Mapping[str, Any]]] = {}
    for each in seen:
        same = repr(sorted((k, v) for k, v in each.items() if k != "host"))
        alike.setdefault(same, (set(), each))[0].add(str(each["host"]))
    return [
        Executor(tuple(sorted(hosts)), as_python(one), one["unreachable"], one["login"])
        for hosts, one in alike.values()
    ]


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told or lines or [type(error).__name__])[-1]
