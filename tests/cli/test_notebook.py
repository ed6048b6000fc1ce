"""`eos_sink.status` on the in-memory Kafka; integration/test_spark.py asks a real query."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

import eos_sink
from eos_sink.cli import notebook
from eos_sink.cli.notebook import SinkStatus, SparkSide, make_status
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.cluster_config import Translation
from eos_sink.ops.observer import Observer
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId
from tests.fakes.admin import FakeAdmin
from tests.protocol.driver import STREAM, Driver, decide_and_die
from tests.protocol.world import World

SPARK = SparkSide("readings", STREAM, "run-1", active=True, error=None, committed=0)


def look(world: World, spark: SparkSide = SPARK, **kafka: str) -> SinkStatus:
    observer = Observer(FakeAdmin(world.cluster), "eos-sink-", lambda: world.cluster.clock.ms)
    given = {"bootstrap.servers": "kafka:9092"} | {k.replace("_", "."): v for k, v in kafka.items()}
    config = replace(world.options.cluster, client=Translation(given))
    return make_status(spark, replace(world.options, cluster=config), observer.look(Deadline(30)))


def test_before_the_first_batch_there_is_nothing_to_say_about_one(world: World) -> None:
    found = look(world)
    assert (found.batch, found.outcome, found.behind, found.alerts) == (None, None, None, ())
    assert found.group == world.options.names.group in repr(found)
    assert "commit log" not in repr(found)


def test_a_batch_has_its_rows_steps_and_place_in_spark_s_commit_log(world: World) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    driver.run(1, [b"b"], [b"c"], [])
    found = look(world)
    assert (found.batch, found.stream, found.outcome, found.rows) == (1, STREAM, "committed", 2)
    assert (found.partitions, found.transactions, found.inline_partitions) == (3, 2, 0)
    assert (found.behind, found.driver, found.counts["batches"]) == (True, "live", 2)
    assert "settle" in found.steps
    assert "not yet" in repr(found)
    assert look(world, replace(SPARK, committed=1)).behind is False
    assert look(world, replace(SPARK, committed=None)).behind is None
    assert look(world, replace(SPARK, id="another stream")).behind is None
    assert json.dumps(asdict(found), default=str)


def test_an_unsettled_batch_is_an_alert_with_a_command_that_reaches_the_cluster(
    world: World,
) -> None:
    driver = decide_and_die(world, [b"a"], [b"b"])
    driver.plans.process.kill()
    world.cluster.groups.end_session(world.options.names.group)
    found = look(world, sasl_mechanism="PLAIN", sasl_password="canary")
    assert (found.outcome, found.open_decided, found.driver) == ("open", 2, "gone")
    (alert,) = found.alerts
    assert "eos-sink resolve" in alert
    assert "--bootstrap-server kafka:9092 --command-config FILE" in alert
    assert found.left_ms is not None
    for text in (repr(found), found._repr_html_(), repr(asdict(found))):
        assert "canary" not in text
        assert "--end" in text


def test_html_is_escaped(world: World) -> None:
    found = look(world, replace(SPARK, error="StreamingQueryException: <script>"))
    assert "&lt;script&gt;" in found._repr_html_()
    assert "<script>" not in found._repr_html_()
    assert "No action needed" not in repr(found)


class Query(SimpleNamespace):
    """A query as a client of Spark Connect has it."""

    name, id, runId, isActive = "readings", STREAM, "run-1", False  # noqa: N815

    def exception(self) -> Exception | None:
        return cast(Exception | None, self.error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "[STREAM_FAILED] Traceback\n  File x\neos_sink.errors.ClusterError: No topic\n'a'. "
            "Create it. (docs/errors.md#clustererror)\n SQLSTATE: 38000\nLogical Plan: ...",
            "ClusterError: No topic\n'a'. Create it. (docs/errors.md#clustererror)",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero\nLogical Plan: ...",
            "[DIVIDE_BY_ZERO] Division by zero",
        ),
    ],
)
def test_the_error_of_a_query_is_the_sink_s_or_the_first_line(text: str, error: str) -> None:
    assert notebook._find_error(cast(Any, Query(error=Exception(text)))) == error


def test_a_client_of_spark_connect_has_to_give_the_options() -> None:
    with pytest.raises(eos_sink.ConfigurationError, match="options"):
        eos_sink.status(cast(Any, Query(error=None)))


class Java:
    """Spark's side of a classic query: an answer for each method, an empty map for the others."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self._answers.get(name, EMPTY)


EMPTY: Any = Java(mkString="", isDefined=False)
GIVEN = {"kafka.bootstrap.servers": "kafka:9092", "topic": "readings", "eos.id": "numbers"}


def query_with_sink(sink: str) -> Any:
    execution = Java(sink=Java(getClass=Java(getSimpleName=sink), name="other"))
    return Query(error=None, _jsq=Java(streamingQuery=execution))


def test_a_query_with_foreach_batch_has_the_identity_of_the_given_options() -> None:
    spark, options = notebook._ask_spark(query_with_sink("ForeachBatchSink"), GIVEN)
    assert options.names == parse_batch_options(GIVEN).sink.names
    assert options.names != parse_options(GIVEN).names
    assert (spark.id, spark.committed) == (STREAM, -1)


@pytest.mark.parametrize(("sink", "given"), [("ForeachBatchSink", None), ("ConsoleTable$", GIVEN)])
def test_any_other_sink_is_refused(sink: str, given: dict[str, str] | None) -> None:
    with pytest.raises(eos_sink.ConfigurationError) as refused:
        notebook._ask_spark(query_with_sink(sink), given)
    assert "eos_sink.status(query, options)" in str(refused.value.remedy)


@pytest.mark.parametrize(
    ("stream", "own"), [("a", True), ("foreach:a", True), ("txn:a", False), ("b", False)]
)
def test_a_batch_belongs_to_the_query_that_has_numbered_it(stream: str, own: bool) -> None:
    assert notebook._is_of(BatchId(stream, 1), "a") is own
