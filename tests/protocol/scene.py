"""What happens in a story of `tests.protocol.users`: its cluster, and troubles at port calls."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from unittest import mock

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import Numbering
from eos_sink.task import writer
from tests.fakes.cluster import Coordinators
from tests.fakes.kafka import LOG_TOPIC, FakeKafka
from tests.fakes.log import PartitionLog
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.spark import Gate
from tests.protocol.world import TOPIC, World

MOST_RIVALS = 2
REJECTED = "rejected"
"""The dead letter topic."""
LARGEST = 100_000
"""Bytes of a record that the topic takes."""
_LOCAL = {"close", "begin", "produce", "state", "identity"}
_INLINE = (0, 60, 65_536)
_TIMEOUTS = (60_000, 300_000)


class Trouble(Enum):
    KILL = "the process of this call dies"
    LOSE_ANSWER = "the call takes effect and its answer is lost"
    TIME_OUT = "every open transaction times out"
    END_SESSION = "the session of the group's member ends"
    PASS_TIME = "a minute and more passes inside the call"
    NO_LEADER = "a partition of the topic has no leader for a while"
    TOO_FEW_REPLICAS = "a partition of the topic has fewer replicas in sync than it needs, for long"
    LOG_WITHOUT_LEADER = "the partition of the log has no leader for a while"
    LOG_TOO_FEW_REPLICAS = "the partition of the log has too few replicas in sync for a while"
    NO_COORDINATOR = "the transaction coordinator stands still for longer than a step"
    READ_ONLY_COORDINATOR = "the transaction coordinator may not write for longer than a step"
    NO_GROUP_COORDINATOR = "the group coordinator answers nothing for longer than a step"
    RIVAL = "another session writes, or the query is started a second time, inside the call"
    OTHER_LOG_WRITER = "a driver of another query dies, and its transaction stays open in the log"
    OTHER_PROCESSES = "Spark uses other processes of the session from now on"
    OTHER_PARTITIONS = "Spark splits rows into other partitions from now on"
    OTHER_OPTIONS = "the next write, or start of the query, has other options"
    SECOND_FRAME = "foreachBatch writes a second frame with the same options from now on"
    GROW = "the topic gets another partition"
    NEW_CHECKPOINT = "the query is started with a new checkpoint, when it has stopped"
    WEEK = "when no write runs, coordinators forget the ids, and the topic its rows"


_BETWEEN = (Trouble.OTHER_OPTIONS, Trouble.NEW_CHECKPOINT, Trouble.WEEK)
"""These happen when a write or a query begins."""

SHORT_S, LONG_S = 20, 130
"""A while, and longer than a step."""
_PARTITIONS = {
    Trouble.NO_LEADER: (TOPIC, "has_leader", SHORT_S),
    Trouble.TOO_FEW_REPLICAS: (TOPIC, "in_sync", LONG_S),
    Trouble.LOG_WITHOUT_LEADER: (LOG_TOPIC, "has_leader", SHORT_S),
    Trouble.LOG_TOO_FEW_REPLICAS: (LOG_TOPIC, "in_sync", SHORT_S),
}
_COORDINATORS = {
    Trouble.NO_COORDINATOR: Coordinators.TRANSACTIONS,
    Trouble.READ_ONLY_COORDINATOR: Coordinators.WRITES,
    Trouble.NO_GROUP_COORDINATOR: Coordinators.GROUP,
}


@dataclass(frozen=True)
class Blow:
    """A trouble at a gate, counted over all sessions."""

    trouble: Trouble
    at: int


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
    """

    blows: tuple[Blow, ...] = ()
    kinds: tuple[Numbering, ...] = (Numbering.ONCE, Numbering.ONCE)
    inline: int = 0
    timeout_ms: int = 60_000
    writes: int = 2
    rejects: bool = False
    result_bytes: int | None = None

    @staticmethod
    def of(seed: int) -> Plot:
        chance = random.Random(seed)
        kinds = chance.choice(_KINDS)
        at, blows = chance.randrange(150), []
        for _ in range(chance.randrange(1, 6)):
            blows.append(Blow(chance.choice(troubles_of(kinds)), at))
            # Most troubles matter while an earlier one lasts.
            at += chance.randrange(chance.choice((2, 12, 100)))
        return Plot(
            tuple(blows),
            kinds,
            chance.choice(_INLINE),
            chance.choice(_TIMEOUTS),
            writes=4 if len(kinds) == 1 else 2,
            rejects=chance.random() < 0.3,
            result_bytes=chance.choice((*[None] * 6, 100)),
        )


_KINDS = (
    (Numbering.ONCE, Numbering.ONCE),
    (Numbering.ONCE, Numbering.ONCE),
    (Numbering.ONCE, Numbering.VERSION),
    (Numbering.STREAM,),
    (Numbering.STREAM,),
    (Numbering.STREAM, Numbering.STREAM),
    (Numbering.FOREACH,),
    (Numbering.FOREACH, Numbering.FOREACH),
    (Numbering.FOREACH, Numbering.ONCE),
)


def troubles_of(kinds: Sequence[Numbering]) -> list[Trouble]:
    """Two queries must not run at once under one identity."""
    apart = len(kinds) > 1 and Numbering.STREAM in kinds
    return [each for each in Trouble if not (apart and each is Trouble.RIVAL)]


@dataclass
class Scene:
    """The cluster of a story, its gates, and the troubles that are left.

    Attributes:
        parts: into how many partitions Spark splits rows.
        turns: which of a session's processes Spark uses.
        second_frame: whether the function of `foreachBatch` writes one more frame.
        pending: what happens when the next write or query begins.
        running: how many writes there are now, each within a call of the one before.
        rivals: how many have written within a call of another.
        log_held_s: for how long other queries waited for the driver's transaction in the log.
    """

    plot: Plot
    world: World = field(init=False)
    gates: list[Gate] = field(default_factory=list)
    rival: Callable[[], None] = lambda: None
    parts: int = 2
    turns: int = 0
    second_frame: bool = False
    pending: list[Trouble] = field(default_factory=list)
    running: int = 0
    rivals: int = 0
    log_held_s: float = 0.0

    def __post_init__(self) -> None:
        self._given = {
            "kafka.bootstrap.servers": "nowhere:1",
            "topic": TOPIC,
            "eos.transaction.timeout.ms": str(self.plot.timeout_ms),
            "eos.inline.bytes": str(self.plot.inline),
        }
        if Numbering.STREAM in self.plot.kinds:
            self._given["eos.id"] = "story"
        self.world = World([])
        self._parse()
        self.world.cluster.topics[TOPIC].settings["max.message.bytes"] = str(LARGEST)
        self.world.cluster.create_topic(REJECTED)
        self._left = list(self.plot.blows)
        self._rivals = 0
        self._at = self.world.cluster.clock()
        self.world.cluster.clock.listen(self._watch_log)

    def process(self) -> FakeKafka:
        return FakeKafka(self.world.cluster, Process(self._step))

    def calm(self) -> None:
        """No trouble comes any more, and the last ones are over."""
        self._left.clear()
        self.pending.clear()
        self.heal()

    def heal(self) -> None:
        """A user waits until the brokers answer."""
        cluster = self.world.cluster
        cluster.silent_until.clear()
        cluster.elect_leaders()
        cluster.clock.advance(1)

    def begin(self) -> bool:
        """A write or a query begins; whether the query gets a new checkpoint."""
        if self.running:
            return False
        pending, self.pending = self.pending, []
        if Trouble.OTHER_OPTIONS in pending:
            given = self._given
            given["eos.inline.bytes"] = _after(_INLINE, given["eos.inline.bytes"])
            timeout = given["eos.transaction.timeout.ms"]
            given["eos.transaction.timeout.ms"] = _after(_TIMEOUTS, timeout)
            self.reject("eos.dead.letter.topic" not in given)
        if Trouble.WEEK in pending:
            self.heal()
            self.world.a_week_passes()
        return Trouble.NEW_CHECKPOINT in pending

    def reject(self, on: bool) -> None:
        """Name a dead letter topic, or no longer."""
        self._given.pop("eos.dead.letter.topic", None)
        if on:
            self._given["eos.dead.letter.topic"] = REJECTED
        self._parse()

    def visible(self) -> Counter[bytes]:
        """How often each row is visible, in its topic or as a dead letter."""
        rejected = self.world.cluster.read_committed(REJECTED)
        return Counter([*self.world.visible(), *(each.value or b"" for each in rejected)])

    def split(self, rows: Sequence[bytes], parts: int | None = None) -> list[list[bytes]]:
        """The rows as Spark splits them."""
        parts = parts or self.parts
        return [list(rows[number::parts]) for number in range(parts)]

    def _parse(self) -> None:
        stream = "eos.id" in self._given
        given = dict(self._given)
        self.world.options = parse_options(given) if stream else parse_batch_options(given).sink

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
        elif trouble in _COORDINATORS:
            cluster.silent_until[_COORDINATORS[trouble]] = cluster.clock() + LONG_S
        elif trouble in _PARTITIONS:
            topic, attribute, seconds = _PARTITIONS[trouble]
            setattr(cluster.create_topic(topic).partitions[0], attribute, False)
            cluster.leaders_return_at = cluster.clock() + seconds
        elif trouble is Trouble.OTHER_LOG_WRITER:
            self._block_log()
        elif trouble is Trouble.OTHER_PROCESSES:
            self.turns += 1
        elif trouble is Trouble.OTHER_PARTITIONS:
            self.parts = self.parts % 3 + 1
        elif trouble is Trouble.SECOND_FRAME:
            self.second_frame = True
        elif trouble is Trouble.GROW:
            partitions = cluster.topics[TOPIC].partitions
            partitions.append(PartitionLog(TOPIC, len(partitions)))
        elif trouble in _BETWEEN:
            self.pending.append(trouble)
        elif self._rivals < MOST_RIVALS:
            self._rivals += 1
            self.rivals += 1
            try:
                self.rival()
            finally:
                self._rivals -= 1

    def _watch_log(self) -> None:
        """Measure for how long the query's driver keeps other queries waiting for the log."""
        now = self.world.cluster.clock()
        waited, self._at = now - self._at, now
        (log,) = self.world.cluster.create_topic(LOG_TOPIC).partitions
        blocking = log.all_from(log.last_stable)[:1]
        if blocking and blocking[0].txn.transactional_id == self.world.options.names.driver:
            self.log_held_s += waited

    def _block_log(self) -> None:
        cluster, name = self.world.cluster, "eos-sink-another-0123456789-driver"
        identity = cluster.coordinator.init(name, 30_000)
        (log,) = cluster.create_topic(LOG_TOPIC).partitions
        log.append(cluster.coordinator.open(name, identity), b"another", b"", (), cluster.clock.ms)


def _after(choices: Sequence[int], now: str) -> str:
    return str(choices[(choices.index(int(now)) + 1) % len(choices)])


@contextlib.contextmanager
def time_of(scene: Scene) -> Iterator[None]:
    """Deadlines follow the clock of the cluster, and tasks open their producers when they begin to,
    so that a story repeats."""

    def begin(opening: writer._Opening) -> None:
        begun = opening._begun = Future()
        opening._run(begun)

    defaults = mock.patch.object(Deadline.__init__, "__defaults__", (scene.world.cluster.clock,))
    with defaults, mock.patch.object(writer._Opening, "begin", begin):
        yield
