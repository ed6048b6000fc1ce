"""Faults of the driver and its processes: each function injects one and returns then."""

from __future__ import annotations

import time
from functools import partial

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import FaultPoint, Strike
from eos_sink_lab.testing.process_tree import wait_stopped
from proof.chaos.drivers import Life
from proof.chaos.kinds import Master, role_of
from proof.chaos.scene import Injected, Scene
from proof.chaos.schedule import Fault

_TASK_SLEEPS_S = 15.0
_ZOMBIE_ENDS_WITHIN_S = 240.0
_STOPS_WITHIN_S = 30.0
_SUCCESSOR_WORKS_WITHIN_S = 200.0


def kill_driver(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    if role_of(point) != "task" or _runs_on(scene) is Master.LOCAL:
        return Injected(scene.strike(point, Strike.KILL_ALL))
    # The task is in an executor's session: it outlives its driver and goes on as a zombie.
    scene.strike(point, Strike.PAUSE)
    at = scene.supervisor.kill()
    return Injected(at, partial(scene.faults.resume, point), lasts_s=_TASK_SLEEPS_S)


def kill_driver_anytime(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return Injected(scene.supervisor.kill())


def kill_jvm(scene: Scene, fault: Fault) -> Injected:
    return Injected(scene.strike(_point(fault), Strike.KILL_JVM))


def kill_process(scene: Scene, fault: Fault) -> Injected:
    return Injected(scene.strike(_point(fault), Strike.KILL_PROCESS))


def kill_executor(scene: Scene, fault: Fault) -> Injected:
    # The JVM above a task is its executor's.
    return Injected(scene.strike(_point(fault), Strike.KILL_JVM))


def pause(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    return Injected(scene.strike(point, Strike.PAUSE), partial(scene.faults.resume, point))


def zombie(scene: Scene, fault: Fault) -> Injected:
    point = _point(fault)
    scene.strike(point, Strike.PAUSE)
    struck = scene.faults.struck(point)
    assert struck is not None
    # It would stop itself after it was woken with the others.
    wait_stopped(struck.pid, Deadline(_STOPS_WITHIN_S))
    return _outlived(scene)


def zombie_anytime(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _outlived(scene)


def _outlived(scene: Scene) -> Injected:
    """Freeze the driver, let a successor work, wake it, and see that it gives up."""
    life = scene.supervisor.wait_life()
    at = time.time()
    life.processes.pause()
    zombie = scene.supervisor.set_aside()
    try:
        facts = _haunted(scene, zombie)
    finally:
        zombie.processes.kill()
    return Injected(at, facts=facts)


def _haunted(scene: Scene, zombie: Life) -> dict[str, object]:
    def works() -> bool:
        # Rows may be those that the frozen driver has decided.
        later = (life for life in scene.supervisor.lives if life.number > zombie.number)
        return any(life.has_committed() for life in later)

    has_worked = scene.supervisor.until(works, _SUCCESSOR_WORKS_WITHIN_S)
    zombie.processes.resume()
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
    return {
        "successor_worked": has_worked,
        "refused_by": (said.error or said.text[:80]) if said else "",
    }


def _point(fault: Fault) -> FaultPoint:
    assert fault.point is not None
    return fault.point


def _runs_on(scene: Scene) -> Master:
    life = scene.supervisor.life
    return scene.supervisor.master if life is None else life.master
