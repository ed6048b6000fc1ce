"""Where a query stands in its source, as commands and metrics show it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from eos_sink import cli
from eos_sink.cli import batch_report, status_command
from eos_sink.cli.notebook import SparkSide, make_status
from eos_sink.cli.output import Report
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops.documents import query_document
from eos_sink.ops.exporter import Scrape
from eos_sink.protocol.values import Place
from tests.ops.operator import Eye
from tests.protocol.checkpoint import INPUT, Checkpoint
from tests.protocol.driver import Driver
from tests.protocol.source import GROUP, Reader, ReadingWorld, reading_world
from tests.protocol.world import TOPIC, World, options

ROWS = 8
REACH = ("--bootstrap-server", "kafka:9092")


@pytest.fixture
def world() -> ReadingWorld:
    return reading_world(ROWS)


@pytest.fixture
def reader(world: ReadingWorld) -> Reader:
    return Reader(world, Checkpoint(began={0: 0, 1: 0}))


def show(eye: Eye, world: World) -> tuple[Report, dict[tuple[str, ...], float]]:
    """The table of `status`, and what the exporter says of the source."""
    found = eye.snapshot()
    report = status_command.make_report(found, cli.parser().parse_args(["status", *REACH]))
    families = text_string_to_metric_families(Scrape(found, {}, 0.0).text())
    samples: dict[tuple[str, ...], float] = {
        (name, labels["query"], labels["group"]): value
        for family in families
        if family.name.startswith("eos_sink_source")
        for name, labels, value, *_ in family.samples
    }
    return report, samples


def test_the_lag_is_what_the_query_has_not_read(reader: Reader, world: World) -> None:
    reader.run(2)
    reader.run(3)
    eye, query = Eye(world), world.options.names.shown
    report, samples = show(eye, world)
    # Each of the two partitions ends with the marker of its rows' transaction.
    lag = 2 * (ROWS + 1 - 5)
    assert report.document is not None
    (document,) = report.document["queries"]
    known = {"group": GROUP, "batch": 1, "stream": "stream-1", "stale": False, "lag": lag}
    assert document["source"] == known
    assert report.rows[0]["source lag"] == str(lag)
    assert samples == {
        ("eos_sink_source_lag_offsets", query, GROUP): lag,
        ("eos_sink_source_stale", query, GROUP): 0,
    }
    spark = SparkSide("q", "stream-1", "run", active=True, error=None, committed=1)
    seen = make_status(spark, world.options, eye.snapshot())
    assert seen.source == known
    assert f"group {GROUP}, {lag} offsets" in repr(seen)


def test_a_batch_without_the_option_makes_the_lag_unknown(reader: Reader, world: World) -> None:
    reader.run()
    world.options = options()
    Driver(world, "stream-1").run(1, [b"a"])
    report, samples = show(Eye(world), world)
    assert report.rows[0]["source lag"] == "?"
    assert samples == {("eos_sink_source_stale", world.options.names.shown, GROUP): 1}


def test_a_query_without_the_option_is_asked_nothing_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.options = options()
    Driver(world).run(0, [b"a"])
    eye, asked = Eye(world), set[str]()
    list_offsets = eye.admin.list_offsets

    def note(places: Collection[Place], deadline: Deadline) -> Any:
        asked.update(topic for topic, _ in places)
        return list_offsets(places, deadline)

    monkeypatch.setattr(eye.admin, "list_offsets", note)
    report, samples = show(eye, world)
    assert asked == {TOPIC, world.options.log_topic}
    assert report.document is not None
    assert report.document["queries"][0]["source"] is None
    assert "source lag" not in report.columns
    assert samples == {}


def test_a_source_that_may_not_be_seen_is_named_and_hides_nothing_else(
    reader: Reader, world: World
) -> None:
    reader.run()
    eye = Eye(world)
    assert eye.sees().source_lag == 2 * ROWS
    eye.admin.denied.add(Resource.TOPIC)
    found = eye.snapshot()
    assert [f"Describe on topic {INPUT}"] in [list(each.missing) for each in found.problems]
    (status,) = found.queries
    document = query_document(status, found.at_ms)
    assert (document["source"]["lag"], document["outcome"]) == (None, "committed")


def test_ends_of_a_part_of_the_partitions_are_no_lag(reader: Reader, world: World) -> None:
    reader.run()
    status = Eye(world).sees()
    one = {INPUT: status.ends[INPUT][:1]}
    assert replace(status, ends=one).source_lag is None


def test_explain_has_the_offsets_of_a_decided_batch(reader: Reader, world: World) -> None:
    reader.run(2)
    reader.run(3)
    query, admin = world.options.names.query, Eye(world).admin
    for batch, start, end in ((0, 0, 2), (1, 2, 5)):
        words = ["status", query, str(batch), *REACH]
        document = batch_report.report_batch(admin, cli.parser().parse_args(words)).document
        assert document is not None
        assert document["decision"]["source"] == {
            "group": GROUP,
            "start": {INPUT: {"0": start, "1": start}},
            "end": {INPUT: {"0": end, "1": end}},
        }
