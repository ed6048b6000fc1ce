"""The permissions of docs/connect.md are enough, and each of them is missed by name."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eos_sink
from eos_sink.errors import ClusterError, OperatorNeededError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.hanging import find_open
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.properties_file import read_properties
from eos_sink.options import parse_options
from eos_sink.protocol.values import Hanging, TransactionStatus
from eos_sink_lab.testing import KafkaCluster, Security
from eos_sink_lab.testing.faults import FaultPoint
from integration.in_process import Run
from integration.minispark import TaskBrokeOffError
from integration.operator_commands import Operator, run_command
from integration.own_kafka import start_own_kafka
from integration.query import Query
from integration.query_state import open_transaction
from integration.secured_query import ANNS_WORD, SecuredQuery, command_config, commands, documented
from integration.topics import unique
from tests.snippets import ROOT, snippets_of

pytestmark = pytest.mark.sampled(6, of="permissions")

SOON_S = 20
# Kafka's default of group.max.session.timeout.ms.
KAFKAS_SESSION_MS = 1_800_000
# The order of docs/connect.md; a test says so if it changes.
WRITE, READ, TRANSACTIONS, GROUP, LOG_READ, LOG_WRITE, LOG_CREATE = range(7)
EACH = ["Write", "Read", "ids", "group", "log-Read", "log-Write", "log-Create"]

Start = Callable[..., SecuredQuery]


@pytest.fixture
def start(secured: KafkaCluster, tmp_path: Path) -> Iterator[Start]:
    """Makes queries on the secured cluster."""
    made: list[SecuredQuery] = []

    def one(cluster: KafkaCluster = secured, **options: str) -> SecuredQuery:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(SecuredQuery(cluster, directory, **options))
        return made[-1]

    yield one
    for query in made:
        query.close()


def whole_cycle(query: Query) -> None:
    """Every step of a query: a batch that is aborted, one that is left open and aborted later, one
    that is decided and recovered, a part of it by its witness, and a batch without trouble."""
    query.run(fail=(0, 2)).stopped(TaskBrokeOffError)
    query.run_killed_at(FaultPoint.COMMITTER_VOTE_BEFORE, batch=0)
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER, batch=1)
    query.take_id(query.slot(), 1)
    query.finish()
    query.check()


def test_the_permissions_of_the_page_are_enough_for_every_step(start: Start) -> None:
    whole_cycle(start())


@pytest.mark.long
def test_they_are_enough_on_the_older_kafka(start: Start) -> None:
    with start_own_kafka(version="3.9.1", security=Security()) as cluster:
        whole_cycle(start(cluster))


def test_without_create_where_the_log_was_made_as_the_page_says(
    secured: KafkaCluster, start: Start
) -> None:
    query = start(eos_log_topic=unique("log"))
    (command,) = commands("kafka-topics")
    words = command.split()
    config = dict(
        w.split("=", 1) for w, b in zip(words[1:], words, strict=False) if b == "--config"
    )
    partitions = int(words[words.index("--partitions") + 1])
    log = query.options.log_topic
    secured.create_topic(log, partitions=partitions, config=config, timeout_s=SOON_S)
    query.revoke(query.need(LOG_CREATE))
    query.run().finished()
    query.check()


@pytest.mark.parametrize("number", range(7), ids=EACH)
def test_a_start_names_the_permission_that_is_missing(start: Start, number: int) -> None:
    query = start(eos_log_topic=unique("log"))
    if number != LOG_CREATE:
        query.plan()  # The log is there.
    missing = query.need(number)
    query.revoke(missing)
    began = time.monotonic()
    error = query.refused()
    assert time.monotonic() - began < SOON_S
    assert error.data["missing"] == [str(missing)]
    query.grant_as_told(str(error))
    assert missing in query.access.permissions(query.user)
    query.plan()


class WithSource:
    """A query with a source, permitted exactly what the page lists, up to its first batch."""

    def __init__(self, query: SecuredQuery, home: Path) -> None:
        self.query, name = query, uuid.uuid4().hex[:8]
        self.source, self.group = f"in-{name}", f"readers-{name}"
        self.stream = f"stream-{name}"
        query._cluster.create_topic(self.source, partitions=2)
        self.offsets = {(self.source, 0): 0, (self.source, 1): 0}
        given = {"eos.source.group.id": self.group, "checkpointLocation": str(home)}
        self.given = {**query._given, **given, "subscribe": self.source}
        needs = documented(query.topic, query.options.log_topic, source=(self.source, self.group))
        self.needs = [acl for acl in needs if acl not in query.needs]
        query.access.allow(query.user, *self.needs)
        eos_sink.starting_offsets(self.given)
        now = f'{{"batchWatermarkMs":0,"batchTimestampMs":{int(time.time() * 1000)},"conf":{{}}}}'
        offsets = json.dumps({self.source: {"0": 0, "1": 0}})
        for path, text in {
            "metadata": json.dumps({"id": self.stream}),
            "offsets/0": f"v1\n{now}\n{offsets}",
            "sources/0/0": f"\0v1\n{offsets}",
        }.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)

    def run(self) -> None:
        """One batch, by new clients."""
        with closing(Run(self.query._cluster, self.given)) as run:
            run.stream = self.stream
            run.write(value=["a"])
            assert run.kafka.group_offsets(self.group, Deadline(SOON_S)) == self.offsets


@pytest.mark.parametrize("leaves", [False, True], ids=["nothing", "Describe"])
@pytest.mark.parametrize("number", range(2), ids=["group", "topic"])
def test_the_page_lists_what_a_source_needs_and_the_error_what_is_missing(
    start: Start, tmp_path: Path, number: int, leaves: bool
) -> None:
    query = start()
    it = WithSource(query, tmp_path / "checkpoint")
    missing = it.needs[number]
    assert {str(acl) for acl in it.needs} == {
        f"Read on group {it.group}",
        f"Read on topic {it.source}",
    }
    query.revoke(missing)
    if leaves:
        query.access.allow(query.user, replace(missing, operation="Describe"))
    with pytest.raises(ClusterError) as refused:
        it.run()
    assert refused.value.data["missing"] == [str(missing)]
    assert query.log().decision is None
    query.grant_as_told(str(refused.value))
    it.run()


def test_starting_offsets_names_a_topic_that_may_not_be_read(start: Start, tmp_path: Path) -> None:
    """Left out, Spark would begin to read it somewhere else."""
    query = start()
    it, hidden = WithSource(query, tmp_path / "checkpoint"), unique("hidden")
    query._cluster.create_topic(hidden)
    empty = str(tmp_path / "empty")
    given = {**it.given, "subscribe": f"{it.source},{hidden}", "checkpointLocation": empty}
    with pytest.raises(ClusterError) as refused:
        eos_sink.starting_offsets(given)
    assert refused.value.data["missing"] == [f"Read on topic {hidden}"]
    query.grant_as_told(str(refused.value))
    assert json.loads(eos_sink.starting_offsets(given)).keys() == {it.source, hidden}
    # A pattern finds what may be described.
    query.revoke(Acl("Read", Resource.TOPIC, hidden))
    del given["subscribe"]
    matched = {**given, "subscribePattern": f"{it.source}|{hidden}"}
    assert json.loads(eos_sink.starting_offsets(matched)).keys() == {it.source}


@pytest.mark.parametrize(
    ("number", "point"),
    [
        (WRITE, FaultPoint.TASK_OFFSET_BEFORE),
        (TRANSACTIONS, FaultPoint.COMMITTER_SETTLE_BEFORE),
        # The driver writes the rows.
        (WRITE, FaultPoint.COMMITTER_PRODUCE_AMID),
        (LOG_WRITE, FaultPoint.COMMITTER_WRITE_BEFORE),
        *(
            (number, point)
            for number in (WRITE, TRANSACTIONS, GROUP, LOG_READ, LOG_WRITE)
            for point in (
                FaultPoint.PLANNER_READ_BEFORE,
                FaultPoint.TASK_INIT_BEFORE,
                FaultPoint.TASK_PRODUCE_AMID,
                FaultPoint.TASK_FLUSH_BEFORE,
                FaultPoint.COMMITTER_VOTE_BEFORE,
            )
        ),
    ],
)
def test_a_permission_lost_during_a_batch_is_named_and_no_row_is_lost(
    start: Start, number: int, point: FaultPoint
) -> None:
    query = start()
    if point is FaultPoint.COMMITTER_PRODUCE_AMID:
        query.inline()
    partition = {"planner": -1, "task": 1}.get(point.value.split(".", maxsplit=1)[0], 2)
    process = query.run_paused_at(point, partition=partition)
    query.revoke(query.need(number))
    process.wake()
    error = process.stopped(ClusterError)
    assert error["data"]["missing"] == [str(query.need(number))]
    query.grant_as_told(error["text"])
    query.finish()
    query.check()


@pytest.mark.long
def test_a_witness_that_may_not_be_read_is_no_doubt(start: Start) -> None:
    """Without the permission, an operator could only guess."""
    query = start()
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    query.take_id(query.slot(), 1)
    point = FaultPoint.PLANNER_WITNESS_BEFORE
    process = query.run_paused_at(point, partition=-1)
    query.revoke(query.need(READ))
    process.wake()
    error = process.stopped(ClusterError, OperatorNeededError)
    assert error["data"].get("missing") == [str(query.need(READ))]
    query.grant_as_told(error["text"])
    query.finish()
    query.check()


def test_kafka_leaves_ids_out_in_silence_and_the_sink_does_not(start: Start) -> None:
    """ListTransactions answers with what may be described, without an error."""
    query = start()
    control = query.kafka.control()
    prefix = f"{query.options.names.group}-"
    assert control.list_transactions(prefix, Deadline(SOON_S), TransactionStatus.ONGOING) == []
    query.revoke(query.need(TRANSACTIONS))
    with pytest.raises(ClusterError) as caught:
        control.list_transactions(prefix, Deadline(SOON_S))
    assert caught.value.data["missing"] == [str(query.need(TRANSACTIONS))]


def test_an_open_transaction_of_another_program_that_may_not_be_described_holds_up_no_start(
    start: Start,
) -> None:
    query, other, name = start(), start(), unique("app")
    write = Acl("Write", Resource.TOPIC, query.topic)
    query.access.allow(other.user, write, Acl("Write", Resource.TRANSACTIONAL_ID, name))
    producer = open_transaction(other.kafka, name, query.topic)
    began = time.monotonic()
    query.plan()
    assert time.monotonic() - began < SOON_S
    producer.abort(Deadline(SOON_S))
    producer.close()


def test_what_kafka_forgot_to_end_is_ended_with_a_permission_that_the_error_names(
    start: Start,
) -> None:
    """Here the coordinator has not forgotten it: the broker only looks at the permission."""
    query = start()
    control, name = query.kafka.control(), query.options.names.task(0, 0)
    producer = open_transaction(query.kafka, name, query.topic)
    state = control.describe([name], Deadline(SOON_S))[name]
    hanging = Hanging(state.transaction, query.topic, 0, 0, -1, state)
    with pytest.raises(ClusterError) as raised:
        control.end_hanging(hanging, False, Deadline(SOON_S))
    missing = Acl("Alter", Resource.CLUSTER, "kafka-cluster")
    assert raised.value.data["missing"] == [str(missing)]
    assert query.topic in str(raised.value)
    assert name in str(raised.value)
    query.grant_as_told(str(raised.value))
    assert control.end_hanging(hanging, False, Deadline(SOON_S))
    assert find_open(control.wire, [query.topic], Deadline(SOON_S)) == (set(), frozenset())
    query.revoke(missing)
    producer.close()


def test_a_topic_of_the_column_that_cannot_be_read_back_is_not_decided(start: Start) -> None:
    query = start()
    given = {k: v for k, v in query._given.items() if k != "topic"}
    query.revoke(query.need(READ))
    with closing(Run(query._cluster, given)) as run, pytest.raises(ClusterError) as caught:
        run.write(value=["a"], topic=[query.topic])
    assert caught.value.data["missing"] == [str(query.need(READ))]
    assert query.log().decision is None


def test_resolve_needs_no_more_than_the_query(start: Start, tmp_path: Path) -> None:
    query = start()
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    login = query.access.options(query.user)
    config = command_config(tmp_path, login)
    operator = Operator(query)
    seen = operator.types("--json", *config)
    assert query.topic in seen
    operator.types("--forget", "--take-over", "--yes", *config)


@pytest.mark.long
def test_the_exporter_needs_no_more_than_its_page_lists(start: Start, tmp_path: Path) -> None:
    # A separate log: topics of other queries would be counted as unseen.
    query = start(eos_log_topic=unique("log"))
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    user = unique("exporter")
    query.access.add_user(user, "secret")
    needs = documented(query.topic, query.options.log_topic, ROOT / "docs" / "metrics.md")
    query.access.allow(user, *needs)
    login = query.access.options(user)
    words = ["exporter", "--once", "--json", *command_config(tmp_path, login)]
    words += ["--bootstrap-server", login["kafka.bootstrap.servers"]]
    words += ["--log-topic", query.options.log_topic]

    def told() -> dict[str, float]:
        found = run_command(*words).document
        # Of the topic and of the log.
        return {name: max(each["value"] for each in samples) for name, samples in found.items()}

    seen = told()
    assert seen["eos_sink_exporter_unseen"] == 0
    assert seen["eos_sink_unsettled"] == 1
    assert seen["eos_sink_reader_delay_offsets"] > 0
    for acl in needs:
        query.access.revoke(user, acl)
        without = told()
        assert without["eos_sink_exporter_unseen"] > 0 or without.keys() < seen.keys(), acl
        query.access.allow(user, acl)


def test_a_read_only_operator_needs_few_permissions_and_sees_what_is_missing(
    start: Start, tmp_path: Path
) -> None:
    """docs/metrics.md: the permissions that it names are enough; without one the rest is shown."""
    query = start(eos_log_topic=unique("log"))
    query.run_killed_at(FaultPoint.COMMITTER_WRITE_AFTER)
    prefix, log, user = query.options.names.prefix, query.options.log_topic, f"{query.user}-looks"
    query.access.add_user(user, "secret")
    ids = Acl("Describe", Resource.TRANSACTIONAL_ID, prefix, prefixed=True)
    groups = Acl("Describe", Resource.GROUP, prefix, prefixed=True)
    reads = Acl("Read", Resource.TOPIC, log)
    rows = Acl("Read", Resource.TOPIC, query.topic)
    query.access.allow(user, ids, groups, reads, rows)
    login = query.access.options(user)
    config = command_config(tmp_path, login)

    def status() -> tuple[dict[str, Any], list[str]]:
        words = ["status", "--json", *config, "--log-topic", log]
        words += ["--bootstrap-server", login["kafka.bootstrap.servers"]]
        document = run_command(*words, expect=None).document
        return document, [each for problem in document["not_seen"] for each in problem["missing"]]

    document, missing = status()
    (seen,) = document["queries"]
    assert (missing, seen["outcome"], len(seen["open"])) == ([], "open", 3)
    query.access.revoke(user, ids)
    document, missing = status()
    assert missing == [str(ids)]
    (seen,) = document["queries"]
    assert (seen["outcome"], seen["batch"]) == ("unknown", 1)
    query.access.allow(user, ids)
    query.access.revoke(user, groups)
    document, missing = status()
    assert missing == [f"Describe on group {query.options.names.group}"]
    assert document["queries"][0]["outcome"] == "open"
    query.access.allow(user, groups)
    query.access.revoke(user, rows)
    document, missing = status()
    assert missing == [f"Describe on topic {query.topic}"]
    query.access.revoke(user, reads)
    document, missing = status()
    assert missing == [str(reads)]
    shown = {each["transactional_id"] for each in document["open_of_no_query"]}
    assert shown >= set(query.task_ids(query.slot()))


_TEXTS = [snippet.text for snippet in snippets_of(ROOT / "docs" / "connect.md")]
_SCRAM = next(text for text in _TEXTS if "SCRAM" in text)
# "PLAIN and SCRAM-SHA-256 are written alike."
_PLAIN = _SCRAM.replace("SCRAM-SHA-512", "PLAIN").replace("scram.Scram", "plain.Plain")
_TLS = next(text for text in _TEXTS if "keystore.type=PEM" in text)


@pytest.mark.parametrize("text", [_SCRAM, _PLAIN, _TLS], ids=["SCRAM", "PLAIN", "TLS"])
def test_each_login_of_the_page_works(start: Start, text: str) -> None:
    query = start()
    name, word = query.user, "secret"
    mechanism = "TLS" if text == _TLS else "PLAIN"
    if "PlainLoginModule" in text:
        name, word = "ann", ANNS_WORD  # PLAIN knows those of the start only.
    query.access.add_user(name, word)
    mine = query.access.options(name, mechanism)
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    given = {entry.name: entry.value for entry in read_properties(text)}
    given["kafka.bootstrap.servers"] = mine["kafka.bootstrap.servers"]
    given.pop("kafka.ssl.key.password", None)  # The key of the test is not encrypted.
    for old, new in {
        'username="readings" password="..."': f'username="{name}" password="{escaped}"',
        "/etc/kafka/ca.pem": str(query.access.ca),
        "/etc/kafka/readings.pem": mine.get("kafka.ssl.keystore.location", ""),
    }.items():
        given = {option: value.replace(old, new) for option, value in given.items()}
    query.access.allow(name, *query.needs)
    own = {k: v for k, v in query._given.items() if k.startswith("eos.") or k == "topic"}
    query.options = parse_options({**own, **given})
    query.plan()


@pytest.mark.parametrize("wrong", ["password", "authority", "certificate"])
def test_a_refused_login_ends_the_start_within_seconds(
    start: Start, wrong: str, tmp_path: Path
) -> None:
    from eos_sink_lab.testing.security import Authority

    query = start()
    tls = query.access.options(query.user, "TLS")
    login = query.access.options(query.user)
    secret = "kafka.sasl.jaas.config"
    other = Authority(tmp_path / "other")
    given = {
        "password": {secret: login[secret].replace('password="', 'password="wrong')},
        "authority": {"kafka.ssl.truststore.location": str(other.ca)},
        "certificate": {**tls, "kafka.ssl.keystore.location": str(other.identity("x").both)},
    }[wrong]
    without = {secret, "kafka.sasl.mechanism"} if wrong == "certificate" else set()
    query.options = parse_options(
        {k: v for k, v in {**query._given, **given}.items() if k not in without}
    )
    began = time.monotonic()
    error = query.refused()
    assert time.monotonic() - began < SOON_S
    assert "kafka.sasl.*" in str(error)


def test_the_longest_session_is_seen_with_a_permission_that_a_query_does_not_need(
    start: Start,
) -> None:
    query, see = start(), Acl("DescribeConfigs", Resource.CLUSTER, "kafka-cluster")
    assert query.kafka.longest_session(Deadline(SOON_S)) is None
    assert query.plan().token.session_ms == KAFKAS_SESSION_MS
    query.access.allow(query.user, see)
    assert query.kafka.longest_session(Deadline(SOON_S)) == KAFKAS_SESSION_MS
