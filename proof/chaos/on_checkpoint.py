"""Faults of the checkpoint directory of a query that commits its source's offsets."""

from __future__ import annotations

import time

from eos_sink_lab.testing import FaultPoint, Strike
from proof.chaos.on_transactions import time_out
from proof.chaos.scene import Injected, NotReached, Scene
from proof.chaos.schedule import Fault

_ENDS_WITHIN_S = 60.0
_AGES_WITHIN_S = 120.0


def lose_running(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    scene.checkpoint.may_stop = True
    at = time.time()
    scene.checkpoint.delete()
    return Injected(at)


def lose_killed(scene: Scene, fault: Fault) -> Injected:
    assert fault.point is not None
    with scene.supervisor.held():
        at = scene.strike(fault.point, Strike.KILL_ALL)
        _wait_end(scene)
        scene.checkpoint.delete()
    return Injected(at)


def lose_expired(scene: Scene, fault: Fault) -> Injected:  # noqa: ARG001
    with scene.supervisor.held():
        # Only a batch that has transactions of its own comes there.
        injected = time_out(scene, FaultPoint.COMMITTER_SETTLE_BEFORE)
        scene.checkpoint.delete()
    return injected


def restore_old(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    scene.checkpoint.copy()
    # It is older than the latest decision once the row that comes next is visible.
    whole = scene.watch.whole
    if not scene.supervisor.until(lambda: scene.watch.whole > whole, _AGES_WITHIN_S):
        raise NotReached("a later row")
    with scene.supervisor.held():
        at = _kill(scene)
        scene.checkpoint.restore()
        scene.checkpoint.may_stop = True
    return Injected(at)


def move(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    with scene.supervisor.held():
        at = _kill(scene)
        scene.checkpoint.move()
    return Injected(at)


def halve(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    with scene.supervisor.held():
        at = _kill(scene)
        deleted = scene.checkpoint.halve(fault.target)
        scene.checkpoint.may_stop = True
    return Injected(at, facts={"deleted": " ".join(deleted)})


def _kill(scene: Scene) -> float:
    at = scene.supervisor.kill()
    _wait_end(scene)
    return at


def _wait_end(scene: Scene) -> None:
    """Until nothing of the driver writes into its checkpoint."""
    if not scene.supervisor.until(lambda: scene.supervisor.life is None, _ENDS_WITHIN_S):
        raise NotReached("the end of the driver")
