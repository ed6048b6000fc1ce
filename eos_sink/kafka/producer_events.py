"""What a producer hears from librdkafka between its calls."""

from __future__ import annotations

import json
import re

from confluent_kafka import KafkaError

from eos_sink.kafka.error_codes import LOGGER
from eos_sink.kafka.interfaces import ProducerIdentity

# The error names no topic; the log line before it does.
_DENIED_TOPIC = re.compile(r'partition "([^"]+)" .*Topic authorization failed')
_FAILURE = re.compile(r"\((_?[A-Z]+(?:_[A-Z]+)*)\)$")


class Heard:
    """Told by the thread that polls.

    Attributes:
        failure: what has failed the transaction. It stands in the log before any call tells it.
        denied: topics that may not be written, from the log too.
        lost: of the first record that was not delivered, why, and where it was to go.
        fatal: what has ended the producer.
        identity: from the statistics; librdkafka tells it nowhere else.
    """

    def __init__(self) -> None:
        self.failure: KafkaError | None = None
        self.denied: set[str] = set()
        self.lost: tuple[KafkaError, str] | None = None
        self.fatal: KafkaError | None = None
        self.identity: ProducerIdentity | None = None

    def begin(self) -> None:
        """What the transaction before has suffered is over."""
        self.failure = self.lost = None

    @property
    def trouble(self) -> bool:
        """Something is known that the next call of the protocol will tell."""
        return bool(self.lost or self.failure or self.fatal)

    def log(self, level: int, text: str, facility: str, *more: str) -> None:
        """Called by confluent-kafka as `logging.Logger.log`."""
        named = _FAILURE.search(more[-1]) if facility == "TXNERR" else None
        code = getattr(KafkaError, named[1], None) if named else None
        if code is not None:
            self.failure = KafkaError(code, more[-1], False, False, True)
        if facility == "ADDPARTS":
            self.denied.update(_DENIED_TOPIC.findall(more[-1]))
        LOGGER.log(level, text, facility, *more)

    def undelivered(self, error: KafkaError, topic: str | None, partition: int | None) -> None:
        if self.lost is None:
            self.lost = (error, place(topic, partition))

    def failed(self, error: KafkaError) -> None:
        """What a transaction suffers is told by its next call; `poll` would raise it at random."""
        if error.fatal():
            self.fatal = error

    def statistics(self, document: str | bytes) -> None:
        if self.identity is None:
            eos = json.loads(document).get("eos", {})
            if eos.get("producer_id", -1) >= 0 and eos.get("producer_epoch", -1) >= 0:
                self.identity = ProducerIdentity(eos["producer_id"], eos["producer_epoch"])


def place(topic: str | None, partition: int | None) -> str:
    """Without a partition where none was chosen yet."""
    chosen = partition is not None and partition >= 0
    return f"topic {topic}, partition {partition}" if chosen else f"topic {topic}"
