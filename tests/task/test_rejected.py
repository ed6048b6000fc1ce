"""Which rows are rejected, by which rules, and how large they are."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from eos_sink.errors import ConfigurationError, FailureKind, ProduceFailedError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.destinations import is_topic_name
from eos_sink.protocol.model import BatchId, TaskReport
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.rows.rows import Rows
from eos_sink.sink_options import SinkOptions
from eos_sink.task.record_sizes import RecordSizes
from eos_sink.task.rejected import RejectedRows
from eos_sink.task.writer import TaskWriter
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka
from tests.protocol.driver import STREAM, Driver
from tests.protocol.world import TOPIC, World, options
from tests.task.random_rows import ROWS, Given, columns, is_good

LETTERS = "dead"
NOW_MS = 1_700_000_000_000
SOON = {"kafka.topic.metadata.propagation.max.ms": "0"}

parts = st.none() | st.binary(max_size=300) | st.sampled_from([b"x" * 70, b"x" * 9000])
headers = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=70), st.binary(max_size=90)),
    max_size=3,
)


@given(st.lists(st.tuples(parts, parts, headers), min_size=1, max_size=5))
def test_the_size_of_a_row_is_that_of_its_record_batch(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
) -> None:
    """As another client writes it."""
    built = []
    for value, key, named in rows:
        batch = DefaultRecordBatchBuilder(2, 0, True, 1, 0, 0, 1 << 30)
        batch.append(0, NOW_MS, key, value, named)
        built.append(len(batch.build()))
    columns = Rows.of([(value, key, "t", named, None, None) for value, key, named in rows])
    content = RecordSizes(columns)
    sent, stored = content.sizes()
    assert stored.tolist() == built
    assert content.bound >= max(stored.max(), sent.max())


def given_options(**more: str) -> SinkOptions:
    return options(**{"eos.dead.letter.topic": LETTERS, **SOON, **more})


def sort(rows: Rows, cluster: FakeCluster, **rules: TopicRules) -> tuple[Rows, Rows | None]:
    cluster.create_topic(LETTERS)
    kafka = FakeKafka(cluster)
    known = {LETTERS: TopicRules(1, 10**6), **rules}
    rejected = RejectedRows(kafka, given_options(), known, 0, lambda: NOW_MS)
    taken, letters = rejected.sort_out(rows)
    return taken, next(letters, None)


def test_rows_that_are_all_right_are_not_copied() -> None:
    rows = Rows(pa.array([b"a", b"b"]), topic=TOPIC)
    taken, letters = sort(rows, FakeCluster(), **{TOPIC: TopicRules(1, 10**6)})
    assert taken is rows
    assert letters is None


def test_a_row_is_not_rejected_by_rules_that_are_no_longer_true() -> None:
    cluster = FakeCluster()
    cluster.create_topic(TOPIC, partitions=2)
    rows = Rows(pa.array([b"a"]), topic=TOPIC, partition=pa.array([1], pa.int32()))
    assert sort(rows, cluster, **{TOPIC: TopicRules(1, 10**6)})[1] is None
    assert sort(rows.slice(0), FakeCluster(), **{TOPIC: TopicRules(2, 10**6)})[1] is None


def test_a_task_does_not_wait_for_each_topic_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows with a new name in each Arrow batch would keep it waiting five seconds each time."""
    cluster = FakeCluster()
    cluster.create_topic(LETTERS)
    patience = {"kafka.topic.metadata.propagation.max.ms": "5000", "topic": ""}
    monkeypatch.setattr(Deadline.__init__, "__defaults__", (cluster.clock,))
    monkeypatch.setattr(time, "sleep", cluster.clock.advance)
    began = cluster.clock()
    rows = RejectedRows(FakeKafka(cluster), given_options(**patience), {}, 0, lambda: NOW_MS)
    for number in range(5):
        rows.know(Rows(pa.array([b"a"]), topic=pa.array([f"missing-{number}"])))
    assert 5 <= cluster.clock() - began < 11


@pytest.mark.parametrize(
    ("age_ms", "rejected"),
    [
        (60_001, True),
        (55_000, True),
        (53_999, False),
        (0, False),
        (-3_589_999, False),
        (-3_595_000, True),
        (-3_600_001, True),
    ],
)
def test_a_time_near_a_limit_is_beyond_it(age_ms: int, rejected: bool) -> None:
    """It would be beyond by the broker's clock, or when it arrives there."""
    limits = {
        "message.timestamp.before.max.ms": "60000",
        "message.timestamp.after.max.ms": "3600000",
    }
    cluster = FakeCluster()
    cluster.create_topic(TOPIC, settings=limits)
    when = pa.array([NOW_MS - age_ms], pa.int64())
    letters = sort(Rows(pa.array([b"a"]), topic=TOPIC, timestamp=when), cluster)[1]
    assert (letters is not None) is rejected


def test_the_older_setting_stands_for_those_that_are_not_set() -> None:
    most = str(2**63 - 1)
    settings = {
        "message.timestamp.difference.max.ms": "7",
        "message.timestamp.before.max.ms": most,
        "message.timestamp.after.max.ms": "9",
    }
    rules = TopicRules.of(1, settings)
    assert (rules.before_ms, rules.after_ms) == (7, 9)
    stamped = TopicRules.of(1, {**settings, "message.timestamp.type": "LogAppendTime"})
    assert (stamped.before_ms, stamped.after_ms) == (int(most), int(most))


@pytest.mark.parametrize(
    ("name", "good"),
    [("a.b_c-D", True), ("x" * 249, True), ("x" * 250, False), ("", False), (".", False),
     ("a/b", False), ("ü", False), ("__transaction_state", False)],
)  # fmt: skip
def test_a_topic_name_is_one_that_kafka_allows(name: str, good: bool) -> None:
    assert is_topic_name(name) is good


# --- A batch with dead letters, from its plan to its replay.


@pytest.fixture
def world() -> World:
    world = World([], options=given_options())
    world.cluster.create_topic(LETTERS)
    return world


def write(world: World, driver: Driver, batch: int, *tasks: dict[str, Any]) -> list[TaskReport]:
    plan = driver.planner.plan()
    return [
        TaskWriter(FakeKafka(world.cluster), world.options, plan).write(
            BatchId(STREAM, batch), number, [pa.RecordBatch.from_pydict(columns)]
        )
        for number, columns in enumerate(tasks)
    ]


def letters(world: World) -> list[bytes]:
    return sorted(entry.value or b"" for entry in world.cluster.read_committed(LETTERS))


MIXED = {"value": [b"good", b"bad"], "partition": pa.array([0, 7], pa.int32())}
GOOD = {"value": [b"good"], "partition": pa.array([0], pa.int32())}


@pytest.mark.parametrize("inline", ["0", "4096"])
def test_a_replay_compares_all_rows_whichever_topic_they_are_in(inline: str) -> None:
    world = World([], options=given_options(**{"eos.inline.bytes": inline}))
    world.cluster.create_topic(LETTERS)
    driver = Driver(world)
    reports = write(world, driver, 0, MIXED, GOOD)
    assert (world.visible(), letters(world)) == ([], [])
    driver.committer.commit(reports)
    assert (world.visible(), letters(world)) == ([b"good", b"good"], [b"bad"])
    decision = driver.planner.plan().decision
    assert decision is not None
    assert (decision.total.rows, decision.dead_letter_rows) == (3, 1)
    assert sorted(decision.topics) == sorted([TOPIC, LETTERS])
    # By now the topic takes the row.
    for _ in range(6):
        world.cluster.topics[TOPIC].partitions.append(world.cluster.topics[TOPIC].partitions[0])
    replayed = write(world, driver, 0, MIXED, GOOD)
    assert [report.dead_letters for report in replayed] == [{}, {}]
    driver.committer.commit(replayed)
    assert letters(world) == [b"bad"]


def test_a_transaction_of_dead_letters_only_has_a_witness_there(world: World) -> None:
    driver = Driver(world)
    bad = {"value": [b"bad"], "partition": pa.array([7], pa.int32())}
    reports = write(world, driver, 0, bad)
    assert reports[0].prepared is not None
    assert reports[0].prepared.witness.topic == LETTERS
    driver.committer.commit(reports)
    assert letters(world) == [b"bad"]


@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("inline", ["0", "1"])
def test_the_witness_is_a_row_in_its_own_topic_however_late_it_comes(
    before: int, inline: str
) -> None:
    world = World([], options=given_options(**{"eos.inline.bytes": inline}))
    world.cluster.create_topic(LETTERS)
    driver = Driver(world)
    bad = {"value": [b"bad"], "partition": pa.array([7], pa.int32())}
    parts = [pa.RecordBatch.from_pydict(each) for each in (*[bad] * before, GOOD, bad)]
    writer = TaskWriter(FakeKafka(world.cluster), world.options, driver.planner.plan())
    report = writer.write(BatchId(STREAM, 0), 0, parts)
    assert report.prepared is not None
    assert report.prepared.witness.topic == TOPIC
    driver.committer.commit([report])
    assert (world.visible(), len(letters(world))) == ([b"good"], before + 1)
    decision = driver.planner.plan().decision
    assert decision is not None
    assert sorted(decision.topics) == sorted([TOPIC, LETTERS])


# --- Rows of all kinds.


@settings(max_examples=50)
@example([(TOPIC.encode(), [(b"k\xff", b"h")], None)], "0", 0)
@example([(TOPIC.encode(), [None], None)], "65536", 0)
@example([(b"t\xff", None, None)], "65536", 0)
@given(ROWS, st.sampled_from(["0", "65536"]), st.integers(0, 5))
def test_each_row_is_written_or_refused_or_a_dead_letter_whichever_way_it_goes(
    rows: list[Given], inline: str, cut: int
) -> None:
    good = [b"%d" % number for number, row in enumerate(rows) if is_good(row)]
    parts = [part for part in (columns(rows)[:cut], columns(rows)[cut:]) if len(part)]
    for dead in ("", LETTERS):
        more = {"topic": "", "eos.inline.bytes": inline, "eos.dead.letter.topic": dead}
        world = World([], options=given_options(**more))
        world.cluster.create_topic(LETTERS)
        driver = Driver(world)
        writer = TaskWriter(FakeKafka(world.cluster), world.options, driver.planner.plan())
        if not dead and len(good) < len(rows):
            with pytest.raises(ConfigurationError):
                writer.write(BatchId(STREAM, 0), 0, parts)
            continue
        report = writer.write(BatchId(STREAM, 0), 0, parts)
        driver.committer.commit([report])
        assert world.visible() == good
        assert len(letters(world)) == sum(report.dead_letters.values()) == len(rows) - len(good)
        # A replay compares them all, also if the option was taken away.
        plan, strict = driver.planner.plan(), given_options(**{**more, "eos.dead.letter.topic": ""})
        again = TaskWriter(FakeKafka(world.cluster), strict, plan)
        driver.committer.commit([again.write(BatchId(STREAM, 0), 0, parts[::-1])])


def test_many_dead_letters_of_a_small_task_do_not_go_through_the_driver() -> None:
    world = World([], options=given_options(**{"eos.inline.bytes": "4096"}))
    world.cluster.create_topic(LETTERS)
    driver = Driver(world)
    bad = {"value": [b"%d" % n for n in range(50)], "partition": pa.array([7] * 50, pa.int32())}
    reports = write(world, driver, 0, bad, MIXED)
    assert [report.prepared is not None for report in reports] == [True, False]
    driver.committer.commit(reports)
    assert world.visible() == [b"good"]
    assert len(letters(world)) == 51


@pytest.mark.parametrize(("most", "by_driver"), [(4096, True), (4095, False)])
def test_rows_of_a_topic_that_takes_less_than_the_driver_sends_do_not_go_through_it(
    most: int, by_driver: bool
) -> None:
    """The driver's record batches may be as large as `eos.inline.bytes`."""
    world = World([], options=given_options(**{"eos.inline.bytes": "4096"}))
    world.cluster.create_topic(LETTERS)
    world.cluster.topics[TOPIC].settings["max.message.bytes"] = str(most)
    driver = Driver(world)
    reports = write(world, driver, 0, GOOD)
    assert (reports[0].prepared is None) is by_driver
    driver.committer.commit(reports)
    assert world.visible() == [b"good"]


def test_the_rows_and_the_dead_letters_of_a_task_share_the_limit() -> None:
    world = World([], options=given_options(**{"eos.inline.bytes": "4096"}))
    world.cluster.create_topic(LETTERS)
    driver = Driver(world)
    large = {"value": [b"x" * 3900, b"bad"], "partition": pa.array([0, 7], pa.int32())}
    reports = write(world, driver, 0, large, MIXED)
    assert [report.prepared is not None for report in reports] == [True, False]
    driver.committer.commit(reports)
    assert len(letters(world)) == 2


def test_dead_letters_with_long_topics_are_made_in_slices() -> None:
    rows = Rows(pa.array([b"x"] * 10), topic=pa.array([f"{n}{'?' * 250_000}" for n in range(10)]))
    cluster = FakeCluster()
    cluster.create_topic(LETTERS, settings={"max.message.bytes": "10000000"})
    rejected = RejectedRows(FakeKafka(cluster), given_options(topic=""), {}, 0)
    assert list(map(len, rejected.sort_out(rows)[1])) == [4, 4, 2]


def test_the_reason_of_a_dead_letter_does_not_repeat_a_long_topic() -> None:
    """Otherwise the letter would be several times as large as its row."""
    name = "\0" * 300_000
    rows = Rows(pa.array([b"x"]), topic=pa.array([name]))
    cluster = FakeCluster()
    cluster.create_topic(LETTERS)
    (letters,) = RejectedRows(FakeKafka(cluster), given_options(topic=""), {}, 0).sort_out(rows)[1]
    ((_, _, _, headers, _, _),) = letters
    found = dict(headers or ())
    assert found["__connect.errors.topic"] == name.encode()
    assert len(found["__connect.errors.exception.message"] or b"") < 1_100


def test_dead_letters_are_made_in_slices() -> None:
    """Of 1 MB, or of 1000 rows."""
    for count, size, slices in ((2_500, 10, 3), (10, 250_000, 3), (1, 9_000_000, 1)):
        rows = Rows(pa.array([b"x" * size] * count), topic="missing")
        cluster = FakeCluster()
        cluster.create_topic(LETTERS, settings={"max.message.bytes": "10000000"})
        rejected = RejectedRows(FakeKafka(cluster), given_options(topic=""), {}, 0)
        made = list(rejected.sort_out(rows)[1])
        assert (len(made), sum(map(len, made))) == (slices, count)


@pytest.mark.parametrize(
    ("given", "most"),
    [({}, 48 * 2**20), ({"kafka.buffer.memory": str(2**27)}, 2**27)],
    ids=["default", "buffer.memory"],
)
def test_a_dead_letter_topic_that_takes_very_much_does_not_let_the_queue_grow(
    given: dict[str, str], most: int
) -> None:
    cluster = FakeCluster()
    cluster.create_topic(LETTERS, settings={"max.message.bytes": "1000000000"})
    rejected = RejectedRows(FakeKafka(cluster), given_options(topic="", **given), {}, 0)
    assert rejected.sizes().record == most
    fits = Rows(pa.array([b"x" * (most - 1_000)]), topic="missing")
    assert len(list(rejected.sort_out(fits)[1])) == 1
    beyond = Rows(pa.array([b"x" * most]), topic="missing")
    with pytest.raises(ProduceFailedError) as raised:
        list(rejected.sort_out(beyond)[1])
    assert raised.value.kind is FailureKind.MESSAGE_REJECTED
    assert raised.value.data["bytes"] > raised.value.data["limit"]
    assert "kafka.buffer.memory" in raised.value.remedy


def test_a_large_row_with_a_header_without_a_key_is_one_dead_letter() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = Rows(pa.array([b"x" * 5000]), topic=TOPIC, headers=pa.array([[(None, b"h")]], kind))
    cluster = FakeCluster()
    cluster.create_topic(LETTERS)
    cluster.create_topic(TOPIC, settings={"max.message.bytes": "1000"})
    options = given_options(**{"kafka.compression.type": "zstd"})
    rejected = RejectedRows(FakeKafka(cluster), options, {}, 0)
    assert len(list(rejected.sort_out(rows)[1])) == 1
    assert rejected.counts == {"IllegalArgumentException": 1}
