"""A real Kafka and a real Spark for the tests of this directory, and who shares what of them.

`make test` runs tests side by side. Each worker has its own broker, since it starts in a
second, and an open decision of one test would hold up another one that reads the same partition
of the log. What shares something else follows each other in one worker: the tests of a file with
fixtures of its own, and files that need Spark. It begins first, and the other tests fill what time
is left, so that no worker is alone at the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from traceback import StackSummary, walk_stack
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyspark
import pytest
from kafka.net.selector import NetworkSelector
from pyspark.sql import SparkSession

from eos_sink_lab.testing import KafkaCluster, Security, start_kafka
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from integration.cluster_query import ClusterQuery
from integration.in_process import Run
from integration.own_kafka import start_own_kafka
from integration.query import Query
from integration.secured_query import ANNS_WORD
from integration.spark_apps import Applications
from integration.spark_program import CLASSES_VARIABLE, SOURCE, spark_session
from integration.spark_query import SparkQuery

DEFAULT_VERSION = "4.3.0"

# Those of a row share a session of Spark.
SPARK = {
    "spark": (
        "test_spark.py",
        "test_foreach_batch.py",
        "test_inline_spark.py",
        "test_async_progress.py",
    ),
    "spark-writes": (
        "test_batch.py",
        "test_drop_in.py",
        "test_ways.py",
        "test_migrate.py",
        "test_checkpoint.py",
        "test_source_offsets.py",
    ),
}
_HERE = "integration/"
_UNIT_OF = {f"{_HERE}{name}": unit for unit, names in SPARK.items() for name in names}
# What each worker has anyway.
_EVERYWHERE = frozenset({"kafka", "io_threads", "closed_clients", "spark_classes"})


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Tell pytest-xdist what stays together; put what takes longest first, and the tests without a
    broker last.

    Raises:
        pytest.UsageError: pytest-xdist does not do it. It names the group in the id of a test,
            which pytest 9.2 no longer lets it change.
    """
    for item in items:
        unit = _unit_of(item)
        if unit is not None:
            item.add_marker(pytest.mark.xdist_group(unit))
    yield
    units = {item: _unit_of(item) for item in items}
    if config.getoption("loadgroup", default=False):
        alone = [item for item, unit in units.items() if unit and not item.nodeid.endswith(unit)]
        if alone:
            raise pytest.UsageError(f"pytest-xdist does not keep {alone[0].nodeid} in its group.")
    sizes = Counter(units.values())
    place = {file: number for number, file in enumerate(_UNIT_OF)}

    def rank(item: pytest.Item) -> tuple[bool, int, int]:
        file, unit = _file_of(item), units[item]
        size = 0 if unit is None else sizes[unit]
        return not file.startswith(_HERE), place.get(file, len(place)), -size

    items.sort(key=rank)


def _unit_of(item: pytest.Item) -> str | None:
    """What stays together in one worker; None if the test may run anywhere."""
    file = _file_of(item)
    if file in _UNIT_OF:
        return _UNIT_OF[file]
    long = item.get_closest_marker("long") is not None
    found = getattr(item, "_fixtureinfo", None)
    fixtures = {} if found is None else found.name2fixturedefs
    shares = any(
        # One of pytest's own has no place.
        defined[-1].scope != "function" and defined[-1].baseid
        for name, defined in fixtures.items()
        if name not in _EVERYWHERE
    )
    return file if shares or not (long or file.startswith(_HERE)) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail where a worker would start one more Spark for a file."""
    uses = "spark" in getattr(item, "fixturenames", ())
    if uses and _file_of(item) not in _UNIT_OF and item.get_closest_marker("long") is None:
        pytest.fail("This file uses Spark: add it to SPARK in integration/conftest.py.")


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


_Threads = WeakKeyDictionary[threading.Thread, StackSummary]
_CLOSES_S = 5.0


@pytest.fixture(scope="session")
def io_threads() -> _Threads:
    """The threads of kafka-python's clients, and where each was started. They run until the client
    is closed."""
    threads, start = _Threads(), NetworkSelector.start

    def start_and_note(selector: Any) -> None:
        start(selector)
        stack = StackSummary.extract(walk_stack(None), limit=20, lookup_lines=False)
        threads[selector._io_thread] = stack

    NetworkSelector.start = start_and_note
    return threads


@pytest.fixture(scope="module", autouse=True)
def closed_clients(io_threads: _Threads) -> Iterator[None]:
    """Fail a module that leaves a client of kafka-python open: its thread and connections stay
    until the process ends. Clients in other processes are not seen."""
    before = {thread for thread in io_threads if thread.is_alive()}
    yield
    for thread in set(io_threads) - before:
        # A client that was closed just now may not have waited for it.
        thread.join(_CLOSES_S)
    left = [thread for thread in io_threads if thread.is_alive() and thread not in before]
    stacks = (
        [at for at in io_threads[thread] if "site-packages" not in at.filename] for thread in left
    )
    made = ["".join(StackSummary.from_list(reversed(stack)).format()) for stack in stacks]
    assert not left, "\n\n".join(["Clients of kafka-python were not closed; made here:", *made])


class MakeRun(Protocol):
    """Makes a query of the test's own process; `options` with `_` for `.`."""

    def __call__(self, cluster: KafkaCluster, **options: str) -> Run: ...


MakeQuery = Callable[..., Query]
"""Makes a query of minispark on a cluster; `options` with `_` for `.`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`@pytest.mark.kafka("4.3.0", "3.9.1")` runs a test on each of these versions.

    All but the first are part of `make test-long` only.
    """
    if "kafka" in metafunc.fixturenames:
        marks = list(metafunc.definition.iter_markers("kafka"))
        first, *others = marks[0].args if marks else (DEFAULT_VERSION,)
        versions = [first, *(pytest.param(each, marks=pytest.mark.long) for each in others)]
        metafunc.parametrize("kafka", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """One broker, ended when the last test that needs it is over."""
    start = start_kafka if request.param == DEFAULT_VERSION else start_own_kafka
    with start(version=request.param) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured() -> Iterator[KafkaCluster]:
    """One broker where clients log in, and may do what they were allowed."""
    with start_own_kafka(security=Security({"ann": ANNS_WORD})) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def linked() -> Iterator[KafkaCluster]:
    """One broker behind a link, which a test that strikes it heals."""
    with start_own_kafka(proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def forgetful() -> Iterator[KafkaCluster]:
    """A broker that forgets idle transactional and producer ids after seconds instead of days."""
    expiry = dict.fromkeys(("transactional.id.expiration.ms", "producer.id.expiration.ms"), 5000)
    looks = {
        "transaction.remove.expired.transaction.cleanup.interval.ms": 200,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
        "producer.id.expiration.check.interval.ms": 200,
    }
    with start_own_kafka(properties={**expiry, **looks}) as cluster:
        yield cluster


@pytest.fixture
def query_on(tmp_path: Path) -> Iterator[MakeQuery]:
    """Queries of minispark; their processes are ended with the test."""
    with ExitStack() as ending:

        def make(cluster: KafkaCluster, **options: str) -> Query:
            directory = Path(tempfile.mkdtemp(dir=tmp_path))
            return ending.enter_context(closing(Query(cluster, directory, **options)))

        yield make


@pytest.fixture
def query(kafka: KafkaCluster, query_on: MakeQuery) -> Query:
    return query_on(kafka)


@pytest.fixture
def run() -> Iterator[MakeRun]:
    """Queries of this process, closed with the test."""
    made: list[Run] = []

    def make(cluster: KafkaCluster, **options: str) -> Run:
        named = {name.replace("_", "."): value for name, value in options.items()}
        made.append(Run(cluster, named))
        return made[-1]

    yield make
    for each in made:
        with contextlib.suppress(Exception):  # The cluster may have gone.
            each.end_open()
        each.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Three brokers, each behind a link, and three controllers."""
    properties = {
        # Ten seconds by default until it is noticed that a transaction has timed out.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    }
    with start_own_kafka(brokers=3, properties=properties, proxied=True) as started:
        yield started


@pytest.fixture
def cluster_query(cluster: KafkaCluster, tmp_path: Path) -> Iterator[ClusterQuery]:
    """A query of minispark on the cluster, which is whole again afterwards."""
    with closing(ClusterQuery(cluster, tmp_path)) as query:
        yield query
    cluster.repair()


@pytest.fixture(scope="session")
def spark_classes() -> Path:
    """Spark's classes as its JVM has parsed them: the first run keeps them for those to come."""
    java = find_java()
    tag = hashlib.sha256(f"{java.executable} {java.version}".encode()).hexdigest()[:12]
    archive = cache_root() / "spark" / f"classes-{pyspark.__version__}-{tag}.jsa"
    archive.parent.mkdir(parents=True, exist_ok=True)
    os.environ[CLASSES_VARIABLE] = str(archive)
    return archive


@pytest.fixture(scope="session")
def spark(spark_classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """For runs that are not killed; the others are programs of their own."""
    draft = spark_classes.with_name(f".{spark_classes.name}.{os.getpid()}")
    dump = "" if spark_classes.exists() else f"-XX:ArchiveClassesAtExit={draft} -Xlog:cds=off"
    session = spark_session(java=dump)
    default = str(tmp_path_factory.mktemp("checkpoints"))
    session.conf.set("spark.sql.streaming.checkpointLocation", default)
    # A query with state starts a task for each, and the topics here have three partitions.
    session.conf.set("spark.sql.shuffle.partitions", "3")
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    assert gateway is not None
    # The JVM ends with its input.
    gateway.proc.stdin.close()
    gateway.proc.wait()
    if draft.exists():
        draft.rename(spark_classes)


@pytest.fixture(scope="session")
def both(spark: SparkSession) -> SparkSession:
    """A running JVM takes Spark's own sink in: no second one is needed."""
    for jar in sorted(spark_kafka_jars(print).glob("*.jar")):
        spark.sql(f"ADD JAR '{jar}'")
    return spark


@pytest.fixture(scope="session")
def applications(
    spark_classes: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Applications]:
    """Drivers of their own, which can be killed."""
    with closing(Applications(tmp_path_factory.mktemp("applications"))) as applications:
        yield applications


@pytest.fixture
def way() -> str:
    """The way into the sink, unless a test has it as a parameter."""
    return SOURCE


@pytest.fixture
def spark_query(
    kafka: KafkaCluster, spark: SparkSession, applications: Applications, tmp_path: Path, way: str
) -> Iterator[SparkQuery]:
    """A query of real Spark; its programs are ended with the test."""
    with closing(SparkQuery(kafka, spark, applications, tmp_path, way)) as query:
        yield query
