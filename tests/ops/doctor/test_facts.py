"""Which questions are asked; a question with a side effect is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.decision_log.codec import encode
from eos_sink.errors import OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.cluster_facts import Unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import LogPosition
from eos_sink.kafka.observing import LogLine, LogPage
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops.doctor.facts import Facts, LogFacts, Subject, gather, read_log
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import LOG_TOPIC
from tests.fakes.survey import FakeSurvey
from tests.ops.doctor.cases import OPTIONS, written

SUBJECT = Subject(replace(OPTIONS, log_topic=LOG_TOPIC), topics=("out",))
NO_ANSWER = Unseen("Nobody answers")


def cluster(*topics: str) -> FakeCluster:
    made = FakeCluster()
    for name in topics:
        made.create_topic(name)
    return made


def look(survey: FakeSurvey, subject: Subject = SUBJECT) -> Facts:
    return gather(survey, subject, Deadline(30))


def test_an_empty_cluster_is_not_asked_what_would_create_a_topic() -> None:
    survey = FakeSurvey(cluster()).prepare()
    found = look(survey, replace(SUBJECT, names=QueryNames("eos-sink-", "rows-0123456789")))
    asked = [question for question, _ in survey.asked]
    assert "group_members" not in asked
    assert found.transactions == ()
    assert ("refusal_to_make", LOG_TOPIC) in survey.asked
    assert found.log is None
    assert found.topics == dict.fromkeys(
        ["out", "__transaction_state", "__consumer_offsets", LOG_TOPIC]
    )


def test_permissions_are_tried_on_unused_names() -> None:
    survey = FakeSurvey(cluster()).prepare()
    look(survey)
    assert ("may_write", "eos-sink-permission") in survey.asked
    assert ("may_join", "eos-sink-permission") in survey.asked


@pytest.mark.parametrize(
    "question", ["features", "quorum", "may_write", "may_join", "groups", "refusal_to_make"]
)
def test_a_question_without_an_answer_hides_no_other_fact(question: str) -> None:
    everything = cluster("out", "__transaction_state", "__consumer_offsets")
    found = look(FakeSurvey(everything).prepare(question))
    answers = {
        "features": found.features,
        "quorum": found.quorum,
        "may_write": found.may_write,
        "may_join": found.may_join,
        "groups": found.groups,
        "refusal_to_make": found.refusal,
    }
    assert answers.pop(question) == NO_ANSWER
    assert NO_ANSWER not in answers.values()


def test_topics_that_cannot_be_seen_are_each_unseen() -> None:
    found = look(FakeSurvey(cluster("out")).prepare("topics"))
    assert set(found.topics.values()) == {NO_ANSWER}


def test_without_any_broker_there_are_no_facts() -> None:
    with pytest.raises(OutcomeUnknownError):
        look(FakeSurvey(cluster()).prepare("brokers"))


def test_a_denied_question_names_the_permission() -> None:
    survey = FakeSurvey(cluster("out", LOG_TOPIC, "__transaction_state")).prepare()
    survey.denied = {Resource.TOPIC, Resource.TRANSACTIONAL_ID}
    found = look(survey)
    assert isinstance(found.log, Unseen)
    assert [str(acl) for acl in found.log.missing] == [f"Read on topic {LOG_TOPIC}"]
    assert isinstance(found.transactions, Unseen)
    assert "Describe on every transactional id" in str(found.transactions.missing[0])


def line(key: str, offset: int, value: bytes) -> LogLine:
    return LogLine(key, LogPosition(LOG_TOPIC, 0, offset), 0, value)


def test_only_the_latest_record_of_a_key_counts() -> None:
    fine = encode(written().record)
    page = LogPage(
        (
            line("mended", 0, b"?"),
            line("mended", 1, fine),
            line("broken", 2, fine),
            line("broken", 3, b"?"),
            line("newer", 4, b'{"format": 7}'),
            line("odd", 5, b'{"format": "x"}'),
            line("gone", 6, b""),
        )
    )
    log = read_log(page)
    assert isinstance(log, LogFacts)
    assert log.count == 7
    assert set(log.unreadable) == {"broken", "newer", "odd", "gone"}
    assert log.newer == {"newer": 7}
    assert log.records["mended"].position.offset == 1
    assert read_log(None) is None
