"""Rows that the driver writes in the decision's transaction, in real Spark: each way of writing."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_batch_options
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint, Strike
from integration.query_state import read_log
from integration.spark_apps import PATIENCE_S, Applications
from integration.spark_query import PARTITIONS, TASKS, SparkQuery
from integration.whole_batches import BatchReader
from tests import seeds

pytestmark = pytest.mark.timeout(1800)


SOON_S = 20.0


@pytest.fixture
def query(spark_query: SparkQuery) -> SparkQuery:
    spark_query.options["eos.inline.bytes"] = "65536"
    return spark_query


def assert_inlined(sink: SinkOptions, tasks: int) -> None:
    """The driver has written the latest batch."""
    with contextlib.closing(ConfluentKafka(sink.cluster)) as kafka:
        decision = read_log(kafka, sink.names).decision
    assert decision is not None
    assert decision.prepared == ()
    assert len(decision.inlined) == tasks


def test_a_stream_and_its_replay_with_other_tasks(query: SparkQuery) -> None:
    query.add_batch()
    query.add_batch()
    query.tasks = 5
    query.finish()
    assert_inlined(query.sink, tasks=5)
    query.replay(1)
    query.tasks = 3
    query.finish()
    assert_inlined(query.sink, tasks=5)
    query.assert_exactly_once()


@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.COMMITTER_PRODUCE_AMID,
        FaultPoint.COMMITTER_WRITE_BEFORE,
        FaultPoint.COMMITTER_WRITE_AFTER,
    ],
    ids=lambda point: point.value,
)
def test_a_committers_process_is_killed(query: SparkQuery, point: FaultPoint) -> None:
    query.add_batch()
    query.faults.arm(point, Strike.KILL_PROCESS)
    run = query.program()
    run.stopped()
    assert query.faults.fired(point)
    # Spark's abort has ended the transaction.
    query.assert_nothing_held_up()
    query.program(application=run.application).finished()
    query.assert_exactly_once()


def test_frames_of_foreach_batch_and_their_replay(query: SparkQuery) -> None:
    other = f"{query.topic}-other"
    query.kafka.create_topic(other, partitions=1)
    query.frames = [query.frame(each, **{"eos.id": each}) for each in (query.topic, other)]
    query.add_batch()
    query.finish()
    query.replay(0)
    query.add_batch()
    query.finish()
    for frame in query.frames:
        assert_inlined(parse_batch_options(frame).sink, tasks=TASKS)
        query.assert_exactly_once(frame["topic"])


def test_batch_writes_with_a_version_and_without(query: SparkQuery) -> None:
    query.batch = True
    query.add_batch()
    options = query.frame(query.topic)
    for version, copies in ((None, 1), (None, 2), ("1", 3), ("1", 3), ("2", 4)):
        query.options = options
        if version is not None:
            query.options = {**options, "txnAppId": "load", "txnVersion": version}
        query.finish()
        assert_inlined(parse_batch_options(query.options).sink, tasks=TASKS)
        assert Counter(query.seen().values()) == Counter(copies * query.expected)


@pytest.mark.long
def test_a_batch_of_many_more_tasks_than_the_one_before_fits_into_the_driver(
    query: SparkQuery,
) -> None:
    """Spark stops a job whose results are larger than this, at each restart again."""
    small = query.applications.another(conf={"spark.driver.maxResultSize": "20m"})
    query.columns = ["value AS key", "repeat('x', 60000) AS value"]
    query.tasks = 1
    query.add_batch(rows=1)
    query.program(application=small).finished()
    assert_inlined(query.sink, tasks=1)
    query.tasks = 400
    query.add_batch(rows=query.tasks)
    query.program(application=small).finished()
    assert Counter((row.key or b"").decode() for row in query.seen()) == Counter(query.expected)


@pytest.mark.long
@pytest.mark.parametrize("kills", [8])
def test_a_batch_is_visible_as_a_whole_while_drivers_and_workers_die(
    cluster: KafkaCluster,
    spark: SparkSession,
    applications: Applications,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    kills: int,
) -> None:
    """Three brokers: the markers of one transaction are written by several."""
    chance = seeds.chance(kills)
    query = SparkQuery(cluster, spark, applications, tmp_path)
    del query.options["topic"]
    query.options["eos.inline.bytes"] = "65536"
    query.tasks = 4
    other = f"{query.topic}-other"
    cluster.create_topic(other, partitions=PARTITIONS)
    query.columns.append(f"IF(value LIKE '%-1', '{query.topic}', '{other}') AS topic")
    sizes: dict[int, int] = {}

    def feed(batches: int) -> None:
        for _ in range(batches):
            sizes[len(sizes)] = rows = chance.randint(8, 60)
            query.add_batch(rows)

    amid = 0
    reader = BatchReader(
        cluster.bootstrap_servers, [query.topic, other], PARTITIONS, sizes.__getitem__
    )
    driver, clients = query.sink.names.driver, query.clients()
    with contextlib.closing(reader), contextlib.closing(query):
        for kill in range(kills):
            # Enough for the next run, and not more: at the end the rest has to be written, too.
            feed(reader.latest + 16 - len(sizes))
            run = query.program({"processingTime": "0 seconds"})
            reader.wait_seen(reader.latest + 2, Deadline(PATIENCE_S))
            if kill % 3 == 0:
                with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                    os.kill(chance.choice(run.application.workers()), signal.SIGKILL)
            time.sleep(chance.uniform(0, 1))
            run.application.kill()
            query.applications.warm_up()
            amid += reader.check_whole(clients, driver, SOON_S)
        query.finish()
        reader.catch_up(Deadline(PATIENCE_S))
        assert reader.partial == {}
        seen = Counter((*query.seen().values(), *query.seen(other).values()))
        assert seen == Counter(query.expected)
    record_property(
        "figures",
        f"{len(sizes)} batches, {kills} kills, {amid} of them within a transaction, at most "
        f"{reader.longest_s * 1000:.0f} ms between the rows of a batch",
    )
