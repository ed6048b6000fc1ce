"""One table of error codes: librdkafka's (negative) and Kafka's protocol's (KIP-691)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, libversion

from eos_sink.errors import (
    ClusterError,
    ConfigurationError,
    EosSinkError,
    FailureKind,
    OutcomeUnknownError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.protocol.values import MemberRefused, ProduceFailed, ProducerFenced

_OLDEST = "2.16"  # as in setup.cfg; confluent-kafka and librdkafka share their first two numbers

if tuple(map(int, libversion()[0].split(".")[:2])) < tuple(map(int, _OLDEST.split("."))):
    raise ImportError(
        f"confluent-kafka has librdkafka {libversion()[0]}, and {_OLDEST} is needed",
        name="confluent_kafka",
    )


class Meaning(Enum):
    """The meaning of an error for the producer, member or reader that gets it."""

    FENCED = auto()
    """Fatal: the producer has a successor, or its transaction was ended from outside."""
    REPLACED = auto()
    """Fatal for the plan: a newer driver is the group's member (KIP-447)."""
    EXPIRED = auto()
    """Abortable: the member's session has ended; a repeated batch has a new member."""
    REJECTED = auto()
    """Abortable. It fails again until the record or the setting is corrected."""
    UNDELIVERED = auto()
    """Abortable: the brokers did not store records in time or in enough replicas."""
    PURGED = auto()
    """Abortable: librdkafka dropped the record because of an earlier error."""
    CORRUPTED = auto()
    """Abortable: the broker has lost the producer's state, whose next init bumps the epoch or gets
    a new id (KIP-360)."""
    FAILED_BEFORE = auto()
    """The producer or its transaction has failed before; the cause is in an earlier error."""
    UNKNOWN = auto()
    """The request may have been carried out. It is read back, never aborted blindly."""
    DENIED = auto()
    """Fatal until a permission is granted."""
    LOGIN_REFUSED = auto()
    """Fatal until the login or the certificates are corrected."""
    MISSING = auto()
    """Fatal until the topic exists."""
    OUT_OF_RANGE = auto()
    """The partition no longer has the offset."""
    MISCONFIGURED = auto()
    """Fatal until a setting is corrected."""


class Answer(Enum):
    """The meaning of an error code for a control request."""

    DONE = auto()
    RETRY = auto()
    REDISCOVER = auto()
    """The coordinator has moved: find it again, then retry."""
    REFUSED = auto()
    """Says nothing about the outcome."""
    DENIED = auto()
    """A permission is missing."""
    STOP = auto()


class _Code(NamedTuple):
    """Attributes:
    meaning: None: the error has no meaning of its own for a producer.
    transient: a read may be repeated; a broker or a leader is about to come back.
    control: what it means as the answer to a control request.
    """

    meaning: Meaning | None = None
    transient: bool = False
    control: Answer = Answer.STOP


_E = KafkaError
_TRANSIENT = _Code(transient=True)
_TRANSACTIONAL_ID_NOT_FOUND = 105  # confluent-kafka has no name for it

# An error that is not listed is abortable if librdkafka says so. Otherwise it stops the query.
CODES = {
    _E.NO_ERROR: _Code(control=Answer.DONE),
    _E._FENCED: _Code(Meaning.FENCED),
    _E.PRODUCER_FENCED: _Code(Meaning.FENCED, control=Answer.REFUSED),
    _E.INVALID_PRODUCER_EPOCH: _Code(Meaning.FENCED, control=Answer.REFUSED),
    _E.INVALID_TXN_STATE: _Code(Meaning.FENCED, control=Answer.REFUSED),
    _E.FENCED_INSTANCE_ID: _Code(Meaning.REPLACED),
    _E.UNKNOWN_MEMBER_ID: _Code(Meaning.EXPIRED),
    _E.ILLEGAL_GENERATION: _Code(Meaning.EXPIRED),
    _E._UNKNOWN_PARTITION: _Code(Meaning.REJECTED),
    _E.INVALID_MSG: _Code(Meaning.REJECTED),
    _E.INVALID_MSG_SIZE: _Code(Meaning.REJECTED),
    _E.INVALID_RECORD: _Code(Meaning.REJECTED),
    _E.INVALID_TIMESTAMP: _Code(Meaning.REJECTED),
    _E.MSG_SIZE_TOO_LARGE: _Code(Meaning.REJECTED),
    _E.POLICY_VIOLATION: _Code(Meaning.REJECTED),
    _E.RECORD_LIST_TOO_LARGE: _Code(Meaning.REJECTED),
    _E.UNSUPPORTED_COMPRESSION_TYPE: _Code(Meaning.REJECTED),
    _E._MSG_TIMED_OUT: _Code(Meaning.UNDELIVERED),
    _E.KAFKA_STORAGE_ERROR: _Code(Meaning.UNDELIVERED, transient=True),
    _E.NOT_ENOUGH_REPLICAS: _Code(Meaning.UNDELIVERED),
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _Code(Meaning.UNDELIVERED),
    _E._PURGE_INFLIGHT: _Code(Meaning.PURGED),
    _E._PURGE_QUEUE: _Code(Meaning.PURGED),
    _E.INVALID_PRODUCER_ID_MAPPING: _Code(Meaning.CORRUPTED, control=Answer.REFUSED),
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: _Code(Meaning.CORRUPTED),
    _E.TRANSACTION_ABORTABLE: _Code(Meaning.CORRUPTED),
    _E.UNKNOWN_PRODUCER_ID: _Code(Meaning.CORRUPTED),
    _E._FATAL: _Code(Meaning.FAILED_BEFORE),
    _E._STATE: _Code(Meaning.FAILED_BEFORE),
    _E._TIMED_OUT: _Code(Meaning.UNKNOWN, transient=True),
    # The request waited behind others for a broker that does not answer.
    _E._TIMED_OUT_QUEUE: _Code(Meaning.UNKNOWN, transient=True),
    _E.REQUEST_TIMED_OUT: _Code(Meaning.UNKNOWN, transient=True, control=Answer.RETRY),
    _E.CLUSTER_AUTHORIZATION_FAILED: _Code(Meaning.DENIED, control=Answer.DENIED),
    _E.GROUP_AUTHORIZATION_FAILED: _Code(Meaning.DENIED),
    _E.TOPIC_AUTHORIZATION_FAILED: _Code(Meaning.DENIED),
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _Code(Meaning.DENIED, control=Answer.DENIED),
    # A login that was right at the start; some clusters refuse those above a number in a second.
    _E._AUTHENTICATION: _Code(Meaning.LOGIN_REFUSED, transient=True),
    _E._SSL: _Code(Meaning.LOGIN_REFUSED),
    _E.SASL_AUTHENTICATION_FAILED: _Code(Meaning.LOGIN_REFUSED),
    _E._UNKNOWN_TOPIC: _Code(Meaning.MISSING),
    _E.UNKNOWN_TOPIC_OR_PART: _Code(Meaning.MISSING),
    _E._AUTO_OFFSET_RESET: _Code(Meaning.OUT_OF_RANGE),
    _E.OFFSET_OUT_OF_RANGE: _Code(Meaning.OUT_OF_RANGE),
    _E._INVALID_ARG: _Code(Meaning.MISCONFIGURED),
    _E.INVALID_SESSION_TIMEOUT: _Code(Meaning.MISCONFIGURED),
    _E._ALL_BROKERS_DOWN: _TRANSIENT,
    # A broker has left the metadata, with the requests that waited for it.
    _E._DESTROY_BROKER: _TRANSIENT,
    _E._TRANSPORT: _TRANSIENT,
    _E._WAIT_COORD: _TRANSIENT,
    _E.COORDINATOR_LOAD_IN_PROGRESS: _Code(transient=True, control=Answer.RETRY),
    _E.COORDINATOR_NOT_AVAILABLE: _Code(transient=True, control=Answer.REDISCOVER),
    _E.NOT_COORDINATOR: _Code(transient=True, control=Answer.REDISCOVER),
    _E.FENCED_LEADER_EPOCH: _TRANSIENT,
    _E.LEADER_NOT_AVAILABLE: _TRANSIENT,
    _E.NETWORK_EXCEPTION: _TRANSIENT,
    _E.NOT_LEADER_FOR_PARTITION: _TRANSIENT,
    # The leader is new, and does not know yet how far its predecessor came.
    _E.OFFSET_NOT_AVAILABLE: _TRANSIENT,
    _E.REPLICA_NOT_AVAILABLE: _TRANSIENT,
    _E.UNKNOWN_LEADER_EPOCH: _TRANSIENT,
    # An offset of an open transaction (KIP-447).
    _E.UNSTABLE_OFFSET_COMMIT: _TRANSIENT,
    # The markers are being written.
    _E.CONCURRENT_TRANSACTIONS: _Code(control=Answer.RETRY),
    _TRANSACTIONAL_ID_NOT_FOUND: _Code(control=Answer.REFUSED),
}
_KINDS = {
    Meaning.REJECTED: FailureKind.MESSAGE_REJECTED,
    Meaning.UNDELIVERED: FailureKind.DELIVERY_FAILED,
    Meaning.PURGED: FailureKind.DELIVERY_FAILED,
    Meaning.CORRUPTED: FailureKind.TRANSACTION_FAILED,
}
_RESOURCES = {
    _E.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    _E.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Resource.TRANSACTIONAL_ID,
    _E.CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
}
_REFUSED = "Authentication or TLS handshake failed"
LOGIN_REFUSED = (
    "Correct the login (kafka.security.protocol, kafka.sasl.*, kafka.ssl.*), or renew a "
    "certificate that has expired, also a broker's, at its path: "
    "docs/connect.md#expired-certificates. Then start again."
)
"""The remedy where a broker refuses a client, or a client a broker."""
_REMEDIES = {
    Meaning.DENIED: "Grant what docs/connect.md lists, then start the query again.",
    Meaning.LOGIN_REFUSED: LOGIN_REFUSED,
    Meaning.MISSING: "Create the topic, then start the query again.",
}
_CORRECTIONS = {
    _E._INVALID_ARG: "Correct the kafka.* option that it names.",
    _E.INVALID_SESSION_TIMEOUT: "The group session has to last a minute longer than a "
    "transaction: lower eos.transaction.timeout.ms or raise group.max.session.timeout.ms on the "
    "brokers.",
}
NO_COORDINATOR = (
    "A coordinator has no usable log: its partition of __transaction_state (of a group: "
    "__consumer_offsets) has no leader or too few replicas in sync, or Kafka cannot create the "
    "topic, since the cluster has fewer brokers than transaction.state.log.replication.factor (of "
    "a group: offsets.topic.replication.factor). Start the missing brokers. If there are none, "
    "lower that setting and transaction.state.log.min.isr on the brokers. Then start the query "
    "again."
)
"""The remedy where a broker answers COORDINATOR_NOT_AVAILABLE until the deadline."""
_UNLISTED = _Code()


def get_meaning(error_code: int) -> Meaning | None:
    return CODES.get(error_code, _UNLISTED).meaning


def is_consequence(error: KafkaError) -> bool:
    """True if it says only that something has failed before."""
    return get_meaning(error.code()) in (Meaning.FAILED_BEFORE, Meaning.PURGED)


def is_refusal(error: KafkaError) -> bool:
    """True if a broker refuses the login or certificate of a client, or a client the broker's."""
    return get_meaning(error.code()) is Meaning.LOGIN_REFUSED or "SSL alert" in error.str()


def describe_refusal(said: str) -> str:
    """Args:
    said: what the client says, with the broker.
    """
    return f"{_REFUSED}: {said}"


def silence(*refusals: str) -> KafkaError:
    """The error of a request without an answer.

    Args:
        refusals: what the client has said of brokers since they have answered last.
    """
    text = describe_refusal(refusals[-1]) if refusals else None
    return KafkaError(KafkaError._TIMED_OUT, text)


def remedy_for(text: str, otherwise: str) -> str:
    """The remedy of an error, or that of a refused login or certificate if its text names one."""
    return LOGIN_REFUSED if _REFUSED in text else otherwise


def is_denied(error_code: int) -> bool:
    return get_meaning(error_code) is Meaning.DENIED


def is_transient(error: KafkaError) -> bool:
    """True if a read that failed may be repeated: a broker or a leader is about to come back."""
    return error.retriable() or CODES.get(error.code(), _UNLISTED).transient


def is_missing(error: KafkaError) -> bool:
    """True if a topic or a partition does not exist."""
    return get_meaning(error.code()) is Meaning.MISSING or error.code() == _E._UNKNOWN_PARTITION


def proves_permission(error_code: int) -> bool:
    """True if a broker answers so only after it has checked the permission for the request.

    It is not the coordinator, or does not know the transactional id, the group or the member.
    """
    row = CODES.get(error_code, _UNLISTED)
    return (
        row.control not in (Answer.STOP, Answer.DENIED)
        or row.meaning in (Meaning.EXPIRED, Meaning.REPLACED)
        or error_code == KafkaError.GROUP_ID_NOT_FOUND
    )


def lacks_coordinator(error_code: int) -> bool:
    """True if there is no coordinator, rather than one that has moved."""
    return error_code == KafkaError.COORDINATOR_NOT_AVAILABLE


def classify_control_answer(error_code: int) -> Answer:
    """Return what a code of Kafka's protocol (org.apache.kafka.common.protocol.Errors) asks for."""
    return CODES.get(error_code, _UNLISTED).control


def convert_error(error: KafkaError, what: str, needs: Iterable[Acl] = ()) -> Exception:
    """The exception for a librdkafka error.

    Args:
        error: from librdkafka.
        what: the step that failed.
        needs: the permissions that the step needs, so that the error names the missing ones.
    """
    code, said = error.code(), error.str()
    named = "" if error.name() in said else f" ({error.name()})"
    text = f"{what}: {said}{named}."
    meaning = get_meaning(code)
    if meaning in (None, Meaning.FAILED_BEFORE) and error.txn_requires_abort():
        meaning = Meaning.CORRUPTED
    if meaning is Meaning.FENCED:
        return ProducerFenced(text)
    if meaning in (Meaning.REPLACED, Meaning.EXPIRED):
        return MemberRefused(text, replaced=meaning is Meaning.REPLACED)
    if meaning in _KINDS:
        return ProduceFailed(text, _KINDS[meaning], of_time=code == _E.INVALID_TIMESTAMP)
    return _error_for_user(meaning, code, text, needs)


def _error_for_user(
    meaning: Meaning | None, code: int, text: str, needs: Iterable[Acl]
) -> EosSinkError:
    if meaning is Meaning.UNKNOWN:
        remedy = (
            "Check that the brokers answer, then start the query again: it reads decisions back "
            "and finishes them first."
        )
        return OutcomeUnknownError(text, remedy=remedy_for(text, remedy))
    if meaning is Meaning.MISCONFIGURED:
        return ConfigurationError(text, remedy=_CORRECTIONS[code])
    missing = [acl for acl in needs if acl.resource is _RESOURCES.get(code)]
    if missing:
        return permission_error(text.removesuffix("."), missing)
    remedy = "Correct what the error names, then start the query again."
    if lacks_coordinator(code):
        remedy = NO_COORDINATOR
    return ClusterError(text, remedy=_REMEDIES.get(meaning, remedy) if meaning else remedy)


def no_answer(
    what: str,
    names: Collection[str],
    deadline: Deadline,
    silent: KafkaError,
    none: Collection[str] = (),
) -> OutcomeUnknownError:
    """No answer within the deadline.

    Args:
        what: was asked.
        names: what it was asked about.
        deadline: has passed.
        silent: `Wire.silence`.
        none: the names for which no coordinator is available.
    """
    shown = f"{', '.join(sorted(names)[:5])}{' ...' if len(names) > 5 else ''}"
    why = "COORDINATOR_NOT_AVAILABLE" if none else silent.str()
    remedy = (
        "Check that the brokers and the topic __transaction_state are available, then start the "
        "query again; it finishes decided batches first."
    )
    return OutcomeUnknownError(
        f"No answer from {what} within {deadline.seconds:.0f} s for {shown}: {why}.",
        remedy=NO_COORDINATOR if none else remedy_for(why, remedy),
    )


@contextmanager
def convert_errors(what: str, needs: Callable[[], Iterable[Acl]] = tuple) -> Iterator[None]:
    """Convert librdkafka's errors to those of `interfaces`; the arguments are `convert_error`'s."""
    try:
        yield
    except KafkaException as raised:
        raise convert_error(raised.args[0], what, needs()) from raised


@contextmanager
def convert_setting_errors() -> Iterator[None]:
    """Convert the errors of a new client about its settings.

    librdkafka's messages name settings and never contain a key or a password.
    """
    try:
        yield
    except KafkaException as raised:
        text = raised.args[0].str()
        remedy = "Correct or remove the kafka.* option that it names."
        if "SASL mechanism GSSAPI" in text:
            # The wheels on PyPI are built without it.
            remedy = "Install a confluent-kafka whose librdkafka has Kerberos: docs/connect.md."
        raise ConfigurationError(
            f"The Kafka client refuses the settings: {text}.",
            remedy=f"{remedy} Nothing was written.",
        ) from raised


class _RepeatFilter(logging.Filter):
    """Passes each failed connection every ten seconds only: librdkafka logs one to a broker that is
    down some 80 times a second (measured with `reconnect.backoff.ms` 10)."""

    _INTERVAL_S = 10.0
    _NUMBERS = re.compile(r"(?<=after )\d+(?=ms)|, \d+ identical error\(s\) suppressed")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = self._NUMBERS.sub("", record.getMessage()), self._clock()
        if not text.startswith("FAIL"):
            return True
        self._logged = {t: at for t, at in self._logged.items() if now - at < self._INTERVAL_S}
        repeated = text in self._logged
        self._logged.setdefault(text, now)
        return not repeated


LOGGER = logging.getLogger("eos_sink.kafka")
LOGGER.addFilter(_RepeatFilter())
