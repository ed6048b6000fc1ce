"""Rows that the driver writes in the decision's transaction, on a real Kafka under real crashes."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import (
    SupersededError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import Rows, assert_each_once, read_topic
from integration.conftest import MakeRun
from integration.crash_scenarios import (
    SCENARIOS,
    Scenario,
    call_of,
    commit,
    first_batch,
    inlined,
)
from integration.query import (
    INLINE_BYTES,
    PARTITIONS,
    ROWS,
    VERSIONS,
    Process,
    Query,
    kill_at,
    rows_of,
)
from integration.topics import new_topic
from integration.whole_batches import BatchReader, PartialBatchError
from tests import seeds

pytestmark = pytest.mark.sampled(4, of="small partitions")

# Of a part of a batch, without a driver: Kafka writes the markers of one transaction one by one.
SOON_S = 10.0
PATIENCE_S = 60.0
# At most, with a machine that does more than this.
_BATCH_S = 0.5


@pytest.fixture
def inline(query: Query) -> Query:
    """All rows of each batch come from the driver."""
    query.inline()
    return query


@pytest.fixture
def mixed(query: Query) -> Query:
    """Three tasks whose rows come in several Arrow batches, and two of a single row."""
    query.change({"eos.inline.bytes": str(INLINE_BYTES)})
    query.batches = [rows_of(batch, (ROWS,) * PARTITIONS + (1, 1)) for batch in range(3)]
    return query


# --- Crashes.


def restarted(query: Query, point: FaultPoint) -> Process:
    """An earlier crash has left a transaction with all rows and the decision open."""
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_BEFORE)
    return query.run(kill_at(point, batch=1))


# What a batch passes whose rows are all the driver's.
POINTS: dict[str, Scenario] = {
    "planner.check": restarted,
    "planner.join": restarted,
    "planner.open": restarted,
    "planner.read": restarted,
    "planner.list": restarted,
    "planner.write": restarted,
    "planner.stable": restarted,
    "committer.open": first_batch,
    "committer.read": first_batch,
    "committer.produce": commit,
    "committer.write": commit,
}
EVERY = [point for point in FaultPoint if call_of(point) in POINTS]


def test_no_other_point_is_passed(inline: Query) -> None:
    inline.run_killed_at(FaultPoint.COMMITTER_WRITE_BEFORE)
    passed = inline.finish().passed()
    assert {point for point in FaultPoint if point.value in passed} == {*EVERY}
    inline.check()


@pytest.mark.parametrize("point", EVERY, ids=lambda point: point.value)
def test_every_row_is_visible_once_after_a_crash_at(inline: Query, point: FaultPoint) -> None:
    POINTS[call_of(point)](inline, point).killed_at(point)
    last = inline.finish()
    assert last.inlined(2) == [0, 1, 2]
    assert last.written(2) == []
    inline.check()


@pytest.mark.parametrize(
    ("point", "scenario"),
    [
        pytest.param(point, commit if scenario is inlined else scenario, id=point.value)
        for point in FaultPoint
        for scenario in SCENARIOS[call_of(point)][:1]
    ],
)
def test_every_row_of_a_mixed_batch_is_visible_once_after_a_crash_at(
    mixed: Query, point: FaultPoint, scenario: Scenario
) -> None:
    scenario(mixed, point).killed_at(point)
    last = mixed.finish()
    assert last.inlined(2) == [3, 4]
    assert last.written(2) == [0, 1, 2]
    mixed.check()


@pytest.mark.parametrize(
    "point", [FaultPoint.COMMITTER_WRITE_BEFORE, FaultPoint.COMMITTER_WRITE_AFTER]
)
def test_spark_aborts_a_batch_whose_commit_was_killed(inline: Query, point: FaultPoint) -> None:
    crashed = inline.run_killed_at(point)
    inline.call("abort", crashed.reports(1)).finished()
    # Readers are free and see all of the batch or nothing, before any restart.
    inline.check(batches=2 if point is FaultPoint.COMMITTER_WRITE_AFTER else 1)
    inline.finish()
    inline.check()


# --- Zombies.


UNDECIDED = pytest.mark.parametrize(
    "point", [FaultPoint.COMMITTER_PRODUCE_AMID, FaultPoint.COMMITTER_WRITE_BEFORE]
)


@VERSIONS
@UNDECIDED
def test_a_stale_driver_makes_nothing_visible(inline: Query, point: FaultPoint) -> None:
    stale = inline.run_paused_at(point)
    inline.finish()
    inline.refuses(stale, SupersededError)
    inline.check()


@UNDECIDED
def test_a_commit_that_wakes_up_after_its_abort_makes_nothing_visible(
    inline: Query, point: FaultPoint
) -> None:
    interrupted = inline.run_paused_at(point)
    inline.call("abort", interrupted.reports(1)).finished()
    inline.check(batches=1)
    interrupted.wake()
    interrupted.stopped(SupersededError)
    inline.check(batches=1)
    inline.finish()
    inline.check()


# --- A batch is visible as a whole.


class Watched:
    """A query that writes many batches to two topics, and a reader of both.

    Attributes:
        kills: of the driver, so far.
        amid: those of them that left the driver's transaction open.
    """

    def __init__(self, kafka: KafkaCluster, query: Query, batches: int, chance: Random) -> None:
        self.kills = self.amid = 0
        self._query, self._servers = query, kafka.bootstrap_servers
        self._chance = chance
        query.spread()
        self._driver = query.options.names.driver
        query.batches = [
            rows_of(batch, [self._chance.randint(1, 12) for _ in range(4)])
            for batch in range(batches)
        ]
        sizes = [sum(map(len, parts)) for parts in query.batches]
        self.reader = BatchReader(self._servers, query.topics, PARTITIONS, sizes.__getitem__)

    def kill(self) -> None:
        """Kill a driver at any time of a batch; every second one soon after it has opened its
        transaction, which is short."""
        process = self._query.run()
        self.reader.wait_seen(self.reader.latest + 2, Deadline(PATIENCE_S))
        process.ends_within(self._chance.uniform(0, 0.2))
        if self.kills % 2:
            while self._status() is not TransactionStatus.ONGOING:
                assert process.end is None, process.said
            process.ends_within(self._chance.uniform(0, 0.01))
        assert process.end is None, process.said
        process.kill()
        self.kills += 1

    def check_whole(self) -> None:
        self.amid += self.reader.check_whole(self._query.kafka, self._driver, SOON_S)

    def _status(self) -> TransactionStatus:
        states = self._query.kafka.control().describe([self._driver], Deadline(PATIENCE_S))
        return states[self._driver].status

    def finish(self) -> None:
        self._query.finish(patience_s=max(PATIENCE_S, _BATCH_S * len(self._query.batches)))
        self.reader.catch_up(Deadline(PATIENCE_S))
        wanted = [row for batch in self._query.batches for part in batch for row in part]
        assert self.reader.partial == {}
        rows = (read_topic(self._servers, topic) for topic in self._query.topics)
        assert_each_once(Rows(itertools.chain(*rows)), wanted)

    @property
    def figures(self) -> str:
        batches = len(self._query.batches)
        return (
            f"{batches} batches, {self.kills} kills, {self.amid} of them within a transaction, "
            f"at most {self.reader.longest_s * 1000:.0f} ms between the rows of a batch"
        )


@VERSIONS
@pytest.mark.parametrize(
    ("kills", "batches"), [(4, 200), pytest.param(40, 1000, marks=pytest.mark.long)]
)
def test_a_batch_is_visible_as_a_whole_while_drivers_die(
    kafka: KafkaCluster,
    inline: Query,
    kills: int,
    batches: int,
    record_property: Callable[[str, object], None],
) -> None:
    watched = Watched(kafka, inline, batches, seeds.chance(kafka.version, kills))
    with contextlib.closing(watched.reader):
        for _ in range(kills):
            watched.kill()
            watched.check_whole()
        watched.finish()
    record_property("figures", watched.figures)


def test_the_check_sees_a_part_of_a_batch_where_each_task_has_a_transaction(
    kafka: KafkaCluster, query: Query
) -> None:
    watched = Watched(kafka, query, 3, Random(1))
    with contextlib.closing(watched.reader):
        query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AMID)
        with pytest.raises(PartialBatchError):
            watched.check_whole()
        assert list(watched.reader.partial) == [1]
        watched.finish()


# --- The records are those of tasks.

SHARE = "65536"
ANYWHERE = b"anywhere"


def columns(topics: list[str], since: int) -> dict[str, Any]:
    """Nulls, empty values and what else a column may have, each with each. A row that may go to any
    partition says so."""
    pair = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [None, [], [("a", b"1"), ("a", None), ("", b"")]]
    chosen = [
        (
            ANYWHERE if key is None and partition is None else value,
            key,
            topic,
            header,
            partition,
            timestamp,
        )
        for value in (b"v", None, b"", b"\0" * 300)
        for key in (b"k", None, b"", "schlüssel".encode())
        for topic in topics
        for header in headers
        for partition in (None, 2)
        for timestamp in (None, 1, since)
    ]
    value, key, topic, header, partition, timestamp = zip(*chosen, strict=True)
    return {
        "value": pa.array(value, pa.binary()),
        "key": pa.array(key, pa.binary()),
        "topic": pa.array(topic, pa.string()),
        "headers": pa.array(header, pair),
        "partition": pa.array(partition, pa.int32()),
        "at": pa.array([t and t * 1000 for t in timestamp], pa.timestamp("us", "UTC")),
    }


def records(kafka: KafkaCluster, topic: str, since: int) -> list[list[Any]]:
    """Of each partition, in order, those that have a place; then all others, sorted."""
    placed: list[list[Any]] = [[] for _ in range(PARTITIONS)]
    others = []
    for seen in read_topic(kafka.bootstrap_servers, topic):
        kind, time_ms = seen.timestamp
        record = (seen.key, seen.value, seen.headers, kind, "now" if time_ms > since else time_ms)
        if seen.value == ANYWHERE:
            others.append(record)
        else:
            placed[seen.partition].append(record)
    return [*placed, sorted(others, key=repr)]


@VERSIONS
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_records_are_those_that_tasks_write(
    kafka: KafkaCluster, run: MakeRun, compression: str
) -> None:
    since = int(time.time() * 1000)
    written = []
    for inline in ("0", SHARE):
        topics = [new_topic(kafka, name, retention_ms=-1) for name in ("first", "second")]
        query = run(
            kafka,
            eos_inline_bytes=inline,
            eos_timestamp_column="at",
            eos_destinations=",".join(topics),
            kafka_compression_type=compression,
        )
        table = columns(topics, since)
        half = len(table["value"]) // 2
        tasks = [
            {name: column[start : start + half] for name, column in table.items()}
            for start in (0, half)
        ]
        reports = query.write_tasks(*([task] for task in tasks))
        assert {bool(report.inline) for report in reports} == {inline == SHARE}
        written.append([records(kafka, topic, since) for topic in topics])
    assert written[0] == written[1]
    assert sum(len(part) for topic in written[1] for part in topic) == 2 * half


def test_a_setting_of_the_users_producer_is_the_drivers_too(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    topic = new_topic(kafka, "narrow", max_message_bytes=2_000)
    query = run(kafka, topic=topic, eos_inline_bytes=SHARE, kafka_compression_type="gzip")
    query.write(value=["x" * 20_000])
    assert read_topic(kafka.bootstrap_servers, topic).values() == ["x" * 20_000]
