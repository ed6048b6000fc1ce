"""Checks of a Spark session and its executors, from inside a job."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eos_sink.identity import SESSION_PREFIX
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.cluster_config import Translation
from eos_sink.ops.doctor.findings import (
    Checks,
    Finding,
    Level,
    Problems,
    Verdict,
    judge,
    require,
    shorten,
)
from eos_sink.ops.doctor.python import LIBRARIES, Python, check_clients, make_look
from eos_sink.options import Kind, kind_of
from eos_sink.spark.classic_session import is_classic, pins_threads, read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SINK, _FORMAT = "eos-sink", "kafka-eos"
_UNPINNED, _PIN = "PYSPARK_PIN_THREAD is not true", "export PYSPARK_PIN_THREAD=true"
_WITHOUT_FORMAT = "eos_sink.foreach_batch and eos_sink.write"
# Per core of the cluster, so that a short job reaches every executor.
_TASKS_PER_CORE = 4
_SPECULATION = "spark.speculation"
_MAX_FAILURES = "spark.task.maxFailures"
_SOCKET = "spark.python.unix.domain.socket.enabled"
_REUSE = "spark.python.worker.reuse"
_MEMORY, _CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
_SETTINGS = ("spark.master", _SOCKET, _REUSE, _SPECULATION, _MAX_FAILURES, _MEMORY, _CORES)
# It limits the address space of each Python worker, of which each thread of librdkafka reserves
# some 70 MB: with three brokers a worker has used 2.3 GB of it, and 234 MB of memory.
_LEAST_MB = 3072
_UNITS_MB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}


@dataclass(frozen=True)
class SparkFacts:
    """A session.

    Attributes:
        here: the driver's Python.
        found: Spark finds the sink's format.
        lookup_python: the Python with which Spark looks up formats, by the driver's environment.
        settings: those that matter here, if set; options of data sources without their values.
        executors: one for each group of equal ones.
        has_sources: it has the class that the format implements; Spark 3.5 does not.
        has_sockets: it can exchange data with Python over Unix domain sockets; Spark 4.0 cannot.
        classic: not of Spark Connect.
        pinned: PYSPARK_PIN_THREAD is true, its default.
        map_error: why `mapInArrow` fails, without which a Spark without the class cannot write;
            empty: it works, or is not needed.
    """

    here: Python
    version: str
    found: bool
    lookup_python: str
    settings: Mapping[str, str]
    executors: Sequence[Python] | Unseen
    has_sources: bool = True
    has_sockets: bool = True
    classic: bool = True
    pinned: bool = True
    map_error: str = ""


def look_at_spark(here: Python, addresses: Sequence[str], client: Translation) -> SparkFacts:
    """Get or create the session, and run one short job in it.

    Args:
        here: the driver's.
        addresses: of the brokers, "host:port".
        client: the query's settings, to log in with.
    """
    with warnings.catch_warnings():
        # spark-submit sends a program's standard error to standard output.
        warnings.simplefilter("ignore")
        from pyspark import accumulators
        from pyspark.sql import SparkSession

        ours = SparkSession.getActiveSession() is None
        session = SparkSession.builder.appName("eos-sink doctor").getOrCreate()
        try:
            classic = is_classic(session)
            has_sources = _has_sources()
            known = read_settings(session)
            settings = {name: known[name] for name in _SETTINGS if name in known}
            # The value of an option may be a secret.
            settings |= {name: "" for name in known if name.startswith("spark.datasource.")}
            return SparkFacts(
                here=here,
                version=session.version,
                found=has_sources and _has_format(session),
                lookup_python=_lookup_python(),
                settings=settings,
                executors=_look_at_executors(
                    session, make_look(addresses, client, here.versions[_SINK])
                ),
                has_sources=has_sources,
                # Came with the setting.
                has_sockets=hasattr(accumulators, "AccumulatorUnixServer"),
                classic=classic,
                pinned=pins_threads(),
                map_error="" if has_sources or not classic else _try_map(session),
            )
        finally:
            if ours:
                session.stop()


def _lookup_python() -> str:
    names = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    return next(filter(None, map(os.environ.get, names)), "")


def _has_sources() -> bool:
    """The class, not the version, tells: platforms port it back."""
    try:
        from pyspark.sql import datasource
    except ImportError:
        return False
    return hasattr(datasource, "DataSourceArrowWriter")


def _try_map(session: SparkSession) -> str:
    """Return why `mapInArrow` fails, or "". Spark 3.5 needs pandas for it, on driver and executors,
    and a Python with `distutils`."""
    tasks = max(1, session.sparkContext.defaultParallelism) * _TASKS_PER_CORE
    try:
        session.range(tasks, numPartitions=tasks).mapInArrow(lambda rows: rows, "id long").collect()
    except Exception as error:  # noqa: BLE001 - Py4J's or Python's
        return _find_cause(error)
    return ""


def _find_cause(error: Exception) -> str:
    """The last line of an error that names an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error" in line or "Exception" in line]
    return (causes or lines or [type(error).__name__])[-1]


def _has_format(session: SparkSession) -> bool:
    """The sink cannot be read from: an error that says so is the sink's."""
    try:
        session.read.format(_FORMAT).load()
    except Exception as error:  # noqa: BLE001 - Py4J's, Spark's or ours
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True


def _look_at_executors(
    session: SparkSession, look: Callable[[], dict[str, Any]]
) -> Sequence[Python] | Unseen:
    try:
        context = session.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has its own error for it
        return Unseen("Spark Connect runs no such job: start this with spark-submit instead")
    tasks = max(1, context.defaultParallelism) * _TASKS_PER_CORE
    try:
        seen = context.parallelize(range(tasks), tasks).map(lambda _: look()).collect()
    except Exception as error:  # noqa: BLE001 - Py4J's
        return Unseen(f"the job failed: {_find_cause(error)}")
    return group_executors(seen)


def group_executors(seen: Iterable[Mapping[str, Any]]) -> list[Python]:
    """Merge executors that differ in their hosts only."""
    groups: dict[str, list[Python]] = {}
    for each in seen:
        python = Python(**each)
        groups.setdefault(repr(replace(python, hosts=())), []).append(python)
    return [
        replace(group[0], hosts=tuple(sorted({host for each in group for host in each.hosts})))
        for group in groups.values()
    ]


def _check_format(facts: SparkFacts) -> Verdict:
    if not facts.found:
        asked = facts.lookup_python or "python3 of the PATH"
        yield Finding.failure(
            f"Spark {facts.version} does not find the format {_FORMAT}; it has asked {asked}",
            f"format('{_FORMAT}') fails with DATA_SOURCE_NOT_FOUND: Spark looks formats up with "
            "PYSPARK_DRIVER_PYTHON of the driver's environment, else PYSPARK_PYTHON, and not with "
            "spark.pyspark.python.",
            f"unset PYSPARK_DRIVER_PYTHON; export PYSPARK_PYTHON={sys.executable}",
            "Or call eos_sink.register(spark) in the program.",
        )
    if facts.classic and not facts.pinned:
        yield Finding.warning(
            _UNPINNED,
            "A batch write inside foreachBatch does not see its query, so every df.write without "
            "txnAppId and txnVersion is refused.",
            _PIN,
        )
    return f"Spark {facts.version} finds {_FORMAT}"


def _check_map(facts: SparkFacts) -> Verdict:
    """The other way in, of a Spark without the class that the format implements."""
    if not facts.classic:
        yield Finding.failure(
            f"Spark {facts.version} has no data sources in Python, and the session is one of Spark "
            "Connect",
            f"{_WITHOUT_FORMAT} refuse Spark Connect.",
            "Use a classic session (spark-submit, SparkSession.builder.master), or Spark 4.0.",
        )
    if facts.map_error:
        yield Finding.failure(
            f"mapInArrow fails: {facts.map_error}",
            f"{_WITHOUT_FORMAT} write through it, so every write fails.",
            *_remedies_of_map(facts.map_error),
        )
    if not facts.pinned:
        yield Finding.failure(
            _UNPINNED,
            f"{_WITHOUT_FORMAT} do not see which query runs them, and refuse to write.",
            _PIN,
        )
    return (
        f"Spark {facts.version} has no data sources in Python: write with "
        "foreachBatch(eos_sink.foreach_batch(options)) or eos_sink.write(frame, options) "
        "(docs/spark-3.5.md)"
    )


def _remedies_of_map(error: str) -> list[str]:
    """The remedy for what the error names, or all of them if it names none."""
    install = f"On driver and executors: {sys.executable} -m pip install"
    remedies = {
        "distutils": "Use Python 3.10 or 3.11 on driver and executors.",
        "pandas": f"{install} 'pandas>=2.2.2,<3'",
        "pyarrow": f"{install} 'pyarrow>={LIBRARIES['pyarrow'][1]}'",
    }
    named = [remedy for what, remedy in remedies.items() if what in error.lower()]
    return named or [*remedies.values()]


def _check_executors(facts: SparkFacts) -> Problems:
    seen = require(facts.executors, "what executors find")
    yield from judge(*(_check_executor(facts.here, python) for python in seen))


def _check_executor(here: Python, python: Python) -> Verdict:
    where = shorten(python.hosts)
    yield from _check_python(here, python, where)
    for address, why in sorted(python.unreachable.items()):
        yield Finding.failure(
            f"{where} cannot reach {address}: {why}",
            "A task there waits for the partitions and coordinators of that broker, then fails.",
            f"Open the way; this shows there whether it is: nc -vz {address.replace(':', ' ')}",
        )
    if python.login and not python.unreachable:
        yield Finding.failure(
            f"{where} cannot log in: {python.login.splitlines()[0]}",
            "Every task there fails, although the login works on this machine.",
            "Files that options name (kafka.ssl.*.location) have to be there on each host.",
        )
    return (
        f"{where}: {python.executable} ({python.version}), eos-sink "
        f"{python.versions.get(_SINK)}, librdkafka {python.librdkafka}; all brokers reached"
    )


def _check_python(here: Python, python: Python, where: str) -> Problems:
    version, wanted = python.versions.get(_SINK, ""), here.versions.get(_SINK)
    install = f"On each of these hosts: {python.executable} -m pip install eos-sink"
    if not version:
        yield Finding.failure(
            f"eos-sink is not in {python.executable} of {where}",
            "Every task fails with a ModuleNotFoundError.",
            install,
            "Or name the Python that has it: export PYSPARK_PYTHON=PATH (docs/deployment.md "
            "has more ways).",
        )
        return
    for each in check_clients(python):
        yield replace(each, what=f"{each.what}, on {where}")
    if version != wanted:
        yield Finding.warning(
            f"eos-sink {version} on {where}, {wanted} here",
            "Driver and tasks have to understand each other's plans and reports.",
            f"{install}=={wanted}",
        )


def _worker_mb(settings: Mapping[str, str]) -> float:
    """The address space of a Python worker; without a unit Spark means MB."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", settings.get(_MEMORY, "").strip().lower())
    if found is None:
        return math.inf
    return int(found[1]) * _UNITS_MB[found[2] or "m"] / int(settings.get(_CORES, "1"))


def _check_settings(facts: SparkFacts) -> Verdict:
    settings = facts.settings

    def setting(name: str, default: str) -> str:
        return settings.get(name, default).strip().lower()

    local = settings.get("spark.master", "").startswith("local")
    rules = (
        (
            setting(_SPECULATION, "false") == "true",
            Finding.failure,
            f"{_SPECULATION}=true",
            "Two attempts of one task cannot hold one transaction: the first task stops the query.",
            f"--conf {_SPECULATION}=false",
        ),
        (
            setting(_MAX_FAILURES, "4") == "1" and not local,
            Finding.warning,
            f"{_MAX_FAILURES}=1",
            "One failure of one task, such as the loss of an executor, ends the query.",
            f"--conf {_MAX_FAILURES}=4",
        ),
        (
            facts.has_sockets and setting(_SOCKET, "false") != "true",
            Finding.warning,
            f"{_SOCKET} is not true",
            "Only time is lost: delayed acknowledgements of TCP cost about 40 ms in each step of a "
            "batch and about 50 ms in each task.",
            f"--conf {_SOCKET}=true",
        ),
        (
            setting(_REUSE, "true") == "false",
            Finding.warning,
            f"{_REUSE}=false",
            "Only time is lost: each task starts a Python and creates its Kafka clients.",
            f"--conf {_REUSE}=true",
        ),
        (
            _worker_mb(settings) < _LEAST_MB,
            Finding.warning,
            f"{_MEMORY}={settings.get(_MEMORY)}, for {settings.get(_CORES, '1')} cores",
            "A Python worker may abort without a word: it limits the address space of each to its "
            f"part for one core, and librdkafka's threads need up to {_LEAST_MB} MB of that.",
            "Remove it: the sink's memory is bounded (docs/performance.md#memory).",
        ),
    )
    yield from (level(*texts) for wrong, level, *texts in rules if wrong)
    reader = "eos_sink.register(spark)" if facts.has_sources else "eos_sink.foreach_batch"
    names = sorted(name for name in settings if name.startswith(SESSION_PREFIX))
    unknown = [n for n in names if kind_of(n.removeprefix(SESSION_PREFIX)) is Kind.UNKNOWN]
    if unknown:
        yield Finding.failure(
            f"{', '.join(unknown)}: no such option",
            f"The program stops where it calls {reader}.",
            "Correct the name: docs/options.md has them all.",
        )
    if names:
        what = f"defaults of options, for programs that call {reader}: "
        yield Finding(Level.OK, what + ", ".join(names))
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()) if value)


SPARK_CHECKS: Checks[SparkFacts] = {
    "format": lambda facts: (_check_format if facts.has_sources else _check_map)(facts),
    "executors": _check_executors,
    "Spark settings": _check_settings,
}
