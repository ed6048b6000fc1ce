"""Initialising the driver's id, which waits for the markers of its last transaction.

Kafka writes the marker of a partition without a leader when it has a leader again, and answers
InitProducerId with CONCURRENT_TRANSACTIONS until then.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import TypeGuard

from eos_sink.errors import ClusterError, EosSinkError, OutcomeUnknownError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, TopicDescription
from eos_sink.messages import Reason, stop
from eos_sink.protocol.values import ProducerIdentity, TransactionState, TransactionStatus

# For the text of an error, after the step's own deadline.
_EXPLAIN_S = 5.0
_ENDS_S = 0.5


def describe_driver(
    kafka: Kafka, names: QueryNames, deadline: Deadline, *, anew: bool = False
) -> TransactionState:
    """The state of the driver's id, which `DecisionRegister.open` changes; see
    `TransactionControl.describe`."""
    return kafka.control().describe([names.driver], deadline, anew=anew)[names.driver]


def await_end(kafka: Kafka, names: QueryNames, deadline: Deadline) -> TransactionState | None:
    """Wait a little for the markers of the driver's last transaction: librdkafka asks for the next
    epoch only once in half a second. Return the state, if it is known."""
    from eos_sink.kafka.retry import retry_until

    soon = deadline.within(_ENDS_S)
    with contextlib.suppress(OutcomeUnknownError):
        return retry_until(
            soon, lambda: describe_driver(kafka, names, soon), lambda state: not state.is_ending
        )
    return None


def describe_opened(
    kafka: Kafka, names: QueryNames, before: TransactionState | None, deadline: Deadline
) -> ProducerIdentity:
    """The producer that the driver's id has after an init.

    That is always another one than before. A coordinator that was replaced and cut off from the
    others says otherwise, and may still name itself.

    Raises:
        OutcomeUnknownError: none says which, by the deadline.
    """
    from eos_sink.kafka.retry import retry_until

    was, asked = before and before.transaction, itertools.count()

    def ask() -> TransactionState:
        return describe_driver(kafka, names, deadline, anew=next(asked) > 0)

    def is_new(state: TransactionState) -> bool:
        return state.status is not TransactionStatus.MISSING and state.transaction != was

    state = retry_until(deadline, ask, is_new)
    if not is_new(state):
        raise stop(Reason.OLD_COORDINATOR, driver=names.driver)
    return ProducerIdentity(state.transaction.producer_id, state.transaction.epoch)


@contextlib.contextmanager
def explain_wait(kafka: Kafka, names: QueryNames) -> Iterator[None]:
    """Name the partitions that the driver's id waits for, if it could not be initialised in time.

    Raises:
        OutcomeUnknownError: with `partitions` in its data, if there are any.
    """
    try:
        yield
    except (OutcomeUnknownError, ClusterError) as error:
        # librdkafka's last error is CONCURRENT_TRANSACTIONS, which is none of its timeouts.
        waits = None
        with contextlib.suppress(Exception):
            waits = _explain(kafka, names)
        if waits is None:
            raise
        raise waits from error


def waits_for_leader(error: BaseException) -> TypeGuard[OutcomeUnknownError]:
    """True if this is an error of `explain_wait`."""
    return isinstance(error, OutcomeUnknownError) and "partitions" in error.data


def _explain(kafka: Kafka, names: QueryNames) -> EosSinkError | None:
    soon = Deadline(_EXPLAIN_S)
    state = describe_driver(kafka, names, soon)
    if not state.is_ending or not state.partitions:
        return None
    places = sorted(state.partitions)
    topics = kafka.describe_topics([topic for topic, _ in places], soon, settings=False)
    shown = [topic for topic in topics.values() if isinstance(topic, TopicDescription)]
    leaderless = {(topic.name, number) for topic in shown for number in topic.leaderless}
    without = [place for place in places if place in leaderless]
    waits = [f"{topic}[{number}]" for topic, number in without or places]
    return stop(
        Reason.NO_LEADER if without else Reason.NO_MARKERS,
        became=_became(state),
        partitions=waits,
        status=state.status.value,
    )


def _became(state: TransactionState) -> str:
    if state.status is TransactionStatus.PREPARE_COMMIT:
        return "Kafka has committed the driver's last transaction, so its batch is decided."
    return "Kafka has aborted the driver's last transaction: nothing of that is or becomes visible."
