"""Which questions are asked, each once; a question with a side effect is left out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from eos_sink.decision_log.codec import encode
from eos_sink.errors import OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.admin_interface import LogLine, LogPage
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.acls import Resource
from eos_sink.kafka_config.source_topics import SourceTopics
from eos_sink.ops.doctor.checks import CHECKS
from eos_sink.ops.doctor.facts import Facts, LogFacts, SourceFacts, Subject, read_log
from eos_sink.ops.doctor.findings import Finding, Level, run_checks
from eos_sink.protocol.values import Position
from eos_sink.sink_options import SourceOptions
from tests.fakes.admin import FakeAdmin
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import LOG_TOPIC
from tests.fakes.process import Moment
from tests.ops.doctor.cases import CLUSTER, COMMANDS, facts, findings, of, written
from tests.protocol.checkpoint import INPUT, Checkpoint
from tests.protocol.source import GROUP, Reader, reading_world

SUBJECT = Subject(replace(CLUSTER, log_topic=LOG_TOPIC), topics=("out",))
NO_BROKER = OutcomeUnknownError("No broker answers.", remedy="Wait.")
NO_ANSWER = Unseen("No broker answers")


def cluster(*topics: str) -> FakeCluster:
    made = FakeCluster()
    for name in topics:
        made.create_topic(name)
    return made


def fail(*_: object) -> None:
    raise NO_BROKER


def fail_in_describe_topics(name: str, _: Moment) -> None:
    if name == "kafka.describe_topics":
        fail()


def silent_about(question: str, brokers: FakeCluster) -> FakeAdmin:
    admin = FakeAdmin(brokers)
    admin.silent = {question}
    return admin


def look(admin: FakeAdmin, subject: Subject = SUBJECT) -> Facts:
    deadline = Deadline(30)
    return Facts(admin, subject, deadline, admin.describe_brokers(deadline))


def check(admin: FakeAdmin, subject: Subject = SUBJECT) -> dict[str, list[Finding]]:
    return run_checks(CHECKS, look(admin, subject), COMMANDS.grant)


def test_the_source_is_that_of_the_options_else_that_of_the_latest_record() -> None:
    world = reading_world()
    reader = Reader(world, Checkpoint(began={0: 0, 1: 0}))
    reader.run()
    admin, names = FakeAdmin(world.cluster), world.options.names
    world.cluster.create_topic("__consumer_offsets")
    subject = replace(SUBJECT, names=names)
    assert look(admin, subject).source == SourceFacts(GROUP, (INPUT,))
    assert look(admin).source is None  # No query is named.
    given = SourceOptions("others", "/checkpoint", SourceTopics(None, re.compile("^i")))
    found = look(admin, replace(subject, source=given))
    assert found.source == SourceFacts("others", (INPUT,))
    assert found.topics[INPUT] is not None


def test_an_empty_cluster_is_not_asked_what_would_create_a_topic() -> None:
    admin = FakeAdmin(cluster())
    found = look(admin, replace(SUBJECT, names=QueryNames("eos-sink-", "rows-0123456789")))
    run_checks(CHECKS, found, COMMANDS.grant)
    asked = [question for question, _ in admin.asked]
    assert "describe_groups" not in asked
    assert "refusal_to_create_log" in asked
    assert len(asked) == len(set(admin.asked))  # Each once.
    assert found.transactions == ()
    assert found.log is None
    assert found.topics == dict.fromkeys(
        ["out", "__transaction_state", "__consumer_offsets", LOG_TOPIC]
    )


def test_this_clock_is_read_after_the_transactions_were_listed() -> None:
    found = look(FakeAdmin(cluster()))
    assert found.now_ms > 0
    assert "transactions" in vars(found)


def test_permissions_are_tried_on_unused_names() -> None:
    admin = FakeAdmin(cluster())
    check(admin)
    assert ("may_write", "eos-sink-permission") in admin.asked
    assert ("may_join", "eos-sink-permission") in admin.asked


@pytest.mark.parametrize("error", [NO_BROKER, ValueError("not an answer")])
@pytest.mark.parametrize(
    ("question", "checks"),
    [
        ("describe_quorum", {"controller", "clock"}),
        ("may_write", {"permissions"}),
        ("may_join", {"permissions"}),
        ("list_groups", {"names"}),
        ("control", {"names"}),
        ("describe_groups", {"names"}),
        ("list_offsets", {"readers"}),
        ("read_log", {"log records", "names"}),
        ("refusal_to_create_log", {"decision log"}),
    ],
)
def test_a_question_without_an_answer_hides_no_other_finding(
    question: str, checks: set[str], error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    names = ["out", "__transaction_state", "__consumer_offsets"]
    if question == "read_log":
        names.append(LOG_TOPIC)
    subject = replace(SUBJECT, names=QueryNames("eos-sink-", "rows-0123456789"))
    admin = FakeAdmin(cluster(*names))
    well = told(check(admin, subject))
    setattr(admin, question, fail)
    found = told(check(admin, subject))
    assert {name for name in well if found[name] != well[name]} == checks
    assert all(Level.UNSEEN in {level for level, _ in found[name]} for name in checks)


def test_readers_of_a_topic_that_cannot_be_seen_are_not_said_to_be_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = FakeAdmin(cluster("out", "other"))
    seen = admin.list_offsets([("other", 0)], Deadline(30))
    hidden = Unseen("this principal lacks Describe on topic out")
    monkeypatch.setattr(admin, "list_offsets", lambda *_: {("out", 0): hidden, **seen})
    subject = replace(SUBJECT, topics=("out", "other"))
    assert told(check(admin, subject))["readers"] == [
        (Level.UNSEEN, f"what holds readers of out up: {hidden.why}")
    ]


def test_topics_of_a_source_that_cannot_be_listed_are_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = FakeAdmin(cluster("out"))
    monkeypatch.setattr(admin, "topic_ids", fail)
    given = SourceOptions("others", "/checkpoint", SourceTopics(None, re.compile("^i")))
    found = told(check(admin, replace(SUBJECT, source=given)))
    hidden = (Level.UNSEEN, "the topics of the source: No broker answers")
    assert hidden in found["source"]
    assert hidden in found["permissions"]


def told(found: dict[str, list[Finding]]) -> dict[str, list[tuple[Level, str]]]:
    return {name: [(each.level, each.what) for each in some] for name, some in found.items()}


def test_an_unread_partition_of_the_log_is_not_seen_and_blames_no_query() -> None:
    log = read_log(LogPage(unread={3: "it has no leader"}))
    found = findings(facts(log=log, members={}), replace(SUBJECT, names=None))
    assert [each.what for each in found["log records"]] == [
        "the records of partition 3: it has no leader"
    ]
    assert [each.what for each in found["names"]] == [
        "the names of queries: partition 3 of the decision log cannot be read: it has no leader"
    ]
    assert found["log records"][0].level is found["names"][0].level is Level.UNSEEN


def test_topics_that_cannot_be_seen_are_each_unseen() -> None:
    admin = FakeAdmin(cluster("out"))
    admin.process.hook = fail_in_describe_topics
    found = look(admin)
    assert set(found.topics.values()) == {NO_ANSWER}


def test_without_any_broker_there_are_no_facts() -> None:
    with pytest.raises(OutcomeUnknownError):
        look(silent_about("describe_brokers", cluster()))


def test_a_denied_question_names_the_permission() -> None:
    admin = FakeAdmin(cluster("out", LOG_TOPIC, "__transaction_state"))
    admin.denied = {Resource.TOPIC, Resource.TRANSACTIONAL_ID}
    found = look(admin)
    assert isinstance(found.log, Unseen)
    assert [str(acl) for acl in found.log.missing] == [f"Read on topic {LOG_TOPIC}"]
    assert isinstance(found.transactions, Unseen)
    assert "Describe on every transactional id" in str(found.transactions.missing[0])


def test_an_unreadable_record_is_a_query_s_only_under_the_key_that_its_driver_reads() -> None:
    shown, key = "readings-0123456789", "eos-sink-readings-0123456789"
    fine = encode(written().record)
    log = read_log(
        LogPage((line(key, 0, fine), line(shown, 1, b"?"), line("eos-sink-b-0123456789", 2, b"?")))
    )
    assert isinstance(log, LogFacts)
    assert set(log.records) == {shown}
    assert set(log.hidden) == {"b-0123456789"}
    assert set(log.foreign) == {shown}
    found = of("log records", findings(facts(log=log)))
    assert [each.what for each in found[Level.FAILURE]] == [
        "the record of b-0123456789 (partition 0, offset 2) is none of the sink's"
    ]
    assert found[Level.WARNING][0].what == (
        f"the record under key {shown!r} (partition 0, offset 1) is none of the sink's"
    )


def line(key: str, offset: int, value: bytes) -> LogLine:
    return LogLine(key, Position(LOG_TOPIC, 0, offset), 0, value)


def test_only_the_latest_record_of_a_key_counts() -> None:
    fine = encode(written().record)
    page = LogPage(
        (
            line("eos-sink-repaired-0123456789", 0, b"?"),
            line("eos-sink-repaired-0123456789", 1, fine),
            line("eos-sink-broken-0123456789", 2, fine),
            line("eos-sink-broken-0123456789", 3, b"?"),
            line("eos-sink-newer-0123456789", 4, b'{"format": 7}'),
            line("odd", 5, b'{"format": "x"}'),
            line("odd", 6, b""),
        )
    )
    log = read_log(page)
    assert isinstance(log, LogFacts)
    assert log.count == 7
    assert {query: each.newer for query, each in log.hidden.items()} == {
        "broken-0123456789": None,
        "newer-0123456789": 7,
    }
    assert {key: each.position.offset for key, each in log.foreign.items()} == {"odd": 6}
    assert log.records["repaired-0123456789"].position.offset == 1
    assert read_log(None) is None
