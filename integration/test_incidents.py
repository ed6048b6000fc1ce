"""Incidents as an operator meets them: what is said is done as it is written, and rows are counted.

Those that docs/runbook.md describes are in test_runbook.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_sink.errors import ClusterError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once, read_topic
from integration.kafka_tools import carry_out
from integration.operator_commands import RAN, WAITING, run_command
from integration.query import PARTITIONS, Query
from integration.topics import delete_topic, unique

SOON_S = 30


@pytest.fixture
def query(kafka: KafkaCluster, tmp_path: Path) -> Iterator[Query]:
    with closing(Query(kafka, tmp_path, eos_log_topic=unique("log"))) as query:
        yield query


def reach(query: Query) -> list[str]:
    servers, log = query.options.cluster.servers, query.options.log_topic
    return ["--bootstrap-server", servers, "--log-topic", log]


@pytest.mark.long
def test_a_topic_that_was_deleted_is_created_as_the_doctor_says(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    delete_topic(query.options.cluster.servers, query.topic)
    said = run_command("status", *reach(query), expect=WAITING).said
    assert "there is no such topic" in said
    assert "does not exist" in query.run().stopped(ClusterError)["text"]
    words = ["doctor", "--topic", query.topic, *reach(query), "--json"]
    findings = run_command(*words, expect=WAITING).document["findings"]
    (command,) = (r for f in findings if f["check"] == "topic" for r in f["remedy"])
    carry_out(command)
    query.finish()
    # What was there before is gone with the topic; nothing of it is written again.
    left = [row for part in query.batches[2] for row in part]
    assert_each_once(query.visible(), left)


@pytest.mark.long
def test_wrong_servers_are_corrected_and_the_query_goes_on(query: Query) -> None:
    query.run_killed_at(FaultPoint.TASK_PREPARED_AFTER)
    right = query.options.cluster.servers
    query.change({"kafka.bootstrap.servers": "127.0.0.1:1"})
    text = query.run().stopped(ClusterError)["text"]
    assert "127.0.0.1:1" in text
    assert "kafka.bootstrap.servers" in text
    query.change({"kafka.bootstrap.servers": right})
    query.finish()
    query.check()


def test_readers_behind_another_program_are_told_where_and_go_on_when_it_ends(
    query: Query,
) -> None:
    servers, name = query.options.cluster.servers, unique("app")
    foreign = Producer({"bootstrap.servers": servers, "transactional.id": name})
    foreign.init_transactions(SOON_S)
    foreign.begin_transaction()
    foreign.produce(query.topic, b"foreign", partition=0)
    foreign.flush(SOON_S)
    query.finish()
    seen = run_command("status", *reach(query), "--transactions", expect=RAN).said
    assert "0 open transactions" in seen
    words = ["doctor", "--topic", query.topic, *reach(query), "--json"]
    findings = run_command(*words, expect=None).document["findings"]
    (held,) = (each["what"] for each in findings if each["check"] == "readers")
    assert f"{query.topic}[0]" in held
    foreign.abort_transaction(SOON_S)
    query.check()
    assert "No action needed" in run_command("status", *reach(query), expect=RAN).said


@pytest.mark.long
def test_what_a_dead_driver_left_ends_by_the_command_of_its_alert(
    kafka: KafkaCluster, query: Query
) -> None:
    for point in (FaultPoint.TASK_PREPARED_AFTER, FaultPoint.COMMITTER_WRITE_AFTER):
        query.run_killed_at(point)
        names = query.options.names
        kafka.end_session(names.group, names.driver)
        said = run_command("status", *reach(query), expect=WAITING).said
        (command,) = re.findall(r"eos-sink (resolve \S+ --end .*)", said)
        run_command(*command.split(), "--yes", expect=RAN)
        run_command("status", *reach(query), expect=RAN)
    decided = [row for batch in query.batches[:2] for part in batch for row in part]
    assert_each_once(read_topic(query.options.cluster.servers, query.topic), decided)
    assert query.finish().written(1) == []
    query.check()
    assert len(query.batches[0]) == PARTITIONS
