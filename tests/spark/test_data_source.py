"""What Spark's processes do with the data source: one plans, another commits."""

from __future__ import annotations

import importlib
import pickle
import traceback
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from eos_sink.errors import ConfigurationError, EosSinkError
from eos_sink.kafka import error_codes
from eos_sink.protocol.model import BatchId
from eos_sink.spark import data_source
from eos_sink.spark.client_cache import ClientCache, explain_missing_library
from eos_sink.spark.data_source import KafkaEosDataSource
from eos_sink.spark.writers import Report
from tests.fakes.kafka import FakeKafka
from tests.imported import imported
from tests.protocol.world import TOPIC, World
from tests.spark.fake_source import FakeDataSource

SCHEMA = StructType([StructField("value", StringType())])
OPTIONS = {
    "kafka.bootstrap.servers": "nowhere:1",
    "topic": TOPIC,
    "eos.id": "story",
    "eos.transaction.timeout.ms": "60000",
}


def log_records(world: World) -> int:
    log = world.cluster.topics.get("__eos_sink_log")
    return len(log.committed()) if log else 0


def written(world: World, writer: Any) -> list[Any]:
    """What the tasks of a batch report."""
    import pyarrow as pa

    from eos_sink.task.writer import TaskWriter

    assert writer._plan is not None
    reports = []
    for partition in range(2):
        task = TaskWriter(FakeKafka(world.cluster), writer._options, writer._plan)
        data = [pa.RecordBatch.from_pydict({"value": [b"%d" % partition]})]
        reports.append(Report(task.write(BatchId("stream", 0), partition, data)))
    return reports


def test_the_process_of_commits_does_not_take_the_planners_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark calls streamWriter() there too, of an instance that arrives unpickled."""
    source = FakeDataSource(OPTIONS)
    plan = source.streamWriter(SCHEMA, overwrite=False)
    before = log_records(world)
    monkeypatch.setattr(data_source, "_planners", ClientCache())
    arrived: FakeDataSource = pickle.loads(pickle.dumps(source))
    committing = arrived.streamWriter(SCHEMA, overwrite=False)
    assert log_records(world) == before, "it has recovered"
    committing.commit(written(world, plan), 0)
    assert world.visible() == [b"0", b"1"]


def test_the_process_of_commits_gets_parsed_options() -> None:
    source = pickle.dumps(KafkaEosDataSource({**OPTIONS, "kafka.sasl.password": "secret"}))
    committing = f"import pickle; pickle.loads({source!r}).streamWriter(None, False)"
    loaded = imported(committing)
    assert "eos_sink.spark.writers" in loaded
    assert loaded.isdisjoint({"eos_sink.options", "eos_sink.kafka_config.translate"})


def test_an_error_of_a_stream_is_not_one_of_pickling() -> None:
    source = FakeDataSource({**OPTIONS, "txnAppId": "app", "txnVersion": "1"})
    arrived: FakeDataSource = pickle.loads(pickle.dumps(source))
    with pytest.raises(ConfigurationError, match=r"are for df\.write"):
        arrived.streamWriter(SCHEMA, overwrite=False)


def test_a_batch_of_which_a_task_has_not_reported_is_not_decided(world: World) -> None:
    writer = FakeDataSource(OPTIONS).streamWriter(SCHEMA, overwrite=False)
    before = log_records(world)
    first, _ = written(world, writer)
    with pytest.raises(EosSinkError, match="unreported"):
        writer.commit([first, None], 0)
    assert log_records(world) == before
    assert world.visible() == []


def test_an_error_is_raised_without_the_calls_behind_it() -> None:
    with pytest.raises(ConfigurationError) as error:
        FakeDataSource({**OPTIONS, "eos.inline.bytes": "many"}).streamWriter(SCHEMA, False)
    assert len(traceback.extract_tb(error.tb)) == 2, "this test and the entry point"
    assert error.value.__cause__ is None


def test_a_query_that_reads_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"format\('kafka'\)"):
        FakeDataSource(OPTIONS).schema()


def test_an_old_kafka_client_is_named_with_the_command_that_replaces_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confluent_kafka, "libversion", lambda: ("2.9.0", 0x020900FF))
    with (
        pytest.raises(ConfigurationError, match=r"2\.9\.0"),
        explain_missing_library(),
    ):
        importlib.reload(error_codes)
