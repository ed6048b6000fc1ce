"""One answer that fails or does not come hides no other one."""

from __future__ import annotations

from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException

from eos_sink.kafka.admin_requests import results, unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, Resource
from tests.fakes.clock import FakeClock

ACL = Acl("Describe", Resource.TOPIC, "t")


def test_an_answer_that_fails_or_never_comes_is_an_error_of_its_own() -> None:
    answers: dict[str, Future[str]] = {name: Future() for name in ("good", "bad", "never")}
    answers["good"].set_result("yes")
    answers["bad"].set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    found = results(answers, Deadline(0, FakeClock()))
    assert found["good"] == "yes"
    assert found["bad"].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert found["never"].code() == KafkaError._TIMED_OUT


def test_only_a_missing_permission_is_named() -> None:
    assert unseen(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), ACL).missing == (ACL,)
    assert unseen(KafkaError(KafkaError._TIMED_OUT), ACL).missing == ()
