"""Keeps what librdkafka reports to a producer between its calls."""

from __future__ import annotations

import json
import re

from confluent_kafka import KafkaError, KafkaException, Message

from eos_sink.kafka.error_codes import (
    LOGGER,
    Meaning,
    describe_refusal,
    get_meaning,
    is_consequence,
    is_refusal,
)
from eos_sink.protocol.values import ProducerIdentity

# The error names no topic; the log line before it does.
_DENIED_TOPIC = re.compile(r'partition "([^"]+)" .*Topic authorization failed')
_FAILURE = re.compile(r"\((_?[A-Z]+(?:_[A-Z]+)*)(?:, requires epoch bump)?\)$")


class RecordRefused(KafkaException):
    """librdkafka does not take a record; `where` names its topic, and its partition if known."""

    def __init__(self, error: KafkaError, where: str) -> None:
        super().__init__(error)
        self.where = where


class ProducerEvents:
    """Filled by the thread that polls.

    Attributes:
        failure: why the transaction failed. The log has it before any call returns it.
        denied: topics that may not be written, also from the log.
        lost: the first record that was not delivered: why, its topic, and where it was to go.
        fatal: why the producer cannot be used any more.
        refused: the last refusal of a login or certificate, since a call had its answer.
        identity: from the statistics, librdkafka's only source of it.
    """

    def __init__(self) -> None:
        self.failure: KafkaError | None = None
        self.denied: set[str] = set()
        self.lost: tuple[KafkaError, str | None, str] | None = None
        self.fatal: KafkaError | None = None
        self.refused = ""
        self.identity: ProducerIdentity | None = None

    def begin(self) -> None:
        """Forget the errors of the previous transaction."""
        self.failure = self.lost = None

    @property
    def lost_first(self) -> KafkaError | None:
        """Why a record was not delivered, unless it followed from something else."""
        if self.lost is None or is_consequence(self.lost[0]):
            return None
        return self.explain(self.lost[0])

    @property
    def trouble(self) -> bool:
        """True if the next call of the protocol will fail."""
        return bool(self.lost or self.failure or self.fatal)

    def log(self, level: int, text: str, facility: str, *more: str) -> None:
        """Called by the clients as `logging.Logger.log`."""
        named = _FAILURE.search(more[-1]) if facility == "TXNERR" else None
        code = getattr(KafkaError, named[1], None) if named else None
        if code is not None:
            self.failure = KafkaError(code, more[-1], False, False, True)
        if facility == "ADDPARTS":
            self.denied.update(_DENIED_TOPIC.findall(more[-1]))
        LOGGER.log(level, text, facility, *more)

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Called by confluent-kafka for every record that was delivered or has failed."""
        if error is not None:
            self.on_lost(error, message.topic(), message.partition())

    def on_lost(self, error: KafkaError, topic: str | None, partition: int | None) -> None:
        if self.lost is None:
            self.lost = (error, topic, describe_place(topic, partition))

    def on_error(self, error: KafkaError) -> None:
        """Keep fatal errors. The next call of a transaction returns its own."""
        if error.fatal():
            self.fatal = error
        if is_refusal(error):
            self.refused = describe_refusal(error.str())

    def explain(self, error: KafkaError) -> KafkaError:
        """The same with the last refusal, if the error says no more than that brokers are silent.
        What it means for the transaction stays."""
        code = error.code()
        is_silence = get_meaning(code) in (Meaning.UNKNOWN, Meaning.LOGIN_REFUSED)
        if not self.refused or not (is_silence or code == KafkaError._MSG_TIMED_OUT):
            return error
        flags = error.fatal(), error.retriable(), error.txn_requires_abort()
        return KafkaError(code, f"{error.str()}: {self.refused}", *flags)

    def on_statistics(self, document: str | bytes) -> None:
        if self.identity is None:
            eos = json.loads(document).get("eos", {})
            if eos.get("producer_id", -1) >= 0 and eos.get("producer_epoch", -1) >= 0:
                self.identity = ProducerIdentity(eos["producer_id"], eos["producer_epoch"])


def describe_place(topic: str | None, partition: int | None) -> str:
    """The topic, and the partition if it has been chosen."""
    chosen = partition is not None and partition >= 0
    return f"topic {topic}, partition {partition}" if chosen else f"topic {topic}"
