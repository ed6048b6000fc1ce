"""A query that Spark starts again whatever the error, with plots of random faults."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from eos_sink.protocol.model import Numbering
from tests.protocol.checkpoint import Checkpoint
from tests.protocol.explore import FAULTS, Story
from tests.protocol.scene import Strike
from tests.protocol.world import Batch, World, batch_options, options

_LONG = 200
# Two transactions, one with a small task, none with rows, and only small ones.
BATCHES: list[Batch] = [
    [[b"a".ljust(_LONG)], [b"b".ljust(_LONG), b"c"]],
    [[b"d"], [b"e".ljust(_LONG)]],
    [[], []],
    [[b"f"], [b"g"]],
    [[b"h"], []],
]


@dataclass(frozen=True)
class StreamPlot:
    """What happens to the query.

    Attributes:
        foreach: it writes within foreachBatch.
        inline: the option `eos.inline.bytes`.
        same_jvm: a run after one that failed uses its worker processes again.
    """

    strikes: tuple[Strike, ...] = ()
    foreach: bool = False
    inline: int = 0
    same_jvm: bool = False

    @staticmethod
    def of(seed: int) -> StreamPlot:
        chance = random.Random(seed)
        at, strikes = chance.randrange(250), []
        for _ in range(chance.randrange(1, 6)):
            strikes.append(Strike(chance.choice(FAULTS), at, chance.choice((-1, 3, 10, 40, 200))))
            at += chance.randrange(chance.choice((2, 12, 100)))
        inline = chance.choice((0, 60, 65_536))
        return StreamPlot(tuple(strikes), chance.random() < 0.3, inline, chance.random() < 0.5)


@dataclass
class StreamStory:
    """A plot, played until the query has come to the end of its input."""

    plot: StreamPlot
    met: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def play(self) -> StreamStory:
        numbering = Numbering.FOREACH if self.plot.foreach else Numbering.STREAM
        named = {"eos.id": "story", "eos.inline.bytes": str(self.plot.inline)}
        given = batch_options(**named) if self.plot.foreach else options(**named)
        # A copy, to which the story adds a last batch.
        world = World(list(BATCHES), options=replace(given))
        world.checkpoint = Checkpoint(f"{numbering.value}stream-1")
        story = Story(world, self.plot.strikes, self.plot.same_jvm).play()
        self.met.update(type(each).__name__ for each in story.errors)
        self.violations += story.verdict
        self.gates = story.gates
        return self
