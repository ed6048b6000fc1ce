"""The ways in to the sink: docs/ways.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

import eos_sink
from eos_sink.defaults import PREFIX
from eos_sink.testing import KafkaCluster
from integration.checker import read_topic
from integration.spark_apps import Applications
from integration.spark_query import SparkQuery
from integration.ways import Section
from tests.snippets import ROOT

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[RuntimeConfig]:
    """The session's settings; what a test adds is gone afterwards."""
    before = set(spark.conf.getAll)
    yield spark.conf
    for name in set(spark.conf.getAll) - before:
        spark.conf.unset(name)
    eos_sink.register(spark)


def test_settings_of_the_session_are_defaults_once_it_is_registered(
    kafka: KafkaCluster,
    spark: SparkSession,
    applications: Applications,
    tmp_path: Path,
    conf: RuntimeConfig,
) -> None:
    query = SparkQuery(kafka, spark, applications, tmp_path)
    query.add_batch()
    settings = {
        f"{PREFIX}kafka.bootstrap.servers": query.options.pop("kafka.bootstrap.servers"),
        f"{PREFIX}topic": "not-this-one",
    }
    assert "Option kafka.bootstrap.servers is missing" in query.fail()
    for name, value in settings.items():
        conf.set(name, value)
    assert "call eos_sink.register(spark)" in query.fail()
    eos_sink.register(spark)
    query.finish()
    query.assert_exactly_once()
    # Set after that: not applied, and not ignored in silence either.
    conf.set(f"{PREFIX}eos.step.timeout.ms", "90000")
    query.options.pop("eos.step.timeout.ms")
    query.add_batch()
    assert f"The session sets {PREFIX}eos.step.timeout.ms" in query.fail()
    eos_sink.register(spark)
    query.finish()
    query.assert_exactly_once()
    query.close()


@pytest.mark.long
def test_flags_of_spark_submit_are_defaults(kafka: KafkaCluster, tmp_path: Path) -> None:
    section = Section("Settings as defaults", kafka, tmp_path)
    section.follow({"PYTHONPATH": str(ROOT)})
    assert read_topic(kafka.bootstrap_servers, section.topic)
