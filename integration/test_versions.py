"""Executors with another version of the package than the driver: no batch is written with both."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from eos_sink.version import VERSION
from integration.spark_query import SparkQuery
from integration.standalone import StandaloneCluster
from tests.snippets import ROOT

pytestmark = pytest.mark.timeout(600)

OLD = "0.1.9"


def install_other_version(site: Path) -> Path:
    """A second copy of the package, which goes to the front of a process's path."""
    for name in ("eos_sink", "eos_sink_lab", "pyspark_kafka_eos"):
        shutil.copytree(ROOT / name, site / name)
    module = site / "eos_sink" / "version.py"
    module.write_text(module.read_text().replace(VERSION, OLD))
    return site


@pytest.mark.long
def test_executors_of_another_version_write_nothing(
    spark_query: SparkQuery, tmp_path: Path
) -> None:
    site = install_other_version(tmp_path / "site")
    with closing(StandaloneCluster(tmp_path / "standalone")) as machines:
        conf = {**machines.conf, "spark.executorEnv.PYTHONPATH": str(site)}
        application = spark_query.applications.another(machines.url, conf)
        spark_query.add_batch()
        error = spark_query.program(application=application).stopped()
        application.kill()
    assert "ConfigurationError" in error
    assert f"eos-sink {OLD} on " in error
    assert f"eos-sink {VERSION} on " in error
    assert len(spark_query.seen()) == 0
    spark_query.finish()
    spark_query.assert_exactly_once()
