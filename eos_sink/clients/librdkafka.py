"""What confluent-kafka (librdkafka) says, judged in one place (KIP-691)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from eos_sink.errors import (
    ClusterError,
    ConfigurationError,
    EosSinkError,
    OutcomeUnknownError,
)
from eos_sink.ports import MemberRefused, ProducerFenced, WriteRejected

LOGGER = logging.getLogger("eos_sink.kafka")

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    # Somebody else has ended the transaction.
    KafkaError.INVALID_TXN_STATE,
}
_REFUSED = {
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
}
_UNKNOWN = {KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT_QUEUE}
_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Write and Describe on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Read on the group (the prefix)",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Write on transactional ids (the prefix)",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "IdempotentWrite on the cluster",
    KafkaError.SASL_AUTHENTICATION_FAILED: "a working login (kafka.sasl.*)",
    KafkaError._AUTHENTICATION: "a working login (kafka.sasl.*)",
}
_NO_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
_WRONG_SETTING = {
    KafkaError._INVALID_ARG: "Correct the kafka.* option that it names.",
    KafkaError.INVALID_SESSION_TIMEOUT: "The group session lasts a minute longer than the "
    "transaction: lower eos.transaction.timeout.ms or raise group.max.session.timeout.ms on the "
    "brokers.",
}


_TO_THE_USER = {*_UNKNOWN, *_DENIED, *_NO_TOPIC, *_WRONG_SETTING}
_TRANSIENT = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
}


def transient(error: KafkaError) -> bool:
    """Whether a read may simply be tried again: a broker or a leader is on its way."""
    return error.retriable() or error.code() in _TRANSIENT


def judged(error: KafkaError, what: str) -> Exception:
    """The one exception that a librdkafka error becomes; `what` says which step it ended."""
    code, text = error.code(), f"{what}: {error.str()} ({error.name()})."
    if code in _FENCED:
        return ProducerFenced(text)
    if code in _REFUSED:
        return MemberRefused(text, replaced=code == KafkaError.FENCED_INSTANCE_ID)
    if code not in _TO_THE_USER and error.txn_requires_abort():
        return WriteRejected(text)
    return _for_the_user(code, text)


def _for_the_user(code: int, text: str) -> EosSinkError:
    if code in _DENIED:
        return ClusterError(text, remedy=f"Give the query's principal {_DENIED[code]}.")
    if code in _NO_TOPIC:
        return ClusterError(text, remedy="Create the topic, then start the query again.")
    if code in _UNKNOWN:
        return OutcomeUnknownError(
            text,
            remedy="Check that the brokers answer, then start the query again: what was decided "
            "is read back and finished first.",
        )
    if code in _WRONG_SETTING:
        return ConfigurationError(text, remedy=_WRONG_SETTING[code])
    return ClusterError(text, remedy="Mend what it names, then start the query again.")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Turn what librdkafka raises inside into the errors of `eos_sink.ports`."""
    try:
        yield
    except KafkaException as raised:
        raise judged(raised.args[0], what) from raised
