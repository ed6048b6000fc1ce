"""Every error becomes one exception, by one table (KIP-691); some mean that a read is repeated."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError, KafkaException

from eos_sink.errors import (
    ClusterError,
    ConfigurationError,
    EosSinkError,
    FailureKind,
    OutcomeUnknownError,
)
from eos_sink.kafka.error_codes import (
    CODES,
    Meaning,
    _RepeatFilter,
    convert_error,
    convert_errors,
    is_missing,
    is_transient,
    proves_permission,
)
from eos_sink.protocol.values import MemberRefused, ProduceFailed, ProducerFenced

MEANINGS = {code: row.meaning for code, row in CODES.items() if row.meaning is not None}
EXCEPTIONS: dict[Meaning, type[Exception]] = {
    Meaning.FENCED: ProducerFenced,
    Meaning.REPLACED: MemberRefused,
    Meaning.EXPIRED: MemberRefused,
    Meaning.REJECTED: ProduceFailed,
    Meaning.UNDELIVERED: ProduceFailed,
    Meaning.PURGED: ProduceFailed,
    Meaning.CORRUPTED: ProduceFailed,
    Meaning.FAILED_BEFORE: ClusterError,
    Meaning.UNKNOWN: OutcomeUnknownError,
    Meaning.DENIED: ClusterError,
    Meaning.LOGIN_REFUSED: ClusterError,
    Meaning.MISSING: ClusterError,
    Meaning.OUT_OF_RANGE: ClusterError,
    Meaning.MISCONFIGURED: ConfigurationError,
}


@pytest.mark.parametrize("code", MEANINGS, ids=lambda code: KafkaError(code).name())
def test_an_error_becomes_the_exception_of_its_meaning(code: int) -> None:
    raised = convert_error(KafkaError(code), "It failed")
    assert type(raised) is EXCEPTIONS[MEANINGS[code]]
    assert str(raised).startswith("It failed: ")
    assert KafkaError(code).name() in str(raised)


@pytest.mark.parametrize(
    ("meaning", "kind"),
    [
        (Meaning.REJECTED, FailureKind.MESSAGE_REJECTED),
        (Meaning.UNDELIVERED, FailureKind.DELIVERY_FAILED),
        (Meaning.PURGED, FailureKind.DELIVERY_FAILED),
        (Meaning.CORRUPTED, FailureKind.TRANSACTION_FAILED),
    ],
)
def test_an_abortable_error_says_what_failed(meaning: Meaning, kind: FailureKind) -> None:
    for code in (code for code, known in MEANINGS.items() if known is meaning):
        raised = convert_error(KafkaError(code), "It failed")
        assert isinstance(raised, ProduceFailed)
        assert raised.kind is kind


def test_a_missing_coordinator_is_explained_by_its_topic() -> None:
    raised = convert_error(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE), "It failed")
    assert isinstance(raised, ClusterError)
    assert "transaction.state.log.replication.factor" in raised.remedy
    assert "has no leader or too few replicas in sync" in raised.remedy


def test_a_producer_that_the_broker_has_forgotten_is_not_fenced() -> None:
    """KIP-360: they were fatal once; the next init bumps the epoch or gives a new id."""
    for code in (
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ):
        assert MEANINGS[code] is Meaning.CORRUPTED


def test_only_a_newer_member_replaces_a_driver() -> None:
    replaced, expired = (
        convert_error(KafkaError(code), "It failed")
        for code in (KafkaError.FENCED_INSTANCE_ID, KafkaError.UNKNOWN_MEMBER_ID)
    )
    assert isinstance(replaced, MemberRefused)
    assert replaced.replaced
    assert isinstance(expired, MemberRefused)
    assert not expired.replaced


def test_an_error_that_is_not_listed_is_abortable_if_librdkafka_says_so() -> None:
    unlisted = KafkaError.UNSUPPORTED_VERSION
    assert unlisted not in MEANINGS
    abortable = KafkaError(unlisted, "text", False, False, True)
    assert isinstance(convert_error(abortable, "It failed"), ProduceFailed)
    assert isinstance(convert_error(KafkaError(unlisted), "It failed"), ClusterError)


@pytest.mark.parametrize(
    "name", ["_AUTHENTICATION", "_DESTROY_BROKER", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT"]
)
def test_a_read_from_a_broker_that_is_gone_or_paused_is_tried_again(name: str) -> None:
    """A broker may have left the metadata, or not answer; then requests behind it are not sent."""
    assert is_transient(KafkaError(getattr(KafkaError, name)))


def test_a_read_that_is_refused_is_not_tried_again() -> None:
    for meaning in (Meaning.DENIED, Meaning.MISSING, Meaning.OUT_OF_RANGE):
        for code in (code for code, known in MEANINGS.items() if known is meaning):
            assert not CODES[code].transient


def test_a_topic_or_a_partition_may_be_missing() -> None:
    for code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        assert is_missing(KafkaError(code))
    assert is_missing(KafkaError(KafkaError._UNKNOWN_PARTITION))
    assert not is_missing(KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))


def test_a_broker_that_knows_no_such_id_or_member_has_checked_the_permission() -> None:
    """EndTxn and Heartbeat are refused for a missing permission before anything else."""
    proofs = {0, 7, 14, 15, 16, 22, 25, 47, 48, 49, 51, 69, 82, 90, 105}
    assert {code for code in range(-200, 150) if proves_permission(code)} == proofs


def test_an_error_is_wrapped_once() -> None:
    with pytest.raises(ProducerFenced) as caught, convert_errors("It failed"):
        raise KafkaException(KafkaError(KafkaError.PRODUCER_FENCED))
    cause = caught.value.__cause__
    assert isinstance(cause, KafkaException)
    assert cause.__cause__ is None
    assert not isinstance(caught.value, EosSinkError)


def test_failed_connections_to_a_broker_are_logged_every_ten_seconds() -> None:
    now = [0.0]
    only = _RepeatFilter(lambda: now[0])

    def passes(text: str) -> bool:
        return only.filter(logging.LogRecord("k", logging.ERROR, "", 0, text, (), None))

    refused = "FAIL [a:1]: Connect failed (after %dms in state CONNECT%s)"
    assert passes(refused % (0, ""))
    now[0] = 9.9
    assert not passes(refused % (3, ""))
    assert not passes(refused % (0, ", 7 identical error(s) suppressed"))
    assert passes("FAIL [b:2]: Connect failed (after 0ms in state CONNECT)")
    assert passes("Something else")
    assert passes("Something else")
    now[0] = 10.0
    assert passes(refused % (1, ""))
