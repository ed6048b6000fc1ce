"""How each kind of fault is brought about, and ended. One function a kind, in `INJECT`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chaos.drivers import Life
from chaos.kinds import Kind, Master, role_of
from chaos.scene import NotReached, Scene
from chaos.schedule import Fault
from eos_sink.testing import Action, FaultPoint, KafkaNode

_ZOMBIE_ENDS_WITHIN_S = 120.0
_SUCCESSOR_WORKS_WITHIN_S = 150.0
_TIMES_OUT_WITHIN_S = 90.0
_EXHAUSTED_WITHIN_S = 120.0
_RESTARTS_WITHIN_S = 90.0


def _nothing() -> None:
    """For faults that are over at once."""


@dataclass
class Injected:
    """A fault that has struck.

    Attributes:
        at: when, seconds since the epoch.
        heal: ends it.
        facts: for the report.
    """

    at: float
    heal: Callable[[], None] = _nothing
    facts: dict[str, object] | None = None


def inject(scene: Scene, fault: Fault) -> Injected:
    """Bring it about.

    Raises:
        NotReached: the driver did not come to the point in time.
    """
    return INJECT[fault.kind](scene, fault)


# The driver and its processes.


def _kill_driver(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    if role_of(point) != "task" or _runs_on(scene) is Master.LOCAL:
        return Injected(scene.strike(point, Action.KILL_ALL))
    # The task is in an executor's session: it outlives its driver and goes on as a zombie.
    scene.strike(point, Action.PAUSE)
    at = scene.supervisor.kill()
    return Injected(at, partial(scene.faults.resume, point))


def _kill_driver_anytime(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return Injected(scene.supervisor.kill())


def _kill_jvm(scene: Scene, fault: Fault) -> Injected:
    return Injected(scene.strike(_point(fault), Action.KILL_JVM))


def _kill_process(scene: Scene, fault: Fault) -> Injected:
    return Injected(scene.strike(_point(fault), Action.KILL_PROCESS))


def _kill_executor(scene: Scene, fault: Fault) -> Injected:
    # The JVM above a task is its executor's.
    return Injected(scene.strike(_point(fault), Action.KILL_JVM))


def _pause(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    return Injected(scene.strike(point, Action.PAUSE), partial(scene.faults.resume, point))


def _zombie(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    scene.strike(point, Action.PAUSE)
    return _outlived(scene, lambda: scene.faults.resume(point))


def _zombie_anytime(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _outlived(scene, _nothing)


def _outlived(scene: Scene, wake: Callable[[], None]) -> Injected:
    """Freeze the driver, let a successor work, wake it, and see that it gives up."""
    life = scene.supervisor.wait_life()
    at = time.time()
    life.victim.freeze()
    zombie = scene.supervisor.set_aside()
    try:
        facts = _haunted(scene, zombie, wake)
    finally:
        zombie.victim.kill()
    return Injected(at, facts=facts)


def _haunted(scene: Scene, zombie: Life, wake: Callable[[], None]) -> dict[str, object]:
    born = time.time()
    works = scene.supervisor.until(
        lambda: scene.watch.first_after(born) is not None, _SUCCESSOR_WORKS_WITHIN_S
    )
    zombie.victim.thaw()
    wake()
    woken = time.monotonic()
    gone = scene.supervisor.until(lambda: not zombie.alive, _ZOMBIE_ENDS_WITHIN_S)
    said = zombie.end() if gone else None
    scene.journal.note(
        "zombie",
        life=zombie.number,
        gave_up=gone,
        error=said.error if said else "",
        text=said.text if said else "",
        seconds=round(time.monotonic() - woken, 2),
    )
    if said is not None and (said.code == 0 or said.needs_a_person):
        scene.supervisor.flaws.append(f"woken driver {zombie.number}: {said.code} {said.text}")
    if not gone:
        scene.supervisor.flaws.append(f"woken driver {zombie.number} went on")
    return {"successor_worked": works, "refused_by": (said.error or said.text[:80]) if said else ""}


# What the sink rests on in Kafka.


def _late_task(scene: Scene, fault: Fault) -> Injected:
    point = FaultPoint.COMMITTER_WRITE_AFTER
    at = scene.strike(point, Action.PAUSE)
    try:
        partition = scene.take_id(fault.target)
    finally:
        scene.faults.resume(point)
    return Injected(at, facts={"partition": partition})


def _time_out(scene: Scene, point: FaultPoint) -> Injected:
    with scene.supervisor.held():
        at = scene.strike(point, Action.KILL_ALL)
        gone = scene.supervisor.until(lambda: not scene.open_transactions(), _TIMES_OUT_WITHIN_S)
    return Injected(at, facts={"timed_out": gone, "down_s": round(time.time() - at, 1)})


def _timeout_decided(scene: Scene, fault: Fault) -> Injected:  # noqa: ARG001
    return _time_out(scene, FaultPoint.COMMITTER_WRITE_AFTER)


def _timeout_open(scene: Scene, fault: Fault) -> Injected:  # noqa: ARG001
    return _time_out(scene, FaultPoint.COMMITTER_VOTE_BEFORE)


def _end_session(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    scene.kafka.end_session(scene.sink.names.group, scene.sink.names.driver)
    return Injected(time.time())


def _exhaust_epoch(scene: Scene, fault: Fault) -> Injected:
    name = scene.sink.names.task(fault.target % 2, fault.target // 2)
    began = time.time()
    done: list[object] = []

    def exhaust() -> None:
        try:
            done.append(scene.kafka.exhaust_epoch(name, timeout_s=_EXHAUSTED_WITHIN_S))
        except Exception as error:  # noqa: BLE001 - carried to the waiting thread
            done.append(error)

    threading.Thread(target=exhaust, name="exhaust", daemon=True).start()
    scene.supervisor.until(lambda: bool(done), 2 * _EXHAUSTED_WITHIN_S)
    if not done or isinstance(done[0], Exception):
        raise NotReached(f"end of the epochs of {name}: {done}")
    facts: dict[str, object] = {"id": name, "seconds": round(time.time() - began, 1)}
    return Injected(time.time(), facts=facts)


# Kafka's own processes and the network.


def _kill_broker(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _killed(scene.broker(fault.target))


def _pause_broker(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _paused(scene.broker(fault.target))


def _kill_controller(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _killed(scene.active_controller())


def _pause_controller(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _paused(scene.active_controller())


def _killed(node: KafkaNode) -> Injected:
    node.kill()
    return Injected(time.time(), partial(node.restart, _RESTARTS_WITHIN_S), facts={"node": node.id})


def _paused(node: KafkaNode) -> Injected:
    node.pause()
    return Injected(time.time(), node.resume, facts={"node": node.id})


def _move_leader(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    to = scene.kafka.move_leader(scene.topic, fault.target % scene.partitions)
    return Injected(time.time(), facts={"to": to})


def _move_transactions(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    name = scene.sink.names.task(fault.target % 2, fault.target // 2)
    return Injected(time.time(), facts={"to": scene.kafka.move_transaction_coordinator(name)})


def _move_group(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    to = scene.kafka.move_group_coordinator(scene.sink.names.group)
    return Injected(time.time(), facts={"to": to})


def _cut(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    node = scene.broker(fault.target)
    node.link.cut(answers_only=fault.kind is Kind.CUT_ANSWERS)
    return Injected(time.time(), node.link.heal, facts={"node": node.id})


def _reset(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    node = scene.broker(fault.target)
    node.link.reset()
    return Injected(time.time(), node.link.heal, facts={"node": node.id})


def _delay(scene: Scene, fault: Fault) -> Injected:
    node = scene.broker(fault.target)
    one_way_s = 0.05 + 0.1 * fault.after_s
    node.link.delay(one_way_s)
    facts: dict[str, object] = {"node": node.id, "one_way_s": round(one_way_s, 2)}
    return Injected(time.time(), node.link.heal, facts=facts)


INJECT: dict[Kind, Callable[[Scene, Fault], Injected]] = {
    Kind.KILL_DRIVER: _kill_driver,
    Kind.KILL_DRIVER_ANYTIME: _kill_driver_anytime,
    Kind.KILL_JVM: _kill_jvm,
    Kind.KILL_PLANNER: _kill_process,
    Kind.KILL_COMMITTER: _kill_process,
    Kind.KILL_TASK: _kill_process,
    Kind.KILL_EXECUTOR: _kill_executor,
    Kind.PAUSE: _pause,
    Kind.ZOMBIE: _zombie,
    Kind.ZOMBIE_ANYTIME: _zombie_anytime,
    Kind.LATE_TASK: _late_task,
    Kind.TIMEOUT_DECIDED: _timeout_decided,
    Kind.TIMEOUT_OPEN: _timeout_open,
    Kind.END_SESSION: _end_session,
    Kind.EXHAUST_EPOCH: _exhaust_epoch,
    Kind.KILL_BROKER: _kill_broker,
    Kind.PAUSE_BROKER: _pause_broker,
    Kind.KILL_CONTROLLER: _kill_controller,
    Kind.PAUSE_CONTROLLER: _pause_controller,
    Kind.MOVE_LEADER: _move_leader,
    Kind.MOVE_TRANSACTIONS: _move_transactions,
    Kind.MOVE_GROUP: _move_group,
    Kind.CUT: _cut,
    Kind.CUT_ANSWERS: _cut,
    Kind.RESET: _reset,
    Kind.DELAY: _delay,
}


def _point(fault: Fault) -> FaultPoint:
    assert fault.point is not None
    return fault.point


def _runs_on(scene: Scene) -> Master:
    life = scene.supervisor.life
    return scene.supervisor.master if life is None else life.master
