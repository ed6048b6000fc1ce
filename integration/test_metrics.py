"""A query's figures on a real Kafka, and a real Prometheus that asks for them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster, java_home
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.figured import Figured
from integration.operator_commands import run_command
from integration.own_kafka import start_own_kafka
from integration.prometheus import exporter, prometheus
from integration.topics import new_topic
from tests.prometheus.promtool import expressions, panels, promtool

_LONG_S = 90.0


@pytest.fixture
def figured(kafka: KafkaCluster) -> Iterator[Figured]:
    with closing(Figured(kafka)) as query:
        yield query


@pytest.mark.long
def test_prometheus_gets_an_answer_to_all_that_the_dashboard_asks(
    figured: Figured, tmp_path: Path
) -> None:
    numbers = itertools.count()
    figured.batch(next(numbers))
    with exporter(*figured.words) as url, prometheus(url, tmp_path) as server:
        # This query has no Kafka source.
        unanswered = {each for each in expressions() if "source_lag" not in each}

        def answered() -> bool:
            figured.batch(next(numbers))
            open_ = figured.tasks(next(numbers))
            unanswered.difference_update([each for each in unanswered if server.query(each)])
            figured.committer.commit(open_)
            return not unanswered

        wait_until(answered, Deadline(_LONG_S), "each expression is answered")
        rows = 3.0 * next(numbers)
        counted = f'eos_sink_rows_total{{query="{figured.options.names.shown}"}}'
        wait_until(lambda: server.value(counted) == rows, Deadline(_LONG_S), "the rows are counted")
        assert figured.visible() == rows
        assert {rule["health"] for rule in server.rules()} <= {"ok", "unknown"}
        assert server.query('ALERTS{alertstate="firing"}') == []
        assert unanswered == set()


@pytest.mark.long
def test_the_picture_of_the_dashboard_can_be_drawn_from_what_prometheus_answers(
    figured: Figured, tmp_path: Path
) -> None:
    from tools.dashboard import PICTURES, draw

    begun = time.time()
    figured.batch(0)
    with exporter(*figured.words) as url, prometheus(url, tmp_path) as server:
        wait_until(
            lambda: bool(server.query("eos_sink_rows_total")), Deadline(_LONG_S), "an answer"
        )
        draw(server, begun, time.time(), tmp_path)
    titles = {str(panel["title"]) for panel in panels()}
    for name, layout in PICTURES.items():
        drawn = ElementTree.parse(tmp_path / name).iter("{http://www.w3.org/2000/svg}text")
        assert "Cluster seen" in {each.text for each in drawn}
        assert {*layout.shown} <= titles


def test_the_exporter_prints_or_writes_what_it_would_serve(
    figured: Figured, tmp_path: Path
) -> None:
    figured.batch(0)
    file = tmp_path / "eos-sink.prom"
    said = {}
    for mode, words in {"text": [], "json": ["--json"], "file": ["--textfile", str(file)]}.items():
        said[mode] = run_command("exporter", "--once", *figured.words, *words).out
    query = figured.options.names.shown
    for text in (said["text"], file.read_text()):
        assert f'eos_sink_rows_total{{query="{query}"}} 3.0' in text.splitlines()
        assert promtool("check", "metrics", given=text) == ""
    document = json.loads(said["json"])
    (rows,) = document["eos_sink_rows"]
    assert rows == {"name": "eos_sink_rows_total", "labels": {"query": query}, "value": 3.0}


@pytest.mark.long
def test_the_exporter_outlives_a_broker() -> None:
    with start_own_kafka() as cluster:
        query = Figured(cluster)
        query.batch(0)
        with exporter(*query.words, "--scrape-timeout", "4") as url:

            def told(*names: str) -> set[str]:
                with urllib.request.urlopen(url, timeout=30) as answer:
                    lines = answer.read().decode().splitlines()
                return {line for line in lines if line.startswith(names)}

            up, down = "eos_sink_exporter_cluster_up 1.0", "eos_sink_exporter_cluster_up 0.0"
            alive = ("eos_sink_exporter_cluster_up", "eos_sink_driver_alive")
            assert up in told(*alive)
            cluster.nodes[0].kill()
            wait_until(lambda: told("eos_sink") >= {down}, Deadline(_LONG_S), "it tells so")
            assert not told("eos_sink_rows", "eos_sink_driver")
            cluster.nodes[0].restart()
            wait_until(
                lambda: len(told(*alive)) == 2, Deadline(_LONG_S), "all figures are served again"
            )
            assert up in told(*alive)
        query.close()


PROGRAM = """
import sys, time
from integration.spark_program import spark_session

servers, topic, directory = sys.argv[1:]
spark = spark_session(conf={"spark.datasource.kafka-eos.eos.metrics.log": "true"})
import eos_sink
eos_sink.register(spark)
query = (
    spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    .selectExpr("CAST(value AS STRING) AS value")
    .writeStream.format("kafka-eos")
    .option("kafka.bootstrap.servers", servers).option("topic", topic)
    .option("eos.log.topic", f"log-{topic}").option("checkpointLocation", directory)
    .start()
)
until = time.monotonic() + 120
while sum(p["numInputRows"] > 0 for p in query.recentProgress) < 2:
    assert query.isActive and time.monotonic() < until, query.exception()
    time.sleep(0.2)
query.stop()
spark.stop()
"""


@pytest.mark.long
def test_spark_puts_the_lines_into_its_log_and_the_log_topic_has_the_same_figures(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    topic, servers = new_topic(kafka, "lines"), kafka.bootstrap_servers
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, servers, topic, str(tmp_path / "checkpoint")],
        env={**os.environ, "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(x) for x in done.stderr.splitlines() if x.startswith('{"event"')]
    assert lines[0]["event"] == "recovered"
    batches = [line for line in lines if line["event"] == "committed"]
    assert len({line["batch"] for line in batches}) == len(batches) >= 2
    words = ["--bootstrap-server", servers, "--log-topic", f"log-{topic}"]
    document = run_command("exporter", "--once", "--json", *words).document
    found = {name: told[0]["value"] for name, told in document.items()}
    rows = sum(line["rows"] for line in batches)
    assert found["eos_sink_rows"] == rows == len(read_topic(servers, topic))
    assert found["eos_sink_batches"] == len(batches)
    assert found["eos_sink_runs"] == 1
