"""What Spark does with the writer of a batch: one process plans, others write, a third commits."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from eos_sink.driver.planner import Planner
from eos_sink.errors import ConfigurationError, EosSinkError, SupersededError
from eos_sink.protocol.model import BatchId, Numbering
from eos_sink.protocol.values import MemberRefused, MemberState
from eos_sink.spark.writers import BatchWriter, Report
from tests.fakes.kafka import FakeMember
from tests.protocol.world import TOPIC, World, open_ids
from tests.spark.fake_source import FakeDataSource, Task

SCHEMA = StructType([StructField("value", StringType())])
OPTIONS = {"kafka.bootstrap.servers": "nowhere:1", "topic": TOPIC}
QUERY, RUN = "5e4e4a6e-0000-4000-8000-000000000001", "5e4e4a6e-0000-4000-8000-000000000002"
FOREACH = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": "3", "spark.jobGroup.id": RUN}
OPENS = {"eos.inline.bytes": "0"}


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Report]:
    """One task of a new write of one row; the process of tasks gets the writer pickled."""

    def written(writer: BatchWriter, **properties: str) -> Report:
        context = Task({name.replace("__", "."): value for name, value in properties.items()})
        monkeypatch.setattr(TaskContext, "get", lambda: context)
        shipped: Any = pickle.loads(pickle.dumps(writer))
        report: Report = shipped.write(iter([pa.RecordBatch.from_pydict({"value": [b"row"]})]))
        return report

    return written


def writer(**options: str) -> BatchWriter:
    return FakeDataSource({**OPTIONS, **options}).writer(SCHEMA, overwrite=False)


def numbered(report: Report) -> tuple[BatchId, str]:
    return report.report.batch, report.report.spark_run


def test_a_write_is_a_batch_of_its_own_and_visible_when_it_is_committed(
    world: World, write: Callable[..., Report]
) -> None:
    one = writer()
    batch = write(one).report.batch
    assert batch.numbering is Numbering.ONCE
    assert write(one).report.batch == batch, "another task of the same write"
    assert write(writer()).report.batch != batch


def test_a_write_with_an_id_has_that_number_and_is_written_once(
    world: World, write: Callable[..., Report]
) -> None:
    for _ in range(2):
        one = writer(**{"eos.write.id": "7"})
        report = write(one)
        one.commit([report])
        assert report.report.batch == BatchId.numbered_by(Numbering.ONCE, "", 7)
    assert world.visible() == [b"row"]


def test_an_error_of_a_write_names_its_number(world: World, write: Callable[..., Report]) -> None:
    older = writer()
    report = write(older)
    writer()
    with pytest.raises(SupersededError) as error:
        older.commit([report])
    number = error.value.data["write_id"]
    assert f'.option("eos.write.id", "{number}")' in error.value.remedy
    again = writer(**{"eos.write.id": str(number)})
    again.commit([write(again)])
    assert world.visible() == [b"row"]


def test_a_write_whose_job_has_failed_is_named_in_the_log(
    world: World, write: Callable[..., Report], caplog: pytest.LogCaptureFixture
) -> None:
    """The process of its commit may have died without an error of the sink's."""
    one = writer()
    report = write(one)
    one.abort([report])
    assert f'.option("eos.write.id", "{report.report.batch.batch}")' in caplog.text


def test_an_id_inside_foreach_batch_is_refused(world: World, write: Callable[..., Report]) -> None:
    with pytest.raises(ConfigurationError, match=r"eos\.write\.id"):
        write(writer(**{"eos.write.id": "7"}), **FOREACH)


def test_a_write_inside_foreach_batch_is_numbered_by_its_query(
    world: World, write: Callable[..., Report]
) -> None:
    report = write(writer(**{"eos.id": "mine"}), **FOREACH)
    assert numbered(report) == (BatchId.numbered_by(Numbering.FOREACH, QUERY, 3), RUN)


def test_a_version_goes_before_the_query_s_batch(
    world: World, write: Callable[..., Report]
) -> None:
    report = write(writer(txnAppId="app", txnVersion="9"), **FOREACH)
    assert numbered(report) == (BatchId.numbered_by(Numbering.VERSION, "app", 9), "")


@pytest.mark.parametrize("group", [None, "mine"])
def test_a_job_group_that_is_not_the_query_s_run_is_refused(
    world: World, write: Callable[..., Report], group: str | None
) -> None:
    given = {k: v for k, v in FOREACH.items() if k != "spark.jobGroup.id"}
    given |= {"spark.jobGroup.id": group} if group else {}
    with pytest.raises(ConfigurationError, match="setJobGroup"):
        write(writer(**{"eos.id": "mine"}), **given)


def test_a_write_inside_foreach_batch_is_asked_for_an_identity(
    world: World, write: Callable[..., Report]
) -> None:
    with pytest.raises(ConfigurationError, match=r"Option eos\.id is missing"):
        write(writer(), **FOREACH)
    assert world.visible() == []


@pytest.mark.parametrize("on", ["true", "True", " TRUE "])
def test_speculation_is_refused(world: World, write: Callable[..., Report], on: str) -> None:
    with pytest.raises(ConfigurationError, match="speculation"):
        write(writer(), **{"spark.speculation": on})


def test_without_pinned_threads_a_write_needs_a_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    with pytest.raises(ConfigurationError, match="PYSPARK_PIN_THREAD"):
        writer()
    assert world.cluster.topics.keys() == {TOPIC}, "it was planned"
    writer(txnAppId="app", txnVersion="9")


def test_overwrite_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=re.escape("mode('append')")):
        FakeDataSource(OPTIONS).writer(SCHEMA, overwrite=True)


def test_columns_are_checked_before_anything_is_written() -> None:
    with pytest.raises(ConfigurationError, match="'value'"):
        FakeDataSource(OPTIONS).writer(StructType(), overwrite=False)


def test_a_write_with_a_task_that_has_not_reported_is_not_decided_and_leaves_nothing_open(
    world: World, write: Callable[..., Report]
) -> None:
    one = writer()
    report = write(one)
    with pytest.raises(EosSinkError, match="unreported"):
        one.commit([report, None])
    one.abort([None, None])
    assert world.visible() == []
    world.options = one._options
    assert open_ids(world) == []


def test_a_task_that_begins_after_its_job_has_failed_is_refused(
    world: World, write: Callable[..., Report]
) -> None:
    one = writer(**OPENS)
    pickle.loads(pickle.dumps(one)).abort([None, None])
    with pytest.raises(SupersededError):
        write(one)
    world.options = one._options
    assert open_ids(world) == []


def test_a_failed_write_leaves_a_newer_one_of_its_session_alone(
    world: World, write: Callable[..., Report]
) -> None:
    """The newer one's plan has made Kafka refuse the tasks of the older one."""
    older, newer = writer(**OPENS), writer(**OPENS)
    report = write(newer)
    older.abort([None, None])
    newer.commit([report])
    assert world.visible() == [b"row"]


def test_a_write_right_after_a_failed_one_is_not_refused(
    world: World, write: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its planner has not yet heard of the member that has replaced its own: heartbeats are
    seconds apart."""
    monkeypatch.setattr(FakeMember, "state", lambda _: MemberState.CURRENT)
    writer(**OPENS).abort([None, None])
    again = writer(**OPENS)
    again.commit([write(again)])
    assert world.visible() == [b"row"]


@pytest.mark.parametrize("streams", [False, True])
def test_an_abort_that_fails_does_not_hide_why_spark_aborts(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    streams: bool,
) -> None:
    """If `abort` raises, Spark says "Writing job failed." instead of the error before it."""
    source = FakeDataSource({**OPTIONS, "eos.id": "mine"})
    stream = source.streamWriter(SCHEMA, overwrite=False)
    one = source.writer(SCHEMA, overwrite=False)
    monkeypatch.setattr(world.cluster, "answers", lambda *_: False)
    if streams:
        stream.abort([None, None], 7)
    else:
        one.abort([None, None])
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_abort_that_a_newer_write_overtakes_fails_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It joins the group, or waits for it, while the newer one joins."""

    def refused(*_: object) -> None:
        raise MemberRefused("a newer member has joined", replaced=True)

    one = writer()
    monkeypatch.setattr(Planner, "refuse_tasks", refused)
    one.abort([None, None])
    assert "a newer member" in caplog.text


def test_a_process_serves_many_versions_with_the_clients_that_it_has(world: World) -> None:
    planned = [writer(txnAppId="app", txnVersion=str(number))._plan for number in range(3)]
    runs = {plan.token.run for plan in planned if plan is not None}
    assert len(runs) == 1, "more than one planner"


def test_a_stream_without_micro_batches_is_refused_by_its_tasks_and_by_its_commit(
    world: World, write: Callable[..., Report]
) -> None:
    """Continuous and real-time mode have no batch that could be decided."""
    options = {**OPTIONS, "eos.id": "stream"}
    stream = FakeDataSource(options).streamWriter(SCHEMA, overwrite=False)
    one_of_two = {"sql__streaming__queryId": QUERY}
    for properties in ({}, one_of_two):
        with pytest.raises(ConfigurationError, match="micro-batch"):
            write(stream, **properties)
    with pytest.raises(ConfigurationError, match="continuous"):
        stream.commit([None, None], 7)
    assert world.visible() == []
