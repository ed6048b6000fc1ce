"""The errors of transactions that Kafka has forgotten to end in a partition (KAFKA-20734)."""

from __future__ import annotations

from collections.abc import Iterable

from eos_sink.errors import CommitFailedError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.protocol.values import Hanging, Place


def outcome_unknown(names: QueryNames, hanging: Hanging) -> OperatorNeededError:
    """Nothing tells whether its rows are decided."""
    place = f"--topic {hanging.topic} --partition {hanging.partition}"
    return OperatorNeededError(
        f"Query {names.query}: {hanging} was ended while the partition had no leader. Kafka forgot "
        "it there (KAFKA-20734), and nothing tells any more whether it was committed or aborted. "
        "Nothing was written.",
        remedy=f"Copy its rows: kafka-console-consumer.sh {place} --offset {hanging.start} shows "
        f"them. Abort it: kafka-transactions.sh abort {place} --start-offset {hanging.start}. "
        "Write the rows again with another producer if they are of a decided batch (eos-sink "
        "status names the latest one), and only then. Then start the query again.",
        data={
            "topic": hanging.topic,
            "partition": hanging.partition,
            "offset": hanging.start,
            "transaction": hanging.transaction.transactional_id,
        },
    )


def unchecked(names: QueryNames, places: Iterable[Place]) -> CommitFailedError:
    """The driver would write where an earlier transaction of it may be open."""
    named = [f"{topic}[{partition}]" for topic, partition in sorted(places)]
    return CommitFailedError(
        f"Query {names.query}: {', '.join(named)} had no leader when the batch was planned, so an "
        "earlier transaction of the query may be open there that Kafka has forgotten to end "
        "(KAFKA-20734): this batch would end it, with its own outcome. Nothing of the batch is "
        "visible.",
        remedy="Start the query again when all partitions have leaders (kafka-topics.sh --describe "
        "--unavailable-partitions): it ends what is open.",
        data={"partitions": named},
    )
