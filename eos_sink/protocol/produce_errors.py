"""The error of a batch some of whose rows Kafka did not take, from a task or from the driver."""

from __future__ import annotations

from typing import Any

from eos_sink.errors import Action, FailureKind, ProduceFailedError
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.protocol.values import ProduceFailed

_REMEDIES = {
    FailureKind.MESSAGE_REJECTED: "Fix what is named (for a record that is too large: "
    "max.message.bytes of the topic, whose own compression.type counts, and "
    "kafka.max.request.size; for a batch of small ones: "
    "kafka.batch.size), or name a topic for such rows with option eos.dead.letter.topic. Then "
    "start the query again: Spark replays the batch.",
    FailureKind.DELIVERY_FAILED: "Check the topic's brokers and its in-sync replicas "
    "(min.insync.replicas), then start the query again: Spark replays the batch.",
    FailureKind.TRANSACTION_FAILED: "Start the query again: Spark replays the batch, under a new "
    "producer epoch.",
}


def rows_not_taken(
    transactional_id: str, failed: ProduceFailed, rules: TopicRules | None = None
) -> ProduceFailedError:
    """Args:
    rules: of the topic of `failed`, if they are known.
    """
    what = f"Kafka did not take all records of {transactional_id} ({failed.kind.value}): {failed} "
    data: dict[str, Any] = {"kind": failed.kind.value}
    if failed.kind is FailureKind.MESSAGE_REJECTED and rules and rules.sure_bytes < rules.max_bytes:
        what += (
            f"The brokers compress what they get for topic {failed.topic} again "
            f"(compression.type={rules.compression}), which makes larger what cannot be "
            f"compressed; then a batch may have {rules.max_bytes} bytes (max.message.bytes). "
        )
        data |= {"topic": failed.topic, "compression.type": rules.compression}
    return ProduceFailedError(
        f"{what}Nothing of the batch is visible.",
        remedy=_REMEDIES[failed.kind],
        data=data,
        # Without a change such a record fails each time.
        action=Action.FIX if failed.kind is FailureKind.MESSAGE_REJECTED else None,
    )
