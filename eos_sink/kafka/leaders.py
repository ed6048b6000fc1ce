"""Which transactions have to wait for the leaders of their partitions before they are ended.

Kafka 4 drops the marker for a partition that has no leader at that moment, and calls the
transaction complete (KAFKA-20734; seen with 4.3.0, not with 3.9.1). Its rows there hold readers up,
and the next transaction of the same producer ends them with its own: rows that were aborted become
visible, and rows that were committed may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.values import Place, Transaction

# A coordinator that does not answer takes all of a step's time, and without a look afterwards none
# of the transactions of the other coordinators counts as ended. The first broker that is asked may
# be the one that is silent.
_LOOK_S, _ANSWER_S = 3.0, 1.0


class Leaders:
    """Knows the partitions of the transactions that were described last."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._places: dict[Transaction, frozenset[Place]] = {}
        self._warned: frozenset[Place] = frozenset()

    def forget(self) -> None:
        self._places.clear()

    def remember(self, transaction: Transaction, places: Iterable[Place]) -> None:
        self._places[transaction] = frozenset(places)

    def knows(self, transaction: Transaction) -> bool:
        return transaction in self._places

    @property
    def described_ids(self) -> frozenset[str]:
        """The transactional ids whose coordinators have answered, whichever transaction is theirs
        now."""
        return frozenset(each.transactional_id for each in self._places)

    def find_missing(
        self, transactions: Iterable[Transaction], deadline: Deadline
    ) -> frozenset[Transaction]:
        """Those with a partition that has no leader now, or all if no broker says so. A topic that
        was deleted or may not be described, and a transaction that is not known, need none."""
        places = {each: self._places.get(each, frozenset()) for each in transactions}
        without = self._find_places(frozenset().union(*places.values()), deadline)
        if without is None:
            return frozenset(places)
        self._warn(without)
        return frozenset(each for each, of_one in places.items() if of_one & without)

    def find_ended_leaderless(
        self, ended: Iterable[Transaction], deadline: Deadline
    ) -> frozenset[Transaction]:
        """Those that were just ended whose partitions have lost their leader meanwhile, or may
        have: Kafka may have forgotten to end them there."""
        known = {each: self._places.get(each, frozenset()) for each in ended}
        places = frozenset[Place]().union(*known.values())
        look = Deadline(max(deadline.left, _LOOK_S))
        without = retry_until(
            look,
            lambda: self._find_places(places, look.within(_ANSWER_S)),
            lambda answer: answer is not None,
        )
        if without is None:
            # No broker says that they have kept their leaders.
            without = places
        if not without:
            return frozenset()
        LOGGER.error(
            "%s: no leader, or no broker that names it, since transactions that have written there "
            "were ended. Kafka 4 may have forgotten to end them there. The query's next start "
            "looks, and ends them as they were ended elsewhere.",
            _name(without),
        )
        return frozenset(each for each, places in known.items() if places & without)

    def _find_places(self, places: frozenset[Place], deadline: Deadline) -> frozenset[Place] | None:
        """Those without a leader; None: no broker answers."""
        if not places:
            return frozenset()
        topics = {topic for topic, _ in places}
        leaders = self._wire.run(self._wire.fetch_leaders, topics, deadline)
        if leaders is None:
            return None
        return frozenset(place for place in places if leaders.get(place, 0) < 0)

    def _warn(self, places: frozenset[Place]) -> None:
        """Once for each set of partitions."""
        if places and places != self._warned:
            LOGGER.warning(
                "%s: no leader. The transactions that have written there are ended when there is "
                "one, because Kafka 4 would forget to end them there. Start the brokers that have "
                "their replicas; do not end them with kafka-transactions.sh.",
                _name(places),
            )
        self._warned = places


def _name(places: Iterable[Place]) -> str:
    return ", ".join(f"{topic}[{partition}]" for topic, partition in sorted(places))
