"""The metrics of a cluster, on the in-memory Kafka, and how often it is scraped."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from eos_sink import cli
from eos_sink.cli import exporter_command
from eos_sink.errors import ClusterError
from eos_sink.kafka.admin_interface import Admin, LogPage
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import PartitionOffsets
from eos_sink.kafka_config.acls import Resource
from eos_sink.metrics.names import STEP_SECONDS, Count, Gauge
from eos_sink.ops.exporter import ReaderDelays, Scraper, write_text
from tests.fakes.admin import FakeAdmin
from tests.fakes.clock import FakeClock
from tests.prometheus.promtool import METRICS, promtool
from tests.protocol.checkpoint import Checkpoint
from tests.protocol.driver import Driver, Timed
from tests.protocol.source import Reader, reading_world
from tests.protocol.world import TOPIC, World, hold_up_the_log, options

# `Timed` has a clock that goes on by a second at each look: of the 60 seconds of a transaction, two
# have passed since the driver's began.
VOTE_LEFT_S = 58

Samples = dict[str, dict[tuple[str, ...], float]]


class Watched(FakeAdmin):
    """Counts how often it is looked at, and may fail or have another log."""

    looks = 0
    error: Exception | None = None
    instead: Callable[[bytes], bytes] = bytes

    def read_log(self, since: Mapping[int, int], deadline: Deadline) -> LogPage | None:
        self.looks += 1
        if self.error is not None:
            raise self.error
        page = super().read_log(since, deadline)
        if page is None:
            return None
        lines = tuple(replace(line, value=self.instead(line.value)) for line in page.lines)
        return replace(page, lines=lines)


class Scraped:
    """A cluster and an exporter's view of it."""

    def __init__(self, world: World, interval: float = 0.0) -> None:
        self.admin = Watched(world.cluster)
        self.clock = FakeClock()
        self.connected = 0
        prefix = world.options.names.prefix
        self.scraper = Scraper(self._connect, prefix, 8.0, interval, self.clock)

    def _connect(self) -> Admin:
        self.connected += 1
        return self.admin

    def text(self) -> str:
        return self.scraper.scrape().text()

    def samples(self) -> Samples:
        found: Samples = {}
        for family in text_string_to_metric_families(self.text()):
            for name, labels, value, *_ in family.samples:
                found.setdefault(name, {})[tuple(labels.values())] = value
        return found


def test_the_metrics_of_a_query_are_those_of_its_latest_record_and_of_the_cluster(
    world: World,
) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"], [b"bc"])
    driver.run(1, [b"d"], [])
    found, query = Scraped(world).samples(), world.options.names.query
    told = {name: values.get((query,)) for name, values in found.items()}
    assert told["eos_sink_batches_total"] == 2
    assert told["eos_sink_rows_total"] == 3
    assert told["eos_sink_bytes_total"] == 4
    assert told["eos_sink_transactions_total"] == 3
    assert told["eos_sink_aborts_total"] == 0
    assert told["eos_sink_last_batch_rows"] == 1
    assert told["eos_sink_last_batch_partitions"] == 2
    assert told["eos_sink_last_decision_timestamp_seconds"] == world.cluster.clock.ms / 1000
    assert told["eos_sink_vote_time_left_seconds"] == VOTE_LEFT_S
    assert told["eos_sink_transaction_timeout_seconds"] == 60
    assert told["eos_sink_unsettled"] == 0
    assert told["eos_sink_driver_alive"] == 1
    assert found[f"{STEP_SECONDS}_sum"][query, "write"] == 2.0
    assert found[f"{STEP_SECONDS}_count"][query, "settle"] == 1
    assert found["eos_sink_last_step_seconds"][query, "vote"] == 2.0
    assert found["eos_sink_exporter_cluster_up"][()] == 1
    assert found["eos_sink_reader_delay_offsets"] == {("__eos_sink_log",): 0, (TOPIC,): 0}
    assert "eos_sink_least_time_left_seconds" not in found


def test_a_batch_that_the_driver_wrote_is_settled_and_counted() -> None:
    world = World([], options=options(**{"eos.inline.bytes": "65536"}))
    driver = Timed(world)
    driver.run(0, [b"a"], [b"bc"])
    driver.run(1, [b"d", b"e"], [b"f"])
    driver.run(2, [b"g", b"h"])
    found, query = Scraped(world).samples(), world.options.names.query
    # After rows of its own the driver looks at its clock once more.
    assert found["eos_sink_vote_time_left_seconds"] == {(query,): VOTE_LEFT_S - 1}
    driver.run(3, [b"i"])
    found = Scraped(world).samples()
    assert "eos_sink_vote_time_left_seconds" not in found
    told = {name: values.get((query,)) for name, values in found.items()}
    assert told["eos_sink_inline_rows_total"] == 4
    assert told["eos_sink_inline_batches_total"] == 2
    assert told["eos_sink_transactions_total"] == 2
    assert told["eos_sink_unsettled"] == told["eos_sink_doubtful_partitions"] == 0
    assert found["eos_sink_reader_delay_offsets"] == {("__eos_sink_log",): 0, (TOPIC,): 0}


def test_open_transactions_are_shown_with_their_age_and_the_delay_of_readers(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"], [b"b"])
    scraped, query = Scraped(world), world.options.names.query
    driver.write(driver.planner.plan(), 1, [b"c"], [b"d"])
    first = scraped.samples()
    assert first["eos_sink_open_transactions"] == {("true", query): 0, ("false", query): 2}
    assert first["eos_sink_reader_delay_offsets"][TOPIC,] > 0
    assert first["eos_sink_readers_held_seconds"][TOPIC,] == 0
    assert first["eos_sink_oldest_transaction_age_seconds"][query,] >= 0
    assert first["eos_sink_least_time_left_seconds"][query,] <= 60
    scraped.clock.advance(30)
    assert scraped.samples()["eos_sink_readers_held_seconds"][TOPIC,] == 30


def test_a_transaction_that_hangs_in_the_log_is_measured_as_in_a_topic(world: World) -> None:
    Timed(world).run(0, [b"a"])
    hold_up_the_log(world, 60_000)
    scraped, log = Scraped(world), (world.options.log_topic,)
    assert scraped.samples()["eos_sink_reader_delay_offsets"][log] == 1
    scraped.clock.advance(30)
    assert scraped.samples()["eos_sink_readers_held_seconds"][log] == 30


def test_the_driver_s_own_transaction_is_open_too_and_has_a_timeout_of_its_own(
    world: World,
) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    producer = driver.commits.log_producer(world.options.names.driver, 1_000)
    producer.init(Deadline(1))
    producer.begin()
    producer.produce(TOPIC, b"")
    found, query = Scraped(world).samples(), world.options.names.query
    assert found["eos_sink_reader_delay_offsets"][TOPIC,] == 1
    assert found["eos_sink_open_transactions"] == {("true", query): 0, ("false", query): 1}
    assert found["eos_sink_oldest_transaction_age_seconds"][query,] > 0
    assert "eos_sink_least_time_left_seconds" not in found


def test_the_exporter_has_every_metric_of_the_table_and_no_other() -> None:
    world = reading_world()
    reader = Reader(world, Checkpoint(began={0: 0, 1: 0}))
    # What a vote says comes with the next record of its process.
    reader.run()
    reader.run()
    reader.write(reader.begin())
    found = Scraped(world).samples()
    assert found.keys() == {*METRICS, f"{STEP_SECONDS}_sum", f"{STEP_SECONDS}_count"}


def test_names_and_help_are_as_prometheus_wants_them(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    driver.write(driver.planner.plan(), 1, [b"c"], [b"d"])
    assert promtool("check", "metrics", given=Scraped(world).text()) == ""
    for each in (*Count, *Gauge):
        assert set(each.labels) <= {"query", "group", "topic", "step", "decided"}


def test_a_request_for_one_metric_is_answered_with_it(world: World) -> None:
    Driver(world).run(0, [b"a"])
    scraped, registry = Scraped(world), CollectorRegistry(auto_describe=False)
    registry.register(scraped.scraper)
    assert not scraped.connected
    for name in (Gauge.UP.prometheus, "eos_sink_batches_total", f"{STEP_SECONDS}_count"):
        (family,) = registry.restricted_registry([name]).collect()
        assert {sample.name for sample in family.samples} == {name}


def test_a_record_without_figures_has_no_counters_and_the_rest(world: World) -> None:
    driver = Timed(world)
    driver.run(0, [b"a"])
    scraped = Scraped(world)

    def older(value: bytes) -> bytes:
        document = json.loads(value)
        document.pop("stats", None)
        return json.dumps(document).encode()

    scraped.admin.instead = older
    found = scraped.samples()
    assert "eos_sink_rows_total" not in found
    assert found["eos_sink_last_batch_rows"][world.options.names.query,] == 1
    assert found["eos_sink_last_decision_timestamp_seconds"]


def test_an_empty_cluster_is_up(world: World) -> None:
    found = Scraped(world).samples()
    assert found["eos_sink_exporter_cluster_up"][()] == 1
    assert found["eos_sink_unreadable_records"][()] == 0
    assert "eos_sink_driver_alive" not in found


def test_without_an_answer_of_the_cluster_there_is_only_that_metric(
    world: World,
) -> None:
    Timed(world).run(0, [b"a"])
    scraped = Scraped(world)
    scraped.admin.error = ClusterError("no broker", remedy="")
    found = scraped.samples()
    assert found.keys() == {
        "eos_sink_exporter_cluster_up",
        "eos_sink_exporter_look_duration_seconds",
    }
    assert found["eos_sink_exporter_cluster_up"][()] == 0
    scraped.admin.error = None
    assert scraped.samples()["eos_sink_rows_total"]


def test_a_failure_to_connect_is_a_cluster_that_is_down_and_ends_nothing(
    world: World, tmp_path: Path
) -> None:
    Timed(world).run(0, [b"a"])
    admin = FakeAdmin(world.cluster)
    tried: list[int] = []
    said: list[str] = []

    def connect() -> Admin:
        tried.append(len(tried))
        if len(tried) <= 2:
            raise ClusterError("no token", remedy="")
        return admin

    scraper, file = (
        Scraper(connect, "eos-sink-", 8.0, 0.0, on_error=said.append),
        tmp_path / "eos-sink.prom",
    )
    for _ in range(2):
        write_text(scraper.scrape(), file)
    assert len(said) == 1
    assert "eos_sink_exporter_cluster_up 0.0" in file.read_text()
    write_text(scraper.scrape(), file)
    assert "eos_sink_exporter_cluster_up 1.0" in file.read_text()


@pytest.mark.parametrize(
    ("denied", "gone"),
    [
        (Resource.TRANSACTIONAL_ID, "eos_sink_unsettled"),
        (Resource.TRANSACTIONAL_ID, "eos_sink_open_transactions"),
        (Resource.TRANSACTIONAL_ID, "eos_sink_unknown_open_transactions"),
        (Resource.GROUP, "eos_sink_driver_alive"),
        (Resource.TOPIC, "eos_sink_rows_total"),
    ],
)
def test_what_may_not_be_seen_is_left_out_and_counted(
    world: World, denied: Resource, gone: str
) -> None:
    Timed(world).run(0, [b"a"])
    scraped = Scraped(world)
    scraped.admin.denied = {denied}
    found = scraped.samples()
    assert gone not in found
    assert found["eos_sink_exporter_unseen"][()] >= 1
    assert found["eos_sink_exporter_cluster_up"][()] == 1


def test_foreign_records_are_counted(world: World) -> None:
    Timed(world).run(0, [b"a"])
    scraped = Scraped(world)
    scraped.admin.instead = lambda _: b"hello"
    assert scraped.samples()["eos_sink_unreadable_records"][()] == 3, "two records and a claim"


def test_one_look_serves_all_who_ask_within_the_interval(world: World) -> None:
    scraped = Scraped(world, interval=5.0)
    for _ in range(3):
        scraped.text()
    assert scraped.admin.looks == 1
    scraped.clock.advance(4.9)
    scraped.text()
    assert scraped.admin.looks == 1
    scraped.clock.advance(0.2)
    scraped.text()
    assert scraped.admin.looks == 2


def test_readers_are_held_by_the_partition_that_stands_still() -> None:
    still, moves = PartitionOffsets(0, 0, 5, 9), itertools.count(10)
    delays = ReaderDelays()
    for now in (0.0, 10.0, 25.0):
        at = next(moves)
        ends = {"t": (still, PartitionOffsets(1, 0, at, at + 3))}
        assert delays.update(ends, now) == {"t": (7, now)}
    free = {"t": (PartitionOffsets(0, 0, 9, 9), PartitionOffsets(1, 0, 20, 20))}
    assert delays.update(free, 30.0) == {"t": (0, 0.0)}
    again = {"t": (PartitionOffsets(0, 0, 9, 12),)}
    assert delays.update(again, 40.0) == {"t": (3, 0.0)}
    assert delays.update(again, 41.0) == {"t": (3, 1.0)}


def test_a_text_file_is_replaced_whole_and_leaves_nothing_beside_it(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "eos-sink.prom"
    file.write_text("old")
    scrape = Scraped(world).scraper.scrape()
    write_text(scrape, file)
    assert file.read_text() == scrape.text()
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [file]
    gone = tmp_path / "gone"
    with pytest.raises(OSError, match="gone"):
        write_text(scrape, gone / "eos-sink.prom")


def test_a_text_file_that_cannot_be_written_again_is_told_and_tried_later(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scraped, home = Scraped(world), tmp_path / "home"
    home.mkdir()
    steps: Iterator[Callable[[], object]] = iter(
        [lambda: home.rename(tmp_path / "away"), home.mkdir, sys.exit]
    )
    # Other threads of the process sleep too: the clock is the module's own.
    clock = SimpleNamespace(sleep=lambda _: next(steps)())
    monkeypatch.setattr(exporter_command, "time", clock)
    with pytest.raises(SystemExit):
        exporter_command._write_again_and_again(scraped.scraper, home / "eos-sink.prom", 1.0)
    assert scraped.admin.looks == 3
    assert len(list(tmp_path.glob("*/eos-sink.prom"))) == 2
    assert capsys.readouterr().err.count(f"--textfile {home}/eos-sink.prom: ") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--textfile", "/nowhere/eos-sink.prom"], "/nowhere/eos-sink.prom"),
        (["--textfile", "figures.txt"], "*.prom"),
        (["--address", "192.0.2.1"], "cannot serve on 192.0.2.1:9464"),
        (["--once", "--scrape-timeout", "0.5"], "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    called = ["exporter", "--bootstrap-server", "127.0.0.1:1", "--scrape-timeout", "1", *words]
    assert cli.main(called) == 2
    err = capsys.readouterr().err.splitlines()
    assert said in err[-1]
    beside = ("eos-sink: Writing", "eos-sink: No broker of 127.0.0.1:1")
    assert len([line for line in err[:-1] if not line.startswith(beside)]) == 0


def test_the_exporter_listens_on_this_machine_only() -> None:
    parser = argparse.ArgumentParser()
    exporter_command.add_arguments(parser)
    assert parser.parse_args(["--bootstrap-server", "localhost:9092"]).address == "127.0.0.1"
