"""A cluster, faults at the port calls of the sessions that use it, and the zombies they leave."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from tenacity import nap

from eos_sink.decision_log.opening import Opened, Opening
from eos_sink.driver import checkpoint_files, session
from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.task import writer
from tests.fakes.cluster import Coordinators
from tests.fakes.kafka import LOG_TOPIC
from tests.fakes.log import PartitionLog
from tests.fakes.process import Killed, Moment, Process
from tests.protocol.checkpoint import MOMENTS
from tests.protocol.world import PROGRAM, TOPIC, World

if TYPE_CHECKING:
    from tests.protocol.actor import Actor
    from tests.protocol.spark import Session

MOST_RIVALS = 2
# Calls that wait for no broker: they have no answer to lose.
_LOCAL = {"close", "begin", "produce", "state", "identity"}


class Gate(NamedTuple):
    """Where a fault can strike: before or after a port call."""

    call: str
    moment: Moment


class Fault(Enum):
    KILL_RUN = "the application dies with all its processes"
    KILL_PROCESS = "the process of this call dies"
    LEAVE_CALL = "this call hangs, Spark goes on without it, and it wakes up later"
    LEAVE_RUN = "the whole application hangs, another one is started, and it wakes up later"
    LOSE_ANSWER = "the call takes effect and its answer is lost"
    LATE_REQUEST = "the client sends its latest request again, and the first one arrives later"
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
    COPY = "somebody copies the checkpoint directory"
    DELETE = "the checkpoint directory is deleted, also below a run"
    LOSE_METADATA = "metadata of the checkpoint is deleted"
    LOSE_OFFSETS = "the offset log of the checkpoint is deleted"
    LOSE_COMMITS = "the commit log of the checkpoint is deleted"
    PUT_BACK = "the next start has an old copy of the checkpoint"
    MOVE = "the next start has the checkpoint at another path, or a new one at the first path again"
    SWITCH = "the next start is without eos.source.group.id, or with it again"
    EXPIRE_GROUP = "the source's offsets of the group expire"
    RESET_GROUP = "the source's offsets of the group are reset"
    OTHER_WAY = "the query stops; it then writes within foreachBatch, or by itself again"
    OTHER_ID = "the query stops; it then has another eos.id, or the first one again"
    OTHER_SINK = "the query stops, which Spark's own sink has written; it is then this sink's"
    OTHER_DEFAULTS = "the query stops; the session then has other defaults of options"
    SOURCE_AGAIN = "the query stops; its source is deleted and made again, with other rows"
    OTHER_TOPIC = "the query stops; it then has another option topic, or the first one again"
    TOPIC_AGAIN = "the topic is deleted and made again, also below a run, and has other records"
    FOREIGN = "another program commits, and opens a transaction in each partition of the topic"
    WEEK = "when no write runs, coordinators forget the ids, and the topic its rows"


KILLS = (Fault.KILL_RUN, Fault.KILL_PROCESS)
ZOMBIES = (Fault.LEAVE_CALL, Fault.LEAVE_RUN)
OF_SOURCE = (
    Fault.COPY,
    Fault.DELETE,
    Fault.LOSE_METADATA,
    Fault.LOSE_OFFSETS,
    Fault.LOSE_COMMITS,
    Fault.PUT_BACK,
    Fault.MOVE,
    Fault.SWITCH,
    Fault.EXPIRE_GROUP,
    Fault.RESET_GROUP,
)
"""These concern a query that commits the offsets of its source."""
OF_START = (
    Fault.OTHER_WAY,
    Fault.OTHER_ID,
    Fault.OTHER_TOPIC,
    Fault.OTHER_SINK,
    Fault.OTHER_DEFAULTS,
    Fault.SOURCE_AGAIN,
)
"""The application ends, and before the next start somebody changes something."""
ENDS = ("control.describe", "control.end", "log_producer.commit")
"""Calls between an answer about the topics' ids and what EndTxn does."""
_BETWEEN = (Fault.OTHER_OPTIONS, Fault.NEW_CHECKPOINT, Fault.WEEK)
"""These happen when a write or a query begins."""

SHORT_S, LONG_S = 20, 130
"""A while, and longer than a step."""
_PARTITIONS = {
    Fault.NO_LEADER: (TOPIC, "has_leader", SHORT_S),
    Fault.TOO_FEW_REPLICAS: (TOPIC, "in_sync", LONG_S),
    Fault.LOG_WITHOUT_LEADER: (LOG_TOPIC, "has_leader", SHORT_S),
    Fault.LOG_TOO_FEW_REPLICAS: (LOG_TOPIC, "in_sync", SHORT_S),
}
_COORDINATORS = {
    Fault.NO_COORDINATOR: Coordinators.TRANSACTIONS,
    Fault.READ_ONLY_COORDINATOR: Coordinators.WRITES,
    Fault.NO_GROUP_COORDINATOR: Coordinators.GROUP,
}


def is_felt(fault: Fault, gate: Gate) -> bool:
    """True if the fault does something at the gate: an answer is lost only after its call."""
    local = gate.call.partition(".")[2] in _LOCAL
    return fault is not Fault.LOSE_ANSWER or (gate.moment is Moment.AFTER and not local)


@dataclass(frozen=True)
class Strike:
    """A fault at a gate, counted over all sessions; gates come before and after each port call.

    Attributes:
        wake: gates until the zombie that it makes wakes up, or the request arrives; -1: not before
            the end.
        until: that is when another process next passes this gate, and `wake` does not count.
    """

    fault: Fault
    at: int
    wake: int = -1
    until: Gate | None = None

    @property
    def due(self) -> Gate | int | None:
        return self.until or (self.at + self.wake if self.wake >= 0 else None)


def _end(session: Session, actor: Actor) -> None:
    session.kill()
    actor.end()


@dataclass(frozen=True)
class _Zombie:
    """What a hanging process, or a delayed request, does when its time has come."""

    deed: Callable[[], object]
    wake: Gate | int | None
    at: Gate
    end: Callable[[], object] = lambda: None

    def due(self, gate: Gate, number: int) -> bool:
        if isinstance(self.wake, int):
            return self.wake <= number
        return self.wake == gate


@dataclass
class Scene:
    """A world, the gates that its sessions have passed, and the faults that are left.

    Attributes:
        rival: writes within a call of another session.
        meddle: does what a fault `OF_SOURCE` says.
        parts: into how many partitions Spark splits rows.
        turns: which of a session's processes Spark uses.
        result_bytes: `spark.driver.maxResultSize`, as far as it is about inlined rows.
        second_frame: whether the function of `foreachBatch` writes one more frame.
        pending: what happens when the next write or query begins.
        rivals: how many have written within a call of another.
        late: by how many seconds the next file of a checkpoint is late; None: none is.
        log_held_s: for how long other queries waited for the driver's transaction in the log.
    """

    world: World
    strikes: Sequence[Strike] = ()
    result_bytes: int | None = None
    gates: list[Gate] = field(default_factory=list)
    rival: Callable[[], None] = lambda: None
    meddle: Callable[[Fault], None] = lambda _: None
    parts: int = 2
    turns: int = 0
    second_frame: bool = False
    pending: list[Fault] = field(default_factory=list)
    rivals: int = 0
    late: Iterator[float] | None = None
    log_held_s: float = 0.0

    def __post_init__(self) -> None:
        self.left = sorted(self.strikes, key=lambda strike: strike.at)
        self.zombies: list[_Zombie] = []
        self._rivals = 0
        self._at = self.world.cluster.clock()
        self.world.cluster.clock.listen(self._watch_log)

    def step(self, session: Session, gate: Gate, process: Process) -> None:
        """A process of the session passes a gate."""
        number = len(self.gates)
        self.gates.append(gate)
        self.wake(gate)
        while self.left and self.left[0].at <= number:
            self._strike(self.left.pop(0), session, gate, process)

    def wake(self, gate: Gate | None = None) -> None:
        """Let each zombie whose time has come run to its end; at the end of all, every one."""
        while True:
            number = len(self.gates) - 1
            due = [each for each in self.zombies if gate is None or each.due(gate, number)]
            if not due:
                return
            self.zombies.remove(due[0])
            due[0].deed()

    def close(self) -> None:
        """The story is over; what hangs still dies."""
        self.left.clear()
        while self.zombies:
            self.zombies.pop().end()

    def calm(self) -> None:
        """No fault comes any more, and the last ones are over."""
        self.left.clear()
        self.pending.clear()
        if self.late is not None:
            self.late = itertools.repeat(0)
        self.heal()
        self.world.cluster.coordinator.time_out(PROGRAM)

    def heal(self) -> None:
        """A user waits until the brokers answer."""
        cluster = self.world.cluster
        cluster.silent_until.clear()
        cluster.elect_leaders()
        cluster.clock.advance(1)

    def split(self, rows: Sequence[bytes], parts: int | None = None) -> list[list[bytes]]:
        """The rows as Spark splits them."""
        parts = parts or self.parts
        return [list(rows[number::parts]) for number in range(parts)]

    def _strike(self, strike: Strike, session: Session, gate: Gate, process: Process) -> None:
        fault, cluster = strike.fault, self.world.cluster
        if fault is Fault.KILL_RUN:
            session.kill()
        elif fault is Fault.KILL_PROCESS:
            raise Killed(gate.call)
        elif fault in ZOMBIES:
            actor = session.leave(process, whole=fault is Fault.LEAVE_RUN)
            end = partial(_end, session, actor)
            self.zombies.append(_Zombie(actor.go, strike.due, gate, end))
            actor.park()
        elif fault is Fault.LATE_REQUEST:
            self.zombies.append(_Zombie(cluster.sent, strike.due, gate))
        elif fault is Fault.LOSE_ANSWER:
            if is_felt(fault, gate):
                raise OutcomeUnknownError(f"The answer to {gate.call} is lost.", remedy="")
        elif fault is Fault.TIME_OUT:
            cluster.coordinator.time_out()
        elif fault is Fault.END_SESSION:
            cluster.groups.end_session(self.world.options.names.group)
        elif fault is Fault.PASS_TIME:
            cluster.clock.advance(70)
        elif fault in _COORDINATORS:
            cluster.silent_until[_COORDINATORS[fault]] = cluster.clock() + LONG_S
        elif fault in _PARTITIONS:
            topic, attribute, seconds = _PARTITIONS[fault]
            setattr(cluster.create_topic(topic).partitions[0], attribute, False)
            cluster.leaders_return_at = cluster.clock() + seconds
        elif fault is Fault.OTHER_LOG_WRITER:
            self._block_log()
        elif fault is Fault.OTHER_PROCESSES:
            self.turns += 1
        elif fault is Fault.OTHER_PARTITIONS:
            self.parts = self.parts % 3 + 1
        elif fault is Fault.SECOND_FRAME:
            self.second_frame = True
        elif fault is Fault.GROW:
            partitions = cluster.topics[TOPIC].partitions
            partitions.append(PartitionLog(TOPIC, len(partitions)))
        elif fault is Fault.FOREIGN:
            for name in cluster.coordinator.list_open(PROGRAM):
                cluster.coordinator.end(cluster.coordinator.describe(name).transaction, commit=True)
            self.world.write_foreign(self.world.options.topic or TOPIC)
        elif fault is Fault.TOPIC_AGAIN:
            # A process that stands still there is a known limit.
            if not any(each.at.call in ENDS for each in self.zombies):
                self.meddle(fault)
            if gate.call in ENDS:
                session.kill()
        elif fault in OF_SOURCE:
            self.meddle(fault)
        elif fault in OF_START:
            self.meddle(fault)
            session.kill()
        elif fault in _BETWEEN:
            self.pending.append(fault)
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


@contextlib.contextmanager
def time_of(world: World) -> Iterator[None]:
    """Deadlines and pauses follow the clock of the cluster, and tasks and drivers open their
    producers when they begin to, so that a story repeats."""

    def begin(opening: writer._Opening) -> None:
        begun = opening._begun = Future()
        opening._run(begun)

    def open_log(opening: Opening, open_: Callable[[], Opened]) -> None:
        opening._future, opening._open = Future(), open_
        opening._run()

    opens = mock.patch.object(Opening, "__init__", open_log)
    defaults = mock.patch.object(Deadline.__init__, "__defaults__", (world.cluster.clock,))
    pauses = mock.patch.object(nap, "time", SimpleNamespace(sleep=world.cluster.clock.advance))
    moments = mock.patch.object(session, "time", SimpleNamespace(time=partial(next, MOMENTS)))
    # A file that never comes is asked for until the deadline.
    seldom = mock.patch.object(checkpoint_files, "_PAUSE_S", 0.25)
    opening = mock.patch.object(writer._Opening, "begin", begin)
    with defaults, pauses, opens, moments, seldom, opening:
        yield
