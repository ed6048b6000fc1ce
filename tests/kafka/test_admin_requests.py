"""An answer that fails names the permission that is missing."""

from __future__ import annotations

from confluent_kafka import KafkaError

from eos_sink.kafka.admin_requests import unseen
from eos_sink.kafka_config.acls import Acl, Resource

ACL = Acl("Describe", Resource.TOPIC, "t")


def test_only_a_missing_permission_is_named() -> None:
    assert unseen(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), ACL).missing == (ACL,)
    assert unseen(KafkaError(KafkaError._TIMED_OUT), ACL).missing == ()
