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
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eos_sink.driver import committer
from eos_sink.kafka.deadline import Deadline
from eos_sink.metrics.names import Count, Step
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
    query = Figured(kafka)
    try:
        yield query
    finally:
        query.close()


def test_figures_add_up_over_abort_replay_rewrite_and_restarts(
    figured: Figured, monkeypatch: pytest.MonkeyPatch
) -> None:
    figured.batch(0)
    reports = figured.tasks(1)
    figured.committer.abort(reports)  # As Spark does when a task has failed.
    figured.batch(1)
    reports = figured.tasks(2)

    def die(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr(committer, "settle", die)
    with pytest.raises(SystemExit):
        figured.committer.commit(reports)
    monkeypatch.undo()
    lost = figured.kafka.producer(figured.options.names.task(reports[1].slot, 1), 60_000)
    lost.init(Deadline(_LONG_S))  # A late attempt takes the id, and aborts what is decided.
    lost.close()
    figured.start()
    plan = figured.plan()
    assert plan.lost == {1}
    figured.committer.commit(figured.tasks(2, plan))
    figured.start()
    figured.batch(2)
    figured.batch(3)
    figured.tasks(4)
    figured.start()
    figured.batch(4)
    stats = figured.stats()
    assert {count: stats.count(count) for count in Count} == {
        Count.BATCHES: 5,
        Count.ROWS: 15,
        Count.BYTES: 45,
        Count.TRANSACTIONS: 11,
        Count.INLINE_ROWS: 0,
        Count.INLINE_BATCHES: 0,
        Count.REWRITES: 1,
        Count.REPLAYS: 1,
        Count.DEAD_LETTERS: 0,
        Count.ABORTS: 2,
        Count.RUNS: 4,
        Count.RECOVERIES: 4,
    }
    assert figured.visible() == stats.count(Count.ROWS)
    assert all(stats.step(step).last > 0 for step in Step)
    assert [stats.step(step).count for step in (Step.OPEN, Step.VOTE, Step.DECIDE)] == [6, 2, 2]
    assert stats.left_ms is not None
    assert 0 < stats.left_ms <= (stats.timeout_ms or 0) == 120_000


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


def test_a_transaction_that_a_driver_has_left_open_counts_in_status_and_metrics(
    figured: Figured,
) -> None:
    """Readers of the log wait for it, and of the topic if it has rows."""
    figured.batch(0)
    producer = figured.kafka.log_producer(figured.options.names.driver, 60_000)
    producer.init(Deadline(_LONG_S))
    producer.begin()
    producer.produce(figured.topic, b"")
    producer.flush(Deadline(_LONG_S))
    said = {}
    for command in (["status"], ["exporter", "--once"]):
        printed = run_command(*command, *figured.words, "--json", expect=None)
        assert printed.code in {0, 1}
        said[command[0]] = printed.document
    producer.close()
    ((open_,),) = [each["open"] for each in said["status"]["queries"]]
    assert (open_["partition"], open_["decided"]) == (None, False)
    counted = {
        each["labels"]["decided"]: each["value"]
        for each in said["exporter"]["eos_sink_open_transactions"]
    }
    assert counted == {"true": 0, "false": 1}
    (oldest,) = said["exporter"]["eos_sink_oldest_transaction_age_seconds"]
    assert oldest["value"] > 0
    assert "eos_sink_least_time_left_seconds" not in said["exporter"]


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
