"""Incidents as an operator meets them: what is said is done as it is written, and rows are counted.

Those that docs/runbook.md describes are in test_runbook.py; docs/internals/proof.md lists all.
"""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_sink.errors import (
    BatchFailedError,
    ClusterError,
    OutcomeUnknownError,
    UnfinishedError,
)
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.checker import assert_each_once, read_topic
from integration.conftest import MakeQuery
from integration.kafka_tools import carry_out
from integration.operator_commands import RAN, REFUSED, WAITING, run_command
from integration.query import PARTITIONS, Query
from integration.secured_query import command_config, commands, documented
from integration.topics import delete_topic, unique

SOON_S = 30
LONG_AGO = datetime(2001, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def query(query: Query) -> Query:
    query.stand_apart()
    return query


@pytest.mark.long
def test_a_topic_that_was_deleted_is_created_as_the_doctor_says(query: Query) -> None:
    query.run_killed_at(FaultPoint.COMMITTER_SETTLE_AFTER)
    delete_topic(query.options.cluster.servers, query.topic)
    said = run_command("status", *query.reach, expect=WAITING).said
    assert "there is no such topic" in said
    assert "does not exist" in query.run().stopped(ClusterError)["text"]
    words = ["doctor", "--topic", query.topic, *query.reach, "--json"]
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
    seen = run_command("status", *query.reach, "--transactions", expect=RAN).said
    assert re.search(r"\b0 open transactions", seen)
    words = ["doctor", "--topic", query.topic, *query.reach, "--json"]
    findings = run_command(*words, expect=None).document["findings"]
    (held,) = (each["what"] for each in findings if each["check"] == "readers")
    assert f"{query.topic}[0]" in held
    foreign.abort_transaction(SOON_S)
    query.check()
    assert "No action needed" in run_command("status", *query.reach, expect=RAN).said


SHOWN = "/etc/kafka/readings.pem", "localhost:9092"
"""The certificate and the broker in the commands of docs/connect.md."""


def read_expired(certificate: str, servers: str) -> list[str]:
    """Whose certificates have expired, as the page's commands show it."""
    expired = []
    for whose, command in zip(("client", "broker"), commands("openssl"), strict=True):
        typed = command.replace(SHOWN[0], certificate).replace(SHOWN[1], servers)
        done = subprocess.run(typed, shell=True, capture_output=True, text=True, check=True)
        if f" {LONG_AGO.year} " in done.stdout:
            expired.append(whose)
    return expired


@pytest.mark.long
@pytest.mark.parametrize("whose", ["client", "broker"])
@pytest.mark.parametrize(
    "point", [FaultPoint.TASK_PREPARED_AFTER, FaultPoint.COMMITTER_WRITE_AFTER], ids=str
)
def test_a_certificate_that_has_expired_is_renewed_and_the_query_goes_on(
    secured: KafkaCluster, query_on: MakeQuery, tmp_path: Path, whose: str, point: FaultPoint
) -> None:
    """Who is connected is not cut off: what connects next is refused."""
    access, user = secured.access, unique("user")
    login = access.options(user, "TLS")

    def renew(not_after: datetime | None = None) -> None:
        access.authority.renew(user if whose == "client" else "broker", not_after)
        if whose == "broker":
            secured.nodes[0].restart()

    query = query_on(secured, eos_step_timeout_ms="20000")
    query.change({"eos.log.topic": unique("log"), **login})
    access.allow(user, *documented(query.topic, query.options.log_topic))
    process = query.run_paused_at(point, partition=0)
    renew(LONG_AGO)
    process.wake()
    kinds = BatchFailedError, ClusterError, OutcomeUnknownError, UnfinishedError
    assert re.search(r"start (the query )?again", process.stopped(*kinds)["text"])
    text = query.run().stopped(ClusterError)["text"]
    assert "docs/connect.md#expired-certificates" in text
    words = [*query.reach, *command_config(tmp_path, login)]
    for command in (["status"], ["doctor", "--topic", query.topic]):
        said = run_command(*command, *words, expect=REFUSED).said
        assert "docs/connect.md#expired-certificates" in said
    place = login["kafka.ssl.keystore.location"], query.options.cluster.servers
    assert read_expired(*place) == [whose]
    renew()
    assert read_expired(*place) == []
    query.finish()
    query.check()
    assert "No action needed" in run_command("status", *words, expect=RAN).said


@pytest.mark.long
def test_what_a_dead_driver_left_ends_by_the_command_of_its_alert(
    kafka: KafkaCluster, query: Query
) -> None:
    for point in (FaultPoint.TASK_PREPARED_AFTER, FaultPoint.COMMITTER_WRITE_AFTER):
        query.run_killed_at(point)
        names = query.options.names
        kafka.end_session(names.group, names.driver)
        said = run_command("status", *query.reach, expect=WAITING).said
        (command,) = re.findall(r"eos-sink (resolve \S+ --end .*)", said)
        run_command(*command.split(), "--yes", expect=RAN)
        run_command("status", *query.reach, expect=RAN)
    decided = [row for batch in query.batches[:2] for part in batch for row in part]
    assert_each_once(read_topic(query.options.cluster.servers, query.topic), decided)
    assert query.finish().written(1) == []
    query.check()
    assert len(query.batches[0]) == PARTITIONS
