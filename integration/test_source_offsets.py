"""A query from Kafka to Kafka whose checkpoint is lost or replaced, on the real Spark."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.structs import OffsetAndMetadata, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eos_sink
from eos_sink.errors import ConfigurationError, OperatorNeededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.spark import foreach_batch
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.cluster_admin import admin_client
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import Rows, assert_each_once, read_topic
from integration.kafka_tools import carry_out, describe_group
from integration.operator_commands import WAITING, run_command

PARTITIONS = 3


class Copy:
    """A query that copies a topic in micro-batches of a few rows."""

    def __init__(self, kafka: KafkaCluster, spark: SparkSession, home: Path) -> None:
        name = uuid.uuid4().hex[:8]
        self.spark, self.kafka = spark, kafka
        self.source, self.target = f"in-{name}", f"out-{name}"
        self.group = f"readers-{name}"
        # Of each topic that it reads.
        self.partitions: dict[str, int] = {}
        for topic in (self.source, self.target):
            kafka.create_topic(topic, partitions=PARTITIONS)
        self.partitions[self.source] = PARTITIONS
        self.checkpoint = home / "checkpoint"
        self.expected: list[str] = []
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": self.source,
            "topic": self.target,
            "eos.id": f"copy-{name}",
            "eos.source.group.id": self.group,
            "checkpointLocation": str(self.checkpoint),
        }

    def read_also(self, topic: str, partitions: int) -> None:
        """Let it read another topic, too."""
        self.kafka.create_topic(topic, partitions)
        self.partitions[topic] = partitions
        self.options["subscribe"] = ",".join(self.partitions)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic of the source."""
        reach = f"--bootstrap-server {self.kafka.bootstrap_servers}"
        carry_out(f"kafka-topics {reach} --alter --topic {topic} --partitions {partitions}")
        self.partitions[topic] = partitions

    def add(self, rows: int, topic: str | None = None) -> None:
        """Add rows to a topic of the source, by default to the first one."""
        topic = topic or self.source
        texts = [f"{len(self.expected) + number}" for number in range(rows)]
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers})
        for text in texts:
            producer.produce(topic, text, partition=int(text) % self.partitions[topic])
        assert producer.flush(30) == 0
        self.expected += texts

    def frame(self, starting: str | None = None, per_batch: int = 30) -> DataFrame:
        reader = self.spark.readStream.format("kafka").options(**self.options)
        reader = reader.option("maxOffsetsPerTrigger", per_batch)
        reader = reader.option(
            "startingOffsets", starting or eos_sink.starting_offsets(self.options)
        )
        return reader.load().select("value")

    def run(self, frame: DataFrame | None = None) -> None:
        """Read all there is."""
        writer = (self.frame() if frame is None else frame).writeStream.format("kafka-eos")
        query = writer.options(**self.options).trigger(availableNow=True).start()
        query.awaitTermination(180)
        assert not query.isActive

    def run_with_sparks_own_sink(self) -> None:
        """Read all there is, from the first row on."""
        own = {name: self.options[name] for name in ("kafka.bootstrap.servers", "topic")}
        writer = self.frame("earliest").writeStream.format("kafka").options(**own)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    def run_after_command(self) -> None:
        """A planner that Spark keeps learns with its next plan that a command has replaced it."""
        frame = self.frame()
        with contextlib.suppress(PySparkException):
            self.run(frame)
        self.run(frame)

    def lose_checkpoint(self) -> None:
        shutil.rmtree(self.checkpoint)

    def rows(self) -> Rows:
        return read_topic(self.kafka.bootstrap_servers, self.target)

    def lag(self) -> int:
        """Rows that the group has not read, as Kafka tells any tool that asks."""
        with admin_client(self.kafka.bootstrap_servers) as admin:
            found = admin.list_group_offsets({self.group: None})[self.group]
            committed = {(at.topic, at.partition): int(to.offset) for at, to in found.items()}
        assert committed.keys() == {(t, p) for t, n in self.partitions.items() for p in range(n)}
        return len(self.expected) - sum(committed.values())

    def shown_lag(self) -> tuple[int, int]:
        """The same as `kafka-consumer-groups` and `eos-sink status` print it."""
        reach = ["--bootstrap-server", self.kafka.bootstrap_servers]
        words = ["status", self.options["eos.id"], *reach, "--json"]
        (query,) = run_command(*words, expect=None).document["queries"]
        described = describe_group(self.kafka.bootstrap_servers, self.group)
        return sum(described.values()), query["source"]["lag"]


def change_offsets(copy: Copy, *choice: str) -> None:
    query, reach = copy.options["eos.id"], ["--bootstrap-server", copy.kafka.bootstrap_servers]
    run_command("offsets", query, *reach, *choice, "--yes", "--take-over", expect=None)


def has_offsets(copy: Copy, topic: str) -> bool:
    """True if the group has offsets in a topic."""
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        found = admin.list_group_offsets({copy.group: None})[copy.group]
    return any(place.topic == topic for place in found)


def unfinish(copy: Copy) -> None:
    """Let Spark forget that it has finished its last batch."""
    commits = (copy.checkpoint / "commits").glob("[0-9]*")
    last = max(commits, key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()


@pytest.fixture
def copy(kafka: KafkaCluster, both: SparkSession, tmp_path: Path) -> Copy:
    return Copy(kafka, both, tmp_path)


@pytest.mark.parametrize("inline", ["0", pytest.param("65536", marks=pytest.mark.long)])
def test_a_lost_checkpoint_repeats_and_skips_no_row(copy: Copy, inline: str) -> None:
    copy.options["eos.inline.bytes"] = inline
    for _ in range(3):
        copy.add(90)
        copy.run()
        assert copy.lag() == 0
        copy.lose_checkpoint()
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.long
def test_without_any_row_the_lag_goes_to_zero(copy: Copy) -> None:
    copy.add(60)
    copy.run(copy.frame().where("value is null"))
    assert copy.shown_lag() == (0, 0)
    copy.lose_checkpoint()
    dropped = len(copy.expected)
    copy.add(30)
    assert copy.shown_lag() == (30, 30)
    copy.run()
    assert copy.lag() == 0
    assert_each_once(copy.rows(), copy.expected[dropped:])


@pytest.mark.long
def test_two_topics_one_of_which_gets_partitions_while_the_checkpoint_is_replaced(
    copy: Copy,
) -> None:
    """Adaptive execution is Spark's default, and changes the tasks of what is shuffled."""
    grows = f"{copy.source}-grows"
    copy.read_also(grows, 2)
    copy.add(90)
    copy.add(60, grows)
    # Amid the batches that AvailableNow has planned for at its start.
    fails = "if(cast(value AS STRING) = '120', raise_error('a later batch'), value) AS value"
    with pytest.raises(PySparkException, match="a later batch"):
        copy.run(copy.frame().repartition("value").selectExpr(fails))
    assert 0 < len(copy.rows()) < 150
    copy.lose_checkpoint()
    copy.grow(grows, 4)
    copy.add(40, grows)
    begins = json.loads(eos_sink.starting_offsets(copy.options))
    assert [begins[grows][partition] for partition in ("2", "3")] == [-2, -2]
    assert min(begins[grows]["0"], begins[copy.source]["0"]) > 0
    copy.run(copy.frame().repartition("value"))
    assert copy.lag() == 0
    assert_each_once(copy.rows(), copy.expected)


def test_a_new_checkpoint_that_begins_elsewhere_writes_nothing(copy: Copy) -> None:
    copy.add(60)
    copy.run()
    copy.lose_checkpoint()
    with pytest.raises(PySparkException) as stopped:
        copy.run(copy.frame("earliest"))
    message = str(stopped.value)
    assert "OperatorNeededError" in message
    assert f"{copy.source}[0] 20 and 0" in message
    assert_each_once(copy.rows(), copy.expected)
    # As the error says.
    copy.lose_checkpoint()
    copy.add(30)
    copy.run()
    assert_each_once(copy.rows(), copy.expected)


def test_within_foreach_batch_it_is_the_same(copy: Copy) -> None:
    def write(frame: DataFrame, _: int) -> None:
        frame.write.format("kafka-eos").mode("append").options(**copy.options).save()

    for _ in range(2):
        copy.add(60)
        writer = copy.frame().writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(copy.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(180)
        assert copy.lag() == 0
        copy.lose_checkpoint()
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.long
def test_a_function_that_catches_the_sinks_error_is_stopped_by_the_next_batch(copy: Copy) -> None:
    def write(frame: DataFrame, number: int, fails: bool) -> None:
        refused = {"kafka.max.request.size": "1"} if fails and number == 1 else {}
        options = {**copy.options, **refused}
        with contextlib.suppress(*[PySparkException] if refused else []):
            frame.write.format("kafka-eos").mode("append").options(**options).save()

    def run(*, fails: bool) -> None:
        writer = copy.frame().writeStream.foreachBatch(partial(write, fails=fails))
        writer = writer.option("checkpointLocation", str(copy.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    copy.add(90)
    for _ in range(2):
        with pytest.raises(PySparkException, match="raise the errors of the sink"):
            run(fails=True)
    assert len(copy.rows()) == 30
    copy.lose_checkpoint()
    run(fails=False)
    assert copy.lag() == 0
    assert_each_once(copy.rows(), copy.expected)


@pytest.fixture
def function() -> Iterator[None]:
    """What a function of `foreachBatch` keeps in this process is closed after the test."""
    yield
    for kept in foreach_batch._clients._entries.values():
        kept.close()


@pytest.mark.usefixtures("function")
def test_a_function_of_foreach_batch_with_another_querys_checkpoint(copy: Copy) -> None:
    copy.add(60)
    wrong = copy.checkpoint.with_name("another")
    right = str(copy.checkpoint)

    def run(checkpoint: str, own: str) -> None:
        copy.options["checkpointLocation"] = checkpoint
        write = eos_sink.foreach_batch(copy.options)
        writer = copy.frame().writeStream.foreachBatch(write).option("checkpointLocation", own)
        writer.trigger(availableNow=True).start().awaitTermination(180)

    others = (
        copy.frame("latest").writeStream.format("noop").option("checkpointLocation", str(wrong))
    )
    others.trigger(availableNow=True).start().awaitTermination(180)
    with pytest.raises(PySparkException, match="the rows are of query"):
        run(str(wrong), right)
    assert copy.rows() == ()
    # The log knows nothing of the batch that it has begun, so it might be another sink's.
    copy.options["checkpointLocation"] = right
    with pytest.raises(OperatorNeededError, match="batch is read again"):
        copy.frame()
    copy.lose_checkpoint()
    run(right, right)
    assert copy.lag() == 0
    assert_each_once(copy.rows(), copy.expected)
    batch = copy.spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(ConfigurationError):
        eos_sink.write(batch, copy.options)


def test_a_query_that_keeps_state_needs_its_checkpoint(copy: Copy) -> None:
    copy.add(30)
    copy.run(copy.frame().dropDuplicates(["value"]))
    copy.lose_checkpoint()
    with pytest.raises(OperatorNeededError):
        copy.frame()
    change_offsets(copy, "--give-up-state")
    copy.add(30)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)


def test_a_file_source_beside_it_needs_its_checkpoint(copy: Copy, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    copy.add(30)

    def both() -> DataFrame:
        beside = copy.spark.readStream.format("text").load(str(files))
        return copy.frame().union(beside.selectExpr("CAST(value AS BINARY) AS value"))

    copy.run(both())
    # Its first file comes later.
    (files / "a").write_text("30\n31\n")
    copy.run(both())
    copy.expected += ["30", "31"]
    copy.lose_checkpoint()
    with pytest.raises(OperatorNeededError):
        both()
    with pytest.raises(PySparkException, match="other sources"):
        copy.run(copy.frame(json.dumps({copy.source: dict.fromkeys("012", 10)})))
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.long
@pytest.mark.parametrize("how", ["assign", "subscribePattern"])
def test_topics_that_are_not_named_by_subscribe(copy: Copy, how: str) -> None:
    """Spark takes startingOffsets only if they have exactly the partitions that it reads."""
    kept = [PARTITIONS - 1]
    assigned = {"assign": json.dumps({copy.source: kept})}
    pattern = {"subscribePattern": f"^({copy.source}|__consumer_offsets)$"}
    del copy.options["subscribe"]
    copy.options |= assigned if how == "assign" else pattern
    for _ in range(2):
        copy.add(30)
        copy.run()
        copy.lose_checkpoint()
    read = [text for text in copy.expected if how != "assign" or int(text) % PARTITIONS in kept]
    assert_each_once(copy.rows(), read)


@pytest.mark.long
def test_two_sources_of_which_each_reads_its_own_topic(copy: Copy) -> None:
    audit = f"{copy.source}-audit"
    copy.read_also(audit, 2)

    def both() -> DataFrame:
        frames = []
        for topic in (copy.source, audit):
            own = {**copy.options, "subscribe": topic}
            starting = eos_sink.starting_offsets(own)
            reader = copy.spark.readStream.format("kafka").options(**own)
            frames.append(reader.option("startingOffsets", starting).load().select("value"))
        return frames[0].union(frames[1])

    for _ in range(2):
        copy.add(30)
        copy.add(20, audit)
        copy.run(both())
        assert copy.lag() == 0
        copy.lose_checkpoint()
    assert_each_once(copy.rows(), copy.expected)


def test_a_checkpoint_of_sparks_own_sink_is_continued(copy: Copy) -> None:
    copy.add(60)
    copy.run_with_sparks_own_sink()
    copy.add(30)
    copy.run()
    assert copy.lag() == 0
    copy.lose_checkpoint()
    copy.add(30)
    copy.run()
    assert_each_once(copy.rows(), copy.expected)


def test_a_batch_that_sparks_own_sink_has_begun_in_this_session_is_not_written(
    copy: Copy,
) -> None:
    frame = copy.frame("earliest")
    copy.add(60)
    copy.run_with_sparks_own_sink()
    # It has died before it could note its last batch.
    unfinish(copy)
    for _ in range(2):
        with pytest.raises(PySparkException, match="does not know who has begun"):
            copy.run(frame)
    with pytest.raises(OperatorNeededError):
        copy.frame()
    assert_each_once(copy.rows(), copy.expected)


def test_a_program_that_does_not_ask_where_to_begin_is_told_to(copy: Copy) -> None:
    copy.add(60)
    for _ in range(2):
        with pytest.raises(PySparkException, match="program that has not called"):
            copy.run(copy.frame("earliest"))
    with pytest.raises(OperatorNeededError):
        copy.frame()
    # As the error says.
    copy.lose_checkpoint()
    copy.add(30)
    copy.run()
    assert_each_once(copy.rows(), copy.expected)


def test_another_name_does_not_write_a_batch_again_that_is_decided(copy: Copy) -> None:
    copy.add(60)
    copy.run()
    unfinish(copy)
    former, copy.options["eos.id"] = copy.options["eos.id"], f"{copy.options['eos.id']}-renamed"
    with pytest.raises(OperatorNeededError, match="Start the query once as it was then"):
        copy.frame()
    with pytest.raises(PySparkException, match="decided under another identity"):
        copy.run(copy.frame("earliest"))
    # As the error says.
    renamed, copy.options["eos.id"] = copy.options["eos.id"], former
    copy.run()
    copy.options["eos.id"] = renamed
    copy.add(30)
    copy.run()
    assert_each_once(copy.rows(), copy.expected)


def test_another_query_on_the_topic_does_not_tell_where_to_begin(copy: Copy) -> None:
    """It writes in foreachBatch, which requires an eos.id; the query started after it has none."""
    others = {**copy.options, "eos.source.group.id": f"{copy.group}-others"}
    others["eos.id"] = f"{copy.options.pop('eos.id')}-others"
    others["checkpointLocation"] = str(copy.checkpoint.with_name("others"))

    def write(frame: DataFrame, _: int) -> None:
        frame.write.format("kafka-eos").mode("append").options(**others).save()

    copy.add(60)
    eos_sink.starting_offsets(others)
    writer = copy.frame("earliest").writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", others["checkpointLocation"])
    writer.trigger(availableNow=True).start().awaitTermination(180)
    copy.run()
    assert_each_once(copy.rows(), [*copy.expected, *copy.expected])


def test_spark_takes_what_starting_offsets_returns(copy: Copy) -> None:
    copy.add(9)
    assert json.loads(eos_sink.starting_offsets(copy.options)) == {
        copy.source: {str(partition): -2 for partition in range(PARTITIONS)}
    }
    copy.run()
    assert json.loads(eos_sink.starting_offsets(copy.options)) == {
        copy.source: {str(partition): 3 for partition in range(PARTITIONS)}
    }


@pytest.mark.long
def test_an_operator_resets_the_group_and_accepts_it(copy: Copy) -> None:
    copy.add(60)
    copy.run()
    copy.lose_checkpoint()
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        reset = {TopicPartition(copy.source, 0): OffsetAndMetadata(5, "", -1)}
        admin.alter_group_offsets(copy.group, reset)
    with pytest.raises(OperatorNeededError) as stopped:
        copy.frame()
    assert stopped.value.data["committed"] == {copy.source: {"0": 5}}
    query, reach = copy.options["eos.id"], ["--bootstrap-server", copy.kafka.bootstrap_servers]
    run_command("offsets", query, *reach, expect=WAITING)
    run_command("offsets", query, *reach, "--use", "group", "--yes", "--take-over")
    copy.run_after_command()
    again = [text for text in copy.expected if int(text) % PARTITIONS == 0][5:]
    assert_each_once(copy.rows(), [*copy.expected, *again])


def delete_topic(copy: Copy, topic: str) -> None:
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        admin.delete_topics([topic])
    wait_until(lambda: not has_offsets(copy, topic), Deadline(30), "the group without the topic")


@pytest.mark.parametrize(
    ("partitions", "rows"),
    [
        (2, 10),
        pytest.param(2, 90, marks=pytest.mark.long),
        pytest.param(1, 90, marks=pytest.mark.long),
    ],
)
def test_a_topic_is_deleted_and_created_again(copy: Copy, partitions: int, rows: int) -> None:
    """The other one is read on where it was."""
    other = f"{copy.source}-other"
    copy.read_also(other, 2)
    copy.add(60)
    copy.add(40, other)
    copy.run()
    copy.lose_checkpoint()
    delete_topic(copy, other)
    copy.read_also(other, partitions)
    copy.add(rows, other)
    copy.add(30)
    with pytest.raises(OperatorNeededError, match="deleted and created again"):
        copy.frame()
    change_offsets(copy, "--drop", other)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.usefixtures("function")
def test_a_topic_is_deleted_and_created_again_in_the_first_batch(copy: Copy) -> None:
    """The function has read the rows of the former one before it writes."""
    write = eos_sink.foreach_batch(copy.options)

    def make_again(frame: DataFrame, number: int) -> None:
        frame.persist().count()
        with admin_client(copy.kafka.bootstrap_servers) as admin:
            admin.delete_topics([copy.source])
            wait_until(
                lambda: copy.source not in admin.list_topics(), Deadline(30), "the topic's end"
            )
        copy.kafka.create_topic(copy.source, PARTITIONS)
        copy.add(60)
        write(frame, number)

    def run(function: Callable[[DataFrame, int], None]) -> None:
        writer = copy.frame().writeStream.foreachBatch(function)
        writer = writer.option("checkpointLocation", str(copy.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    copy.add(30)
    copy.expected.clear()
    with pytest.raises(PySparkException, match="created again since the query was started"):
        run(make_again)
    assert copy.rows() == ()
    # As the error says.
    copy.lose_checkpoint()
    run(write)
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.usefixtures("function")
def test_a_topic_is_deleted_and_created_again_after_a_batch_without_the_group(copy: Copy) -> None:
    """The way of writing has changed with that batch, so no identity knows the offsets."""
    copy.add(60)
    copy.run()
    without = {name: text for name, text in copy.options.items() if name != "eos.source.group.id"}

    def run(options: dict[str, str]) -> None:
        frame = copy.frame("latest" if options is without else None)
        writer = frame.writeStream.foreachBatch(eos_sink.foreach_batch(options))
        writer = writer.option("checkpointLocation", str(copy.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    copy.add(60)
    run(without)
    delete_topic(copy, copy.source)
    copy.kafka.create_topic(copy.source, PARTITIONS)
    copy.add(180)
    with pytest.raises(PySparkException, match="deleted and created again") as stopped:
        run(copy.options)
    # As the error says.
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        first = {
            TopicPartition(copy.source, number): OffsetAndMetadata(0, "", -1)
            for number in range(PARTITIONS)
        }
        admin.alter_group_offsets(copy.group, first)
    (query,) = re.findall(r"eos-sink offsets (\S+) .*--use group", str(stopped.value))
    reach = ["--bootstrap-server", copy.kafka.bootstrap_servers, "--group", copy.group]
    run_command("offsets", query, *reach, "--use", "group", "--yes", "--take-over", expect=None)
    copy.lose_checkpoint()
    with contextlib.suppress(PySparkException):
        run(copy.options)
    run(copy.options)
    assert_each_once(copy.rows(), copy.expected)


def test_a_new_checkpoint_without_the_group_writes_nothing(copy: Copy) -> None:
    copy.add(60)
    copy.run()
    copy.lose_checkpoint()
    group = copy.options.pop("eos.source.group.id")
    with pytest.raises(PySparkException, match=r"only with eos\.source\.group\.id"):
        copy.run(copy.frame("earliest"))
    assert_each_once(copy.rows(), copy.expected)
    # As the error says, and then as the next one does.
    copy.options["eos.source.group.id"] = group
    with pytest.raises(PySparkException, match="Delete the checkpoint directory"):
        copy.run()
    copy.lose_checkpoint()
    copy.add(30)
    copy.run()
    assert_each_once(copy.rows(), copy.expected)


def test_a_topic_is_removed_deleted_created_and_added_again(copy: Copy) -> None:
    other = f"{copy.source}-other"
    copy.read_also(other, 2)
    copy.add(60)
    copy.add(40, other)
    copy.run()
    copy.options["subscribe"] = copy.source
    copy.lose_checkpoint()
    copy.add(30)
    copy.run()
    delete_topic(copy, other)
    copy.read_also(other, 2)
    copy.add(20, other)
    copy.lose_checkpoint()
    with pytest.raises(OperatorNeededError, match="deleted and created again"):
        copy.frame()
    change_offsets(copy, "--drop", other)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)


def test_a_topic_is_removed_and_deleted(copy: Copy) -> None:
    other = f"{copy.source}-other"
    copy.read_also(other, 2)
    copy.add(60)
    copy.add(40, other)
    copy.run()
    copy.options["subscribe"] = copy.source
    copy.lose_checkpoint()
    delete_topic(copy, other)
    with pytest.raises(OperatorNeededError, match="does not exist any more"):
        copy.frame()
    change_offsets(copy, "--drop", other)
    copy.add(30)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)


@pytest.mark.long
def test_offsets_that_have_expired_are_committed_again(copy: Copy) -> None:
    copy.add(60)
    copy.run()
    copy.lose_checkpoint()
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        admin.delete_groups([copy.group])
    with pytest.raises(OperatorNeededError):
        copy.frame()
    query, reach = copy.options["eos.id"], ["--bootstrap-server", copy.kafka.bootstrap_servers]
    run_command("offsets", query, *reach, "--use", "record", "--yes", "--take-over")
    assert copy.lag() == 0
    copy.add(30)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)
