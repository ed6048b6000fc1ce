"""The errors of transactions that Kafka has forgotten to end in a partition (KAFKA-20734)."""

from __future__ import annotations

from collections.abc import Iterable

from eos_sink.errors import OperatorNeededError, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.protocol.model import Decision
from eos_sink.protocol.operator_errors import ACCEPT, resolve_command
from eos_sink.protocol.values import Hanging, Place


def outcome_unknown(
    names: QueryNames, log: str, hanging: Hanging, decision: Decision | None, *, is_repeated: bool
) -> OperatorNeededError:
    """Nothing tells whether its rows are visible elsewhere.

    Args:
        decision: that of a task's batch; None for the driver, whose transactions no record names.
        is_repeated: a replay of the batch may follow.
    """
    brokers = "--bootstrap-server HOST:PORT"
    place = f"--topic {hanging.topic} --partition {hanging.partition}"
    copy = f"kafka-console-consumer.sh {brokers} {place} --offset {hanging.start}"
    abort = f"kafka-transactions.sh {brokers} abort {place} --start-offset {hanging.start}"
    task = names.parse_task(hanging.transaction.transactional_id)
    if decision is None or task is None:
        then = (
            "Write those of them again, with another producer, that are of a decided batch "
            "(eos-sink explain shows one) and not in the topic behind that offset. Then start the "
            "query again."
        )
    elif is_repeated:
        then = (
            f"Before that, see how it has ended in other partitions: {resolve_command(names, log)} "
            f"shows its marker (task {task.partition}). If the marker is committed, write the "
            f"copied rows again with another producer, and add {ACCEPT} to that command, since the "
            "replay would write all rows of the task. If it is not, write none: the replay writes "
            "them, or an error says to. Then start the query again."
        )
    else:
        then = (
            "Write the rows again with another producer: they were decided, and no replay of their "
            "batch follows. Then start the query again."
        )
    batch = f" Its rows are of {decision.batch}." if decision else ""
    return OperatorNeededError(
        f"Query {names.query}: {hanging} was ended while the partition had no leader. Kafka forgot "
        "it there (KAFKA-20734), and nothing tells any more whether it was committed or aborted."
        f"{batch} Nothing was written.",
        remedy=f"Copy its rows: {copy} shows them. Abort it: {abort}. {then}",
        data={
            "topic": hanging.topic,
            "partition": hanging.partition,
            "offset": hanging.start,
            "transaction": hanging.transaction.transactional_id,
            "batch": decision.batch.batch if decision else None,
        },
    )


def unseen_partitions(names: QueryNames, places: Iterable[Place]) -> OutcomeUnknownError:
    """The next transactions of the query could end, with their outcome, what is open there."""
    named = [f"{topic}[{partition}]" for topic, partition in sorted(places)]
    return OutcomeUnknownError(
        f"Query {names.query}: {', '.join(named)} had no leader that answers, or an open "
        "transaction whose coordinator does not answer. Kafka may have forgotten to end an earlier "
        "transaction of the query there (KAFKA-20734), and its next one would end that with its "
        "own outcome. "
        "Nothing new was written; what is decided becomes visible where there are leaders.",
        remedy="Start a broker that has a copy of each partition which kafka-topics.sh --describe "
        "--unavailable-partitions shows. Then start the query again: it ends what is open.",
        data={"partitions": named},
    )
