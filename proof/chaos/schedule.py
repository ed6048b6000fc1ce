"""The schedule of faults: an endless, pure function of the seed.

Cards are dealt from shuffled decks, so that each kind and each point has its turn before any has
its second one. What happens is drawn before the run, never from what is seen in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eos_sink_lab.testing import FaultPoint
from proof.chaos.kinds import (
    DURATIONS,
    IN_THE_CLUSTER,
    OF_PROCESSES_BELOW_THE_JVM,
    OF_THE_CHECKPOINT,
    REQUESTS,
    Input,
    Kind,
    Master,
    Way,
    points_for,
)

T = TypeVar("T")

_STRETCH = 7
"""Faults in a row that a driver's master stays the same for."""
_PAIRED = 0.2
"""How often a fault in the cluster is joined by a driver that is killed at the same time."""
_REST_S = (1.0, 4.0)
_TARGETS = 6
_TOGETHER = (Kind.KILL_DRIVER, Kind.KILL_DRIVER_ANYTIME)

# How often each kind is in a deck; a deck of the local master has no executors to kill.
_COPIES: dict[Kind, int] = dict.fromkeys(Kind, 1) | {
    Kind.KILL_DRIVER: 6,
    Kind.KILL_DRIVER_ANYTIME: 2,
    Kind.ZOMBIE: 2,
    Kind.KILL_BROKER: 2,
    Kind.PAUSE_BROKER: 2,
    Kind.LATE_REQUEST: 2,
    Kind.KILL_EXECUTOR: 3,
    Kind.LOSE_RUNNING: 2,
    Kind.LOSE_KILLED: 6,
    Kind.RESTORE_OLD: 2,
    Kind.HALVE_CHECKPOINT: 3,
}


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: what happens.
        point: where, if it strikes at a point of the protocol.
        target: which broker, controller or partition, as a number that is taken modulo theirs.
        duration_s: how long it lasts.
        after_s: how long after the moment that its step begins, if it needs no point.
        request: Kafka's name of the request that arrives late.
    """

    kind: Kind
    point: FaultPoint | None = None
    target: int = 0
    duration_s: float = 0.0
    after_s: float = 0.0
    request: str = ""


@dataclass(frozen=True)
class Step:
    """One fault or two at once, after which the run recovers.

    Attributes:
        number: from 0.
        rest_s: how long the run is left in peace before.
        faults: at the same time.
        master: what a driver that is started from here on runs on.
    """

    number: int
    rest_s: float
    faults: tuple[Fault, ...]
    master: Master


def schedule(
    seed: int,
    masters: Sequence[Master] = tuple(Master),
    source: Input = Input.FILES,
    way: Way = Way.FORMAT,
) -> Iterator[Step]:
    """The steps of a run; a run takes as many as it has time for.

    Args:
        seed: the same seed gives the same steps.
        masters: what drivers run on, in turns.
        source: what the query reads.
        way: how it writes.
    """
    chance = random.Random(seed)
    deal = _Dealer(chance, source, way)
    number = 0
    while True:
        for master in masters:
            for place in range(_STRETCH):
                # The first one ends the driver, so that the next one starts with its master.
                changes = place == 0 and len(masters) > 1
                kind = Kind.KILL_DRIVER if changes else deal.kind(master)
                faults = [_fault(chance, deal, kind)]
                if kind in IN_THE_CLUSTER and chance.random() < _PAIRED:
                    faults.append(_fault(chance, deal, chance.choice(_TOGETHER)))
                yield Step(number, round(chance.uniform(*_REST_S), 2), tuple(faults), master)
                number += 1


class _Dealer:
    """Shuffled decks, each dealt to its end before it is shuffled again."""

    def __init__(self, chance: random.Random, source: Input, way: Way) -> None:
        self._chance, self._source, self._way = chance, source, way
        self._decks: dict[object, list[object]] = {}

    def kind(self, master: Master) -> Kind:
        return self._next(master, lambda: _kinds(master, self._source, self._way))

    def point(self, kind: Kind) -> FaultPoint | None:
        points = points_for(kind, self._way)
        return self._next(kind, lambda: points) if points else None

    def request(self, kind: Kind) -> str:
        return self._next("request", lambda: REQUESTS) if kind is Kind.LATE_REQUEST else ""

    def _next(self, name: object, cards: Callable[[], Sequence[T]]) -> T:
        deck = self._decks.setdefault(name, [])
        if not deck:
            deck.extend(cards())
            self._chance.shuffle(deck)
        return deck.pop()  # type: ignore[return-value]


def _kinds(master: Master, source: Input, way: Way) -> list[Kind]:
    without = {Kind.KILL_EXECUTOR} if master is Master.LOCAL else set()
    without |= OF_THE_CHECKPOINT if source is Input.FILES else set(Kind) - OF_THE_CHECKPOINT
    without |= OF_PROCESSES_BELOW_THE_JVM if way is Way.FUNCTION else set()
    return [kind for kind, copies in _COPIES.items() if kind not in without for _ in range(copies)]


def _fault(chance: random.Random, deal: _Dealer, kind: Kind) -> Fault:
    return Fault(
        kind=kind,
        point=deal.point(kind),
        target=chance.randrange(_TARGETS),
        duration_s=round(chance.uniform(*DURATIONS.get(kind, (0.0, 0.0))), 2),
        after_s=round(chance.uniform(0.0, 1.5), 2),
        request=deal.request(kind),
    )
