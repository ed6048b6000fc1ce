"""What confluent-kafka (librdkafka) says, judged in one place (KIP-691)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

from confluent_kafka import KafkaError, KafkaException

from eos_sink.errors import (
    ClusterError,
    ConfigurationError,
    EosSinkError,
    FailureKind,
    OutcomeUnknownError,
)
from eos_sink.kafka.interfaces import MemberRefused, ProduceFailed, ProducerFenced
from eos_sink.kafka_config.acls import Acl, Resource, denied

_SAY_AGAIN_S = 10.0


class _WithoutRepeats(logging.Filter):
    """librdkafka tells of each failed connection to a broker that is down, some 80 times a second
    (measured with `reconnect.backoff.ms` 10)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        told, now = _NUMBERS.sub("", record.getMessage()), self._clock()
        if not told.startswith("FAIL"):
            return True
        if now - self._said.get(told, -_SAY_AGAIN_S) < _SAY_AGAIN_S:
            return False
        self._said = {text: at for text, at in self._said.items() if now - at < _SAY_AGAIN_S}
        self._said[told] = now
        return True


_NUMBERS = re.compile(r"(?<=after )\d+(?=ms)|, \d+ identical error\(s\) suppressed")
LOGGER = logging.getLogger("eos_sink.kafka")
LOGGER.addFilter(_WithoutRepeats())


class Meaning(Enum):
    """What an error means for the transaction that meets it (KIP-691: fatal or abortable)."""

    FENCED = auto()
    """Fatal: the producer has a successor, or somebody else has ended its transaction."""
    REPLACED = auto()
    """Fatal for the plan: a newer driver is the group's member (KIP-447)."""
    EXPIRED = auto()
    """Abortable: the member's session has ended; a repeated batch has a new member."""
    REJECTED = auto()
    """Abortable, and it fails again until the record or the setting is mended."""
    UNDELIVERED = auto()
    """Abortable: the brokers did not take records in time or in enough copies."""
    CORRUPTED = auto()
    """Abortable: the broker has lost sight of the producer, whose next init bumps the epoch or
    gets a new id (KIP-360)."""
    UNKNOWN = auto()
    """Neither: the request may have been carried out. It is read back, never aborted blindly."""
    DENIED = auto()
    """Fatal until a permission is granted."""
    MISSING = auto()
    """Fatal until the topic is there."""
    MISCONFIGURED = auto()
    """Fatal until a setting is corrected."""


# The one table of what librdkafka and the brokers behind it say. What it does not list is
# abortable if librdkafka says so, and else stops the query.
MEANINGS = {
    KafkaError._FENCED: Meaning.FENCED,
    KafkaError.PRODUCER_FENCED: Meaning.FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: Meaning.FENCED,
    KafkaError.INVALID_TXN_STATE: Meaning.FENCED,
    KafkaError.FENCED_INSTANCE_ID: Meaning.REPLACED,
    KafkaError.UNKNOWN_MEMBER_ID: Meaning.EXPIRED,
    KafkaError.ILLEGAL_GENERATION: Meaning.EXPIRED,
    KafkaError._UNKNOWN_PARTITION: Meaning.REJECTED,
    KafkaError.INVALID_MSG: Meaning.REJECTED,
    KafkaError.INVALID_MSG_SIZE: Meaning.REJECTED,
    KafkaError.INVALID_RECORD: Meaning.REJECTED,
    KafkaError.INVALID_TIMESTAMP: Meaning.REJECTED,
    KafkaError.MSG_SIZE_TOO_LARGE: Meaning.REJECTED,
    KafkaError.POLICY_VIOLATION: Meaning.REJECTED,
    KafkaError.RECORD_LIST_TOO_LARGE: Meaning.REJECTED,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: Meaning.REJECTED,
    KafkaError._MSG_TIMED_OUT: Meaning.UNDELIVERED,
    KafkaError._PURGE_INFLIGHT: Meaning.UNDELIVERED,
    KafkaError._PURGE_QUEUE: Meaning.UNDELIVERED,
    KafkaError.KAFKA_STORAGE_ERROR: Meaning.UNDELIVERED,
    KafkaError.NOT_ENOUGH_REPLICAS: Meaning.UNDELIVERED,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Meaning.UNDELIVERED,
    KafkaError.INVALID_PRODUCER_ID_MAPPING: Meaning.CORRUPTED,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER: Meaning.CORRUPTED,
    KafkaError.TRANSACTION_ABORTABLE: Meaning.CORRUPTED,
    KafkaError.UNKNOWN_PRODUCER_ID: Meaning.CORRUPTED,
    KafkaError._TIMED_OUT: Meaning.UNKNOWN,
    KafkaError._TIMED_OUT_QUEUE: Meaning.UNKNOWN,
    KafkaError.REQUEST_TIMED_OUT: Meaning.UNKNOWN,
    KafkaError._AUTHENTICATION: Meaning.DENIED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Meaning.DENIED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Meaning.DENIED,
    KafkaError.SASL_AUTHENTICATION_FAILED: Meaning.DENIED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Meaning.DENIED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Meaning.DENIED,
    KafkaError._UNKNOWN_TOPIC: Meaning.MISSING,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Meaning.MISSING,
    KafkaError._INVALID_ARG: Meaning.MISCONFIGURED,
    KafkaError.INVALID_SESSION_TIMEOUT: Meaning.MISCONFIGURED,
}
_KINDS = {
    Meaning.REJECTED: FailureKind.MESSAGE_REJECTED,
    Meaning.UNDELIVERED: FailureKind.DELIVERY_FAILED,
    Meaning.CORRUPTED: FailureKind.TRANSACTION_FAILED,
}
_RESOURCES = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Resource.TRANSACTIONAL_ID,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
}
_CORRECTIONS = {
    KafkaError._INVALID_ARG: "Correct the kafka.* option that it names.",
    KafkaError.INVALID_SESSION_TIMEOUT: "The group session has to last a minute longer than a "
    "transaction: lower eos.transaction.timeout.ms or raise group.max.session.timeout.ms on the "
    "brokers.",
}
_TRANSIENT = {
    KafkaError._ALL_BROKERS_DOWN,
    # A broker has left the metadata, with the requests that waited for it.
    KafkaError._DESTROY_BROKER,
    KafkaError._TIMED_OUT,
    # A request behind those to a broker that stands still.
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    # The leader is new, and does not yet know how far its predecessor came.
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}


def transient(error: KafkaError) -> bool:
    """Whether a read may simply be tried again: a broker or a leader is on its way."""
    return error.retriable() or error.code() in _TRANSIENT


def judged(error: KafkaError, what: str, needs: Iterable[Acl] = ()) -> Exception:
    """The one exception that a librdkafka error becomes.

    Args:
        error: what librdkafka says.
        what: says which step it ended.
        needs: what the step has to be permitted, so that the error names what is missing.
    """
    code, said = error.code(), error.str()
    named = "" if error.name() in said else f" ({error.name()})"
    text = f"{what}: {said}{named}."
    meaning = MEANINGS.get(code)
    if meaning is None and error.txn_requires_abort():
        meaning = Meaning.CORRUPTED
    if meaning is Meaning.FENCED:
        return ProducerFenced(text)
    if meaning in (Meaning.REPLACED, Meaning.EXPIRED):
        return MemberRefused(text, replaced=meaning is Meaning.REPLACED)
    if meaning in _KINDS:
        return ProduceFailed(text, _KINDS[meaning])
    if meaning is Meaning.DENIED:
        return _denied(code, text, needs)
    return _for_the_user(meaning, code, text)


def _denied(code: int, text: str, needs: Iterable[Acl]) -> EosSinkError:
    if code not in _RESOURCES:
        return ClusterError(
            text,
            remedy="Correct the login (kafka.sasl.*, kafka.ssl.*), then start the query again.",
        )
    missing = [acl for acl in needs if acl.resource is _RESOURCES[code]]
    if missing:
        return denied(text.removesuffix("."), missing)
    return ClusterError(text, remedy="Grant what docs/security.md lists, then start it again.")


def _for_the_user(meaning: Meaning | None, code: int, text: str) -> EosSinkError:
    if meaning is Meaning.MISSING:
        return ClusterError(text, remedy="Create the topic, then start the query again.")
    if meaning is Meaning.UNKNOWN:
        return OutcomeUnknownError(
            text,
            remedy="Check that the brokers answer, then start the query again: what was decided "
            "is read back and finished first.",
        )
    if meaning is Meaning.MISCONFIGURED:
        return ConfigurationError(text, remedy=_CORRECTIONS[code])
    return ClusterError(text, remedy="Mend what it names, then start the query again.")


@contextmanager
def accepted_settings() -> Iterator[None]:
    """Turn what librdkafka says of a new client's settings into an error for the user.

    Its sentences name settings and never hold a key or a password.
    """
    try:
        yield
    except KafkaException as raised:
        raise ConfigurationError(
            f"The Kafka client refuses the settings: {raised.args[0].str()}.",
            remedy="Correct or remove the kafka.* option that it names. Nothing was written.",
        ) from raised


@contextmanager
def step(what: str, needs: Callable[[], Iterable[Acl]] = tuple) -> Iterator[None]:
    """Turn what librdkafka raises inside into the errors of `interfaces`; see `judged`."""
    try:
        yield
    except KafkaException as raised:
        raise judged(raised.args[0], what, needs()) from raised


class Answer(Enum):
    """What a broker's error code means for a control request."""

    DONE = auto()
    RETRY = auto()
    REDISCOVER = auto()
    """The coordinator has moved: find it again, then retry."""
    REFUSED = auto()
    """Says nothing about the outcome."""
    DENIED = auto()
    """A permission is missing."""
    STOP = auto()


# Kafka's protocol error codes (org.apache.kafka.common.protocol.Errors).
_CONTROL_ANSWERS: dict[int, Answer] = {
    0: Answer.DONE,
    7: Answer.RETRY,  # REQUEST_TIMED_OUT
    14: Answer.RETRY,  # COORDINATOR_LOAD_IN_PROGRESS
    15: Answer.REDISCOVER,  # COORDINATOR_NOT_AVAILABLE
    16: Answer.REDISCOVER,  # NOT_COORDINATOR
    51: Answer.RETRY,  # CONCURRENT_TRANSACTIONS: the markers are being written
    31: Answer.DENIED,  # CLUSTER_AUTHORIZATION_FAILED
    53: Answer.DENIED,  # TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    47: Answer.REFUSED,  # INVALID_PRODUCER_EPOCH
    48: Answer.REFUSED,  # INVALID_TXN_STATE
    49: Answer.REFUSED,  # INVALID_PRODUCER_ID_MAPPING
    90: Answer.REFUSED,  # PRODUCER_FENCED
    105: Answer.REFUSED,  # TRANSACTIONAL_ID_NOT_FOUND
}


def control_answer(error_code: int) -> Answer:
    return _CONTROL_ANSWERS.get(error_code, Answer.STOP)
