"""The kinds of faults and their fault points: the tables that the schedule draws from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from eos_sink_lab.testing import FaultPoint, Strike


class Kind(Enum):
    """One kind of fault. The value is its name in the report."""

    KILL_DRIVER = "driver killed, with all of its processes"
    KILL_DRIVER_ANYTIME = "driver killed at any moment"
    KILL_JVM = "driver's JVM killed, its Python processes live on"
    KILL_PLANNER = "planner killed"
    KILL_COMMITTER = "committer killed"
    KILL_TASK = "task's worker killed"
    KILL_EXECUTOR = "executor killed"
    PAUSE = "planner, committer or task paused"
    ZOMBIE = "driver frozen at a point, woken after its successor went on"
    ZOMBIE_ANYTIME = "driver frozen at any moment, woken after its successor went on"
    LATE_TASK = "late attempt takes a task's id after the decision"
    TIMEOUT_DECIDED = "decided transactions time out while the driver is down"
    TIMEOUT_OPEN = "open transactions time out while the driver is down"
    END_SESSION = "group session ended"
    EXHAUST_EPOCH = "epoch of a task's id at its end"
    KILL_BROKER = "broker killed, started again"
    PAUSE_BROKER = "broker paused"
    KILL_CONTROLLER = "active controller killed, started again"
    PAUSE_CONTROLLER = "active controller paused"
    MOVE_LEADER = "leader of a partition moved"
    MOVE_TRANSACTIONS = "transaction coordinator moved"
    MOVE_GROUP = "group coordinator moved"
    CUT = "network to a broker cut"
    CUT_ANSWERS = "a broker's answers cut"
    RESET = "connections to a broker reset"
    DELAY = "network to a broker delayed"
    LATE_REQUEST = "a request repeated over another connection, the first one late"
    LOSE_RUNNING = "checkpoint deleted while the query runs"
    LOSE_KILLED = "driver killed, its checkpoint deleted"
    LOSE_EXPIRED = "decided transactions time out, the checkpoint is deleted"
    RESTORE_OLD = "driver killed, an old copy of its checkpoint restored"
    MOVE_CHECKPOINT = "driver killed, its checkpoint moved to another path"
    HALVE_CHECKPOINT = "driver killed, half of its checkpoint deleted"


class Master(Enum):
    """Where the driver runs its tasks."""

    LOCAL = "local"
    STANDALONE = "standalone"


class Way(Enum):
    """How the query writes."""

    FORMAT = "format"
    """`format("kafka-eos")`."""
    FUNCTION = "function"
    """`foreachBatch(eos_sink.foreach_batch(options))`, which Spark 3.5 has too."""


class Input(Enum):
    """What the query reads."""

    FILES = "files"
    TOPIC = "topic"
    """With its offsets in the decision; the faults are those of its checkpoint."""


KILLS = frozenset({Kind.KILL_DRIVER, Kind.KILL_DRIVER_ANYTIME, Kind.KILL_JVM})
"""The driver dies and is restarted at once: the recoveries that are measured."""

OF_THE_CHECKPOINT = frozenset(
    {
        Kind.LOSE_RUNNING,
        Kind.LOSE_KILLED,
        Kind.LOSE_EXPIRED,
        Kind.RESTORE_OLD,
        Kind.MOVE_CHECKPOINT,
        Kind.HALVE_CHECKPOINT,
    }
)

OF_PROCESSES_BELOW_THE_JVM = frozenset({Kind.KILL_JVM, Kind.KILL_PLANNER, Kind.KILL_COMMITTER})
"""The function plans and commits in the driver's own process: no JVM is above it, and to kill it is
to kill the driver."""

DRIVER_DIES = KILLS | OF_THE_CHECKPOINT | {Kind.TIMEOUT_DECIDED, Kind.TIMEOUT_OPEN}

IN_THE_CLUSTER = (
    Kind.KILL_BROKER,
    Kind.PAUSE_BROKER,
    Kind.KILL_CONTROLLER,
    Kind.PAUSE_CONTROLLER,
    Kind.MOVE_LEADER,
    Kind.MOVE_TRANSACTIONS,
    Kind.MOVE_GROUP,
    Kind.CUT,
    Kind.CUT_ANSWERS,
    Kind.RESET,
    Kind.DELAY,
    Kind.LATE_REQUEST,
)

REQUESTS = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "Produce",
    "EndTxn",
    "EndTxn",
    "EndTxn",
)
"""What a late request is; EndTxn can do most harm."""

# Shortest and longest duration in seconds; the other faults have none.
DURATIONS: dict[Kind, tuple[float, float]] = {
    Kind.PAUSE: (1.0, 8.0),
    Kind.KILL_BROKER: (1.0, 12.0),
    Kind.PAUSE_BROKER: (2.0, 15.0),
    Kind.KILL_CONTROLLER: (1.0, 8.0),
    Kind.PAUSE_CONTROLLER: (2.0, 12.0),
    Kind.CUT: (2.0, 15.0),
    Kind.CUT_ANSWERS: (2.0, 12.0),
    Kind.RESET: (0.1, 3.0),
    Kind.DELAY: (4.0, 10.0),
    # How late it arrives: within its transaction, or in one of those that follow.
    Kind.LATE_REQUEST: (0.0, 6.0),
}


@dataclass(frozen=True)
class Prelude:
    """What must happen before the driver reaches a fault point.

    Attributes:
        point: the first fault point; None: kill the driver at any moment.
        action: the first fault. After KILL_PROCESS the driver reaches the point by itself.
        take_id: a late attempt takes a task's transactional id, so that its transaction is lost.
    """

    point: FaultPoint | None
    action: Strike = Strike.KILL_ALL
    take_id: bool = False


_AFTER_A_START = Prelude(None)
_AFTER_UNDECIDED = Prelude(FaultPoint.COMMITTER_VOTE_BEFORE)
_AFTER_DECIDED = Prelude(FaultPoint.COMMITTER_WRITE_AFTER)
_AFTER_LOST = Prelude(FaultPoint.COMMITTER_WRITE_AFTER, Strike.PAUSE, take_id=True)
# Spark calls abort() when the process of commit() has died.
_AT_AN_ABORT = Prelude(FaultPoint.COMMITTER_VOTE_BEFORE, Strike.KILL_PROCESS)

PRELUDES: dict[str, Prelude] = {
    "planner.check": _AFTER_A_START,
    "planner.join": _AFTER_A_START,
    "planner.open": _AFTER_A_START,
    "planner.list": _AFTER_A_START,
    "planner.write": _AFTER_A_START,
    "planner.stable": _AFTER_A_START,
    "planner.settle": _AFTER_DECIDED,
    "planner.witness": _AFTER_LOST,
    "planner.abort": _AFTER_UNDECIDED,
    "committer.open": _AFTER_A_START,
    "committer.read": _AFTER_DECIDED,
    "committer.list": _AT_AN_ABORT,
    "committer.abort": _AT_AN_ABORT,
}

# Only a refused task passes these; zombies cause that.
NOT_AIMED_AT = frozenset({FaultPoint.TASK_ABORT_BEFORE, FaultPoint.TASK_ABORT_AFTER})


def call_of(point: FaultPoint) -> str:
    """Such as "planner.join"."""
    return point.value.rsplit(".", 1)[0]


def role_of(point: FaultPoint) -> str:
    """The process that passes the point: "planner", "task" or "committer"."""
    return point.value.split(".", 1)[0]


def prelude_of(point: FaultPoint) -> Prelude | None:
    """None if every batch passes the point."""
    return PRELUDES.get(call_of(point))


def points_for(kind: Kind, way: Way = Way.FORMAT) -> tuple[FaultPoint, ...]:
    """The fault points of a kind; empty if it needs none."""
    every = tuple(p for p in FaultPoint if p not in NOT_AIMED_AT and _leads_to(p, way))
    steady = tuple(point for point in every if prelude_of(point) is None)
    by_role = {
        Kind.KILL_PLANNER: "planner",
        Kind.KILL_COMMITTER: "committer",
        Kind.LOSE_KILLED: "committer",
        Kind.KILL_TASK: "task",
        Kind.KILL_EXECUTOR: "task",
    }
    if kind is Kind.KILL_DRIVER:
        return every
    if kind is Kind.KILL_JVM:
        return tuple(point for point in steady if role_of(point) != "task")
    if kind in (Kind.PAUSE, Kind.ZOMBIE):
        return steady
    if kind in by_role:
        return tuple(point for point in steady if role_of(point) == by_role[kind])
    return ()


def _leads_to(point: FaultPoint, way: Way) -> bool:
    """False if its prelude kills the committer's process alone, where it has none of its own."""
    prelude = prelude_of(point)
    return way is Way.FORMAT or prelude is None or prelude.action is not Strike.KILL_PROCESS


class Family(Enum):
    """Kinds of faults that a plot shows apart."""

    DRIVER = "driver killed"
    PROCESS = "process killed or paused"
    ZOMBIE = "zombie"
    CLUSTER = "broker or controller"
    NETWORK = "network"


_ZOMBIES = {Kind.ZOMBIE, Kind.ZOMBIE_ANYTIME, Kind.LATE_TASK}
_NETWORK = {Kind.CUT, Kind.CUT_ANSWERS, Kind.RESET, Kind.DELAY, Kind.LATE_REQUEST}
_PROCESSES = {
    Kind.KILL_PLANNER,
    Kind.KILL_COMMITTER,
    Kind.KILL_TASK,
    Kind.KILL_EXECUTOR,
    Kind.PAUSE,
}


def family_of(text: str) -> Family:
    """The family of a kind, by its name in the report."""
    kind = Kind(text)
    if kind in DRIVER_DIES:
        return Family.DRIVER
    if kind in _ZOMBIES:
        return Family.ZOMBIE
    if kind in _PROCESSES:
        return Family.PROCESS
    return Family.NETWORK if kind in _NETWORK else Family.CLUSTER
