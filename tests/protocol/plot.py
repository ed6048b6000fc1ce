"""What happens to the users of `tests.protocol.users`, and the options with which they write."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eos_sink.ops.resolve import Choice
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import Numbering
from tests.protocol.scene import OF_SOURCE, OF_START, ZOMBIES, Fault, Scene, Strike
from tests.protocol.world import TOPIC, World

REJECTED = "rejected"
"""The dead letter topic."""
LARGEST = 100_000
"""Bytes of a record that the topic takes."""
_INLINE = (0, 60, 65_536)
_TIMEOUTS = (60_000, 300_000)
_KINDS = (
    (Numbering.ONCE, Numbering.ONCE),
    (Numbering.ONCE, Numbering.ONCE),
    (Numbering.VERSION, Numbering.VERSION),
    (Numbering.STREAM,),
    (Numbering.STREAM,),
    (Numbering.FOREACH,),
    (Numbering.FOREACH,),
)
# Nothing of a user hangs, and its session lives.
_LEFT_OUT = {Fault.KILL_RUN, *ZOMBIES, Fault.TOPIC_AGAIN, *OF_SOURCE, *OF_START}
FAULTS = [each for each in Fault if each not in _LEFT_OUT]


@dataclass(frozen=True)
class Plot:
    """What happens in a story.

    Attributes:
        kinds: of the writes of each user, in turns.
        inline: the option `eos.inline.bytes`.
        timeout_ms: the option `eos.transaction.timeout.ms`.
        writes: of each user; the batches of a query.
        rejects: whether the topic refuses a row of each write.
        result_bytes: `spark.driver.maxResultSize`, as far as it is about inlined rows.
        choice: what an operator prefers, where an error offers it among other things.
    """

    strikes: tuple[Strike, ...] = ()
    kinds: tuple[Numbering, ...] = (Numbering.ONCE, Numbering.ONCE)
    inline: int = 0
    timeout_ms: int = 60_000
    writes: int = 2
    rejects: bool = False
    result_bytes: int | None = None
    choice: Choice | None = None

    @staticmethod
    def of(seed: int) -> Plot:
        chance = random.Random(seed)
        kinds = chance.choice(_KINDS)
        at, strikes = chance.randrange(150), []
        for _ in range(chance.randrange(1, 6)):
            delay = chance.choice((3, 10, 40, 200))
            strikes.append(Strike(chance.choice(faults_of(kinds)), at, delay))
            # Most faults matter while an earlier one lasts.
            at += chance.randrange(chance.choice((2, 12, 100)))
        return Plot(
            tuple(strikes),
            kinds,
            chance.choice(_INLINE),
            chance.choice(_TIMEOUTS),
            writes=4 if len(kinds) == 1 else 2,
            rejects=chance.random() < 0.3,
            result_bytes=chance.choice((*[None] * 6, 100)),
            choice=chance.choice((None, Choice.ACCEPT, Choice.FORGET)),
        )


def faults_of(kinds: Sequence[Numbering]) -> list[Fault]:
    """Two queries must not run at once under one identity."""
    apart = len(kinds) > 1 and Numbering.STREAM in kinds
    return [each for each in FAULTS if not (apart and each is Fault.RIVAL)]


class SharedScene(Scene):
    """The scene of a plot, with the options that its users have now.

    Attributes:
        running: how many writes there are now, each within a call of the one before.
    """

    def __init__(self, plot: Plot) -> None:
        super().__init__(World([], arrow_rows=LARGEST), plot.strikes, plot.result_bytes)
        self.plot, self.running = plot, 0
        self._given = {
            "kafka.bootstrap.servers": "nowhere:1",
            "topic": TOPIC,
            "eos.transaction.timeout.ms": str(plot.timeout_ms),
            "eos.inline.bytes": str(plot.inline),
        }
        if Numbering.STREAM in plot.kinds:
            self._given["eos.id"] = "story"
        self.reject(False)
        self.world.cluster.topics[TOPIC].settings["max.message.bytes"] = str(LARGEST)
        self.world.cluster.create_topic(REJECTED)

    def begin(self) -> bool:
        """A write or a query begins; whether the query gets a new checkpoint."""
        if self.running:
            return False
        pending, self.pending = self.pending, []
        if Fault.OTHER_OPTIONS in pending:
            given = self._given
            given["eos.inline.bytes"] = _after(_INLINE, given["eos.inline.bytes"])
            timeout = given["eos.transaction.timeout.ms"]
            given["eos.transaction.timeout.ms"] = _after(_TIMEOUTS, timeout)
            self.reject("eos.dead.letter.topic" not in given)
        if Fault.WEEK in pending:
            self.heal()
            self.world.a_week_passes()
        return Fault.NEW_CHECKPOINT in pending

    def reject(self, on: bool) -> None:
        """Name a dead letter topic, or no longer."""
        given = self._given
        given.pop("eos.dead.letter.topic", None)
        if on:
            given["eos.dead.letter.topic"] = REJECTED
        stream = "eos.id" in given
        self.world.options = parse_options(given) if stream else parse_batch_options(given).sink

    def visible(self) -> Counter[bytes]:
        """How often each row is visible, in its topic or as a dead letter."""
        rejected = self.world.cluster.read_committed(REJECTED)
        return Counter([*self.world.visible(), *(each.value or b"" for each in rejected)])


def _after(choices: Sequence[int], now: str) -> str:
    return str(choices[(choices.index(int(now)) + 1) % len(choices)])
