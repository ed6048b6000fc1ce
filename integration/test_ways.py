"""The ways in to the sink: docs/deployment.md."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

import eos_sink
from eos_sink.identity import SESSION_PREFIX
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import assert_each_once, read_topic
from integration.messages import received
from integration.spark_query import SparkQuery
from integration.standalone import StandaloneCluster
from integration.ways import Section
from proof.matrix.environments import build_wheel, install
from tests.snippets import ROOT

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[RuntimeConfig]:
    """The session's settings; what a test adds is gone afterwards."""
    before = set(spark.conf.getAll)
    yield spark.conf
    for name in set(spark.conf.getAll) - before:
        spark.conf.unset(name)
    eos_sink.register(spark)


@pytest.mark.long
def test_settings_of_the_session_are_defaults_once_it_is_registered(
    spark_query: SparkQuery, spark: SparkSession, conf: RuntimeConfig
) -> None:
    query = spark_query
    query.add_batch()
    settings = {
        f"{SESSION_PREFIX}kafka.bootstrap.servers": query.options.pop("kafka.bootstrap.servers"),
        f"{SESSION_PREFIX}topic": "not-this-one",
    }
    assert "Option kafka.bootstrap.servers is missing" in query.fail()
    for name, value in settings.items():
        conf.set(name, value)
    assert "call eos_sink.register(spark)" in query.fail()
    eos_sink.register(spark)
    query.finish()
    query.assert_exactly_once()
    # Set after that: not applied, and not ignored in silence either.
    conf.set(f"{SESSION_PREFIX}eos.step.timeout.ms", "90000")
    query.options.pop("eos.step.timeout.ms")
    query.add_batch()
    refused = f"he session sets {SESSION_PREFIX}eos.step.timeout.ms"
    assert refused in query.fail()
    row = spark.range(1).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(PySparkException, match=refused):
        row.write.format("kafka-eos").mode("append").option("topic", query.topic).save()
    eos_sink.register(spark)
    query.finish()
    query.assert_exactly_once()


def test_spark_takes_no_updates_to_a_source_in_python(
    kafka: KafkaCluster, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    writer = rows.writeStream.format("kafka-eos").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    query = writer.option("topic", "nowhere").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match="kafka-eos does not support Update mode"):
        query.awaitTermination(60)


@pytest.mark.long
def test_flags_of_spark_submit_are_defaults(kafka: KafkaCluster, tmp_path: Path) -> None:
    section = Section("Settings as defaults", kafka, tmp_path)
    section.follow({"PYTHONPATH": str(ROOT)})
    assert received(kafka.bootstrap_servers, section.topic, 1)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(params=["local[2]", "local-cluster[2,1,1024]", "standalone"])
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """Spark's settings for one of the places where tasks may run; none of them has the sink."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if request.param != "standalone":
        yield {"spark.master": request.param}
        return
    with closing(StandaloneCluster(tmp_path / "cluster")) as cluster:
        yield {"spark.master": cluster.url, **cluster.conf}


@pytest.fixture
def place(tmp_path: Path, wheel: Path) -> Path:
    """Where a section is followed; the wheel is there."""
    (place := tmp_path / "place").mkdir()
    shutil.copy(wheel, place)
    return place


# `remote` says where a Connect server runs.
NO_MASTER = {"spark.sql.shuffle.partitions": "2"}
# The libraries without what makes the tree importable: links of site-packages count there only.
WITHOUT_THE_SINK = {"PYTHONPATH": sysconfig.get_path("purelib")}


@pytest.mark.long
def test_the_package_comes_with_py_files(
    kafka: KafkaCluster, place: Path, settings: dict[str, str]
) -> None:
    bare = Path(sys.base_prefix, "bin", "python3")
    title = "The package with --py-files"
    # The workers of a cluster are not the driver's children.
    libraries = {f"spark.executorEnv.{name}": path for name, path in WITHOUT_THE_SINK.items()}
    section = Section(title, kafka, place, bare, {**settings, **libraries})
    section.follow(WITHOUT_THE_SINK)
    assert received(kafka.bootstrap_servers, section.topic, 1)
    if settings["spark.master"].startswith("local["):
        with pytest.raises(AssertionError, match="DATA_SOURCE_NOT_FOUND"):
            section.follow(WITHOUT_THE_SINK, without="eos_sink.register(spark)")


@pytest.mark.long
@pytest.mark.parametrize("settings", ["local-cluster[2,1,1024]", "standalone"], indirect=True)
def test_an_environment_comes_with_archives(
    kafka: KafkaCluster, place: Path, settings: dict[str, str]
) -> None:
    section = Section("An environment with --archives", kafka, place, settings=settings)
    # There is no Spark in the environment by which spark-submit could find its own.
    section.follow({"SPARK_HOME": str(Path(pyspark.__file__).parent)})
    rows = read_topic(kafka.bootstrap_servers, section.topic).values()
    assert sorted(json.loads(row)["value"] for row in rows) == list(range(len(rows)))
    assert rows


WITHOUT_NETWORK = ROOT / "integration" / "without-network.sh"


@pytest.mark.long
def test_a_cluster_without_network_needs_nothing_but_the_archive(
    wheel: Path, tmp_path: Path
) -> None:
    if subprocess.run([WITHOUT_NETWORK, "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not permitted here")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--dest", str(tmp_path)]
    subprocess.run([*pip, str(wheel), "venv-pack", "setuptools"], check=True)
    same = ["-k", "test_an_environment_comes_with_archives and standalone", __file__]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("EOS_", "PYTEST_"))}
    done = subprocess.run(
        [WITHOUT_NETWORK, sys.executable, "-m", "pytest", "-q", "-m", "long", *same],
        cwd=ROOT,
        env={**inherited, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-9000:]
    assert "1 passed" in done.stdout


@pytest.mark.long
def test_updates_go_through_foreach_batch(kafka: KafkaCluster, tmp_path: Path) -> None:
    section = Section("Triggers and output modes", kafka, tmp_path)
    section.follow({"PYTHONPATH": str(ROOT)})
    assert int(received(kafka.bootstrap_servers, section.topic, 1)[0]) > 0


@pytest.fixture(scope="session")
def connect(wheel: Path) -> Path:
    """A Python with what Spark Connect and Declarative Pipelines need, and the sink."""
    wanted = f"pyspark[connect,pipelines]=={pyspark.__version__}"
    home = cache_root() / "matrix" / f"connect{pyspark.__version__}"
    return install(home, Path(sys.executable), wheel, wanted)


def wait_for_spark_connects_port() -> None:
    """A server that a program before has started ends after the program."""

    def is_free() -> bool:
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("0.0.0.0", 15002))
            return True
        return False

    wait_until(is_free, Deadline(60), "port 15002 is free")


@pytest.mark.long
def test_spark_connect(kafka: KafkaCluster, connect: Path, tmp_path: Path) -> None:
    (lines := tmp_path / "lines").mkdir()
    (lines / "one.txt").write_text("one\n")
    section = Section("Spark Connect", kafka, tmp_path, connect, NO_MASTER)
    wait_for_spark_connects_port()
    assert "0: committed" in section.follow()
    assert_each_once(read_topic(kafka.bootstrap_servers, section.topic), ["one"])


@pytest.mark.long
def test_a_declarative_pipeline(kafka: KafkaCluster, connect: Path, tmp_path: Path) -> None:
    (lines := tmp_path / "lines").mkdir()
    section = Section("Declarative Pipelines", kafka, tmp_path, connect, NO_MASTER)
    expected = []
    for name in ("one", "two"):
        (lines / f"{name}.txt").write_text(f"{name}\n")
        expected.append(name)
        wait_for_spark_connects_port()
        section.follow()
        assert_each_once(read_topic(kafka.bootstrap_servers, section.topic), expected)
