"""Jobs that write without a query, faults at their port calls, and users who do as errors say.

Sessions share one identity. A user has some writes; after an error the user carries out its
`Action`, so at the end every row of every write has to be visible once.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import EosSinkError, OutcomeUnknownError
from eos_sink.options import parse_batch_options
from eos_sink.protocol.model import BatchId, Numbering, Run, TaskReport
from eos_sink.spark.remedies import Stage, add_batch_remedy
from eos_sink.task.writer import TaskWriter
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.spark import Gate
from tests.protocol.world import TOPIC, World

Parts = Sequence[Sequence[bytes]]
MOST_RIVALS = 2
_LOCAL = {"close", "begin", "produce", "state", "identity"}
_NUMBERS = itertools.count(1)


class Trouble(Enum):
    KILL = "the process of this call dies"
    LOSE_ANSWER = "the call takes effect and its answer is lost"
    TIME_OUT = "every open transaction times out"
    END_SESSION = "the session of the group's member ends"
    PASS_TIME = "a minute and more passes inside the call"
    MUTE = "the transaction coordinator answers no EndTxn for longer than a step"
    NO_LEADER = "a partition of the topic has no leader for a while"
    RIVAL = "another session begins its next write, and comes to its end, inside the call"


@dataclass(frozen=True)
class Blow:
    """A trouble at a gate, counted over all sessions."""

    trouble: Trouble
    at: int


@dataclass(frozen=True)
class Plot:
    """What happens in a story.

    Attributes:
        kinds: of the writes of each session, in turns.
        inline: the option `eos.inline.bytes`.
        timeout_ms: the option `eos.transaction.timeout.ms`.
    """

    blows: tuple[Blow, ...] = ()
    kinds: tuple[Numbering, ...] = (Numbering.ONCE, Numbering.ONCE)
    inline: int = 0
    timeout_ms: int = 60_000
    writes: int = 2

    @staticmethod
    def of(seed: int) -> Plot:
        chance = random.Random(seed)
        single = chance.random() < 0.6
        kinds = (Numbering.ONCE, Numbering.ONCE if single else Numbering.VERSION)
        # A version that has lost rows stops single writes until its own user writes it again, who
        # cannot while a rival's write stands inside that user's call.
        troubles = [each for each in Trouble if single or each is not Trouble.RIVAL]
        blows = (
            Blow(chance.choice(troubles), chance.randrange(240))
            for _ in range(chance.randrange(1, 6))
        )
        return Plot(
            tuple(sorted(blows, key=lambda blow: blow.at)),
            kinds,
            chance.choice((0, 60, 65_536)),
            chance.choice((60_000, 300_000)),
        )


@dataclass
class Scene:
    """The cluster of a story, its gates, and the troubles that are left."""

    plot: Plot
    world: World = field(init=False)
    gates: list[Gate] = field(default_factory=list)
    rival: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        given = {
            "kafka.bootstrap.servers": "nowhere:1",
            "topic": TOPIC,
            "eos.transaction.timeout.ms": str(self.plot.timeout_ms),
            "eos.inline.bytes": str(self.plot.inline),
        }
        self.world = World([], options=parse_batch_options(given).sink)
        self._left = list(self.plot.blows)
        self._rivals = 0

    def process(self) -> FakeKafka:
        process = Process(self._step)
        return FakeKafka(self.world.cluster, process)

    def calm(self) -> None:
        """No trouble comes any more, and the last ones are over."""
        self._left.clear()
        self.heal()

    def heal(self) -> None:
        """A user waits until the brokers answer."""
        cluster = self.world.cluster
        cluster.mute_until = 0.0
        cluster.elect_leaders()
        cluster.clock.advance(1)

    def _step(self, name: str, moment: Moment) -> None:
        number = len(self.gates)
        self.gates.append(Gate(name, moment))
        while self._left and self._left[0].at <= number:
            self._strike(self._left.pop(0).trouble, name, moment)

    def _strike(self, trouble: Trouble, name: str, moment: Moment) -> None:
        cluster = self.world.cluster
        if trouble is Trouble.KILL:
            raise Killed(name)
        if trouble is Trouble.LOSE_ANSWER:
            if moment is Moment.AFTER and name.partition(".")[2] not in _LOCAL:
                raise OutcomeUnknownError(f"The answer to {name} is lost.", remedy="")
        elif trouble is Trouble.TIME_OUT:
            cluster.coordinator.time_out()
        elif trouble is Trouble.END_SESSION:
            cluster.groups.end_session(self.world.options.names.group)
        elif trouble is Trouble.PASS_TIME:
            cluster.clock.advance(70)
        elif trouble is Trouble.MUTE:
            cluster.mute_until = cluster.clock() + 130
        elif trouble is Trouble.NO_LEADER:
            cluster.topics[TOPIC].partitions[0].has_leader = False
            cluster.leaders_return_at = cluster.clock() + 20
        elif self._rivals < MOST_RIVALS:
            self._rivals += 1
            try:
                self.rival()
            finally:
                self._rivals -= 1


class Session:
    """A session of Spark, with the processes that it keeps for its writes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._options = scene.world.options
        self._run = Run("host-a", next(_NUMBERS), 0, self._options.origin)
        self._renew_planner()
        self._renew_committer()

    def write(self, numbering: Numbering, source: str, number: int, parts: Parts) -> None:
        """One `df.write`, with what Spark does after an error.

        Raises:
            EosSinkError: what the user sees.
            Killed: a worker process has died, of which Spark says no more than that.
        """
        if not self._plans.process.alive:
            self._renew_planner()
        if not self._commits.process.alive:
            self._renew_committer()
        with add_batch_remedy(Stage.PLAN):
            plan = self._planner.plan()
        once = numbering is Numbering.ONCE
        batch = BatchId.numbered_by(numbering, source, plan.token.seq + 1 if once else number)
        reports: list[TaskReport] = []
        try:
            with add_batch_remedy(Stage.TASK, batch, plan.token):
                for partition, rows in enumerate(parts):
                    data = [pa.RecordBatch.from_pydict({"value": list(rows)})] if rows else []
                    task = TaskWriter(self._scene.process(), self._options, plan)
                    reports.append(task.write(batch, partition, data))
            with add_batch_remedy(Stage.COMMIT, batch, plan.token):
                self._committer.commit(reports)
        except (EosSinkError, Killed):
            if not self._commits.process.alive:
                self._renew_committer()
            with contextlib.suppress(EosSinkError, Killed):
                self._committer.abort(reports, plan.token)
            raise

    def _renew_planner(self) -> None:
        self._plans = self._scene.process()
        self._planner = Planner(self._plans, self._options, self._run)

    def _renew_committer(self) -> None:
        self._commits = self._scene.process()
        clock = self._scene.world.cluster.clock
        self._committer = Committer(self._commits, self._options, lambda: clock.ms)
