"""Looks for what Kafka has forgotten to end (KAFKA-20734), where a producer would go on beside it.

The next transaction of the same producer ends it with its own outcome. `eos_sink.driver.hanging`
ends it before a plan; a repeated attempt only looks.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from eos_sink.errors import FailureKind
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Decision
from eos_sink.protocol.values import (
    COMMITTED,
    Hanging,
    Position,
    ProduceFailed,
    Transaction,
    TransactionStatus,
)
from eos_sink.sink_options import SinkOptions

_LOGGER = logging.getLogger("eos_sink.driver")
# What is left of a step may be too short for an answer, and without one nothing is known.
LOOK_S = 3.0


def topics_of(options: SinkOptions, decision: Decision | None) -> frozenset[str]:
    """The topics that the query is known to write. A column may name more."""
    return options.named_topics | frozenset(decision.topics if decision else ())


def check_ended(
    kafka: Kafka, transactional_id: str, topics: Iterable[str], deadline: Deadline
) -> None:
    """Check that the transaction of an earlier attempt, which opening the id has aborted, is open
    nowhere: the commit of the next one would make its rows visible, too.

    Raises:
        ProduceFailed: it is, or a partition cannot be looked at. The next plan ends it.
    """
    from eos_sink.kafka.retry import retry_until

    control, answers = kafka.control(), Deadline(deadline.left + LOOK_S)
    # A broker that restarts soon leads its partitions again.
    look = retry_until(
        deadline,
        lambda: control.find_hanging(topics, [transactional_id], "", answers),
        lambda look: not look.unknown,
    )
    places = {(each.topic, each.partition) for each in look.hanging} | look.unknown
    for topic, partition in sorted(places):
        raise ProduceFailed(
            f"An earlier attempt of {transactional_id} is open in {topic}[{partition}], or may be: "
            "that had no leader when it was aborted (KAFKA-20734).",
            FailureKind.DELIVERY_FAILED,
            topic,
        )


def end_in_log(kafka: Kafka, ids: Collection[str], home: Position, deadline: Deadline) -> None:
    """End the ids' last transactions in the decision log if Kafka has forgotten to: no one can read
    past them there. Before an id is initialised, which takes its state away, and ends what is open:
    so wait for the partition's leader.

    Args:
        ids: that the caller writes the log with.
        home: in the query's partition of the log.

    Raises:
        OutcomeUnknownError: the partition has no leader, or there was no answer.
        ClusterError: a permission is missing.
    """
    from eos_sink.kafka.retry import retry_until

    control = kafka.control()
    look = retry_until(
        deadline,
        lambda: control.find_hanging([home.topic], ids, "", deadline),
        lambda look: (home.topic, home.partition) not in look.unknown,
    )
    if (home.topic, home.partition) in look.unknown:
        raise stop(Reason.LOG_NOT_SEEN, home=home)
    for each in look.hanging:
        ended = each.state.transaction
        if ended == each.transaction and each.state.status in COMMITTED:
            commit = True
        # Nothing has written there since, so it was this one that was aborted.
        elif each.state.status is TransactionStatus.COMPLETE_ABORT and ended in (
            each.transaction,
            next_epoch(each.transaction),
        ):
            commit = False
        else:
            continue
        end_as_elsewhere(kafka, each, commit, deadline)


def end_as_elsewhere(kafka: Kafka, hanging: Hanging, commit: bool, deadline: Deadline) -> bool:
    """Write the marker that is missing. False: the partition's leader did not take it."""
    ended = kafka.control().end_hanging(hanging, commit, deadline)
    if ended:
        _LOGGER.warning(
            "%s was %s, and Kafka forgot it there because the partition had no leader "
            "(KAFKA-20734). It is ended there now.",
            hanging,
            "committed" if commit else "aborted",
        )
    return ended


def next_epoch(transaction: Transaction) -> Transaction:
    return replace(transaction, epoch=transaction.epoch + 1)
