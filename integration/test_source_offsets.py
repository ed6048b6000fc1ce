"""A query from Kafka to Kafka whose checkpoint is lost or replaced, on the real Spark."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.structs import OffsetAndMetadata, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eos_sink
from eos_sink.errors import OperatorNeededError
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.cluster_admin import admin_client
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import Rows, assert_each_once, read_topic
from integration.kafka_tools import carry_out, describe_group
from integration.operator_commands import WAITING, run_command

pytestmark = pytest.mark.sampled(3, of="source offsets")

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

    def offsets(self) -> dict[TopicPartition, int]:
        """Of the group, as Kafka tells any tool that asks."""
        with admin_client(self.kafka.bootstrap_servers) as admin:
            found = admin.list_group_offsets({self.group: None})[self.group]
        return {at: int(to.offset) for at, to in found.items()}

    def lag(self) -> int:
        """Rows that the group has not read."""
        read = self.offsets()
        assert read.keys() == {(t, p) for t, n in self.partitions.items() for p in range(n)}
        return len(self.expected) - sum(read.values())

    @property
    def called(self) -> list[str]:
        """What names the query in a command."""
        return [self.options["eos.id"], "--bootstrap-server", self.kafka.bootstrap_servers]

    def shown_lag(self) -> tuple[int, int]:
        """The same as `kafka-consumer-groups` and `eos-sink status` print it."""
        (query,) = run_command("status", *self.called, "--json", expect=None).document["queries"]
        described = describe_group(self.kafka.bootstrap_servers, self.group)
        return sum(described.values()), query["source"]["lag"]


@pytest.fixture
def copy(kafka: KafkaCluster, both: SparkSession, tmp_path: Path) -> Copy:
    return Copy(kafka, both, tmp_path)


@pytest.mark.parametrize("inline", ["0", "65536"])
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
    last = max((copy.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    for _ in range(2):
        with pytest.raises(PySparkException, match="does not know who has begun"):
            copy.run(frame)
    with pytest.raises(OperatorNeededError):
        copy.frame()
    assert_each_once(copy.rows(), copy.expected)


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
    run_command("offsets", *copy.called, expect=WAITING)
    run_command("offsets", *copy.called, "--use", "group", "--yes", "--take-over")
    copy.run_after_command()
    again = [text for text in copy.expected if int(text) % PARTITIONS == 0][5:]
    assert_each_once(copy.rows(), [*copy.expected, *again])


def test_a_topic_is_deleted_and_created_again(copy: Copy) -> None:
    """The other one is read on where it was."""
    other = f"{copy.source}-other"
    copy.read_also(other, 2)
    copy.add(60)
    copy.add(40, other)
    copy.run()
    copy.lose_checkpoint()
    with admin_client(copy.kafka.bootstrap_servers) as admin:
        admin.delete_topics([other])
        wait_until(
            lambda: other not in {at.topic for at in copy.offsets()},
            Deadline(30),
            "the group without the topic",
        )
    copy.read_also(other, 2)
    copy.add(10, other)
    copy.add(30)
    with pytest.raises(OperatorNeededError, match="deleted and created again"):
        copy.frame()
    run_command("offsets", *copy.called, "--drop", other, "--yes", "--take-over", expect=None)
    copy.run_after_command()
    assert_each_once(copy.rows(), copy.expected)
