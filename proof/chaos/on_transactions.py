"""Faults of transactional ids, timeouts and the group's member."""

from __future__ import annotations

import threading
import time

from eos_sink_lab.testing import FaultPoint, Strike
from proof.chaos.scene import Injected, NotReached, Scene
from proof.chaos.schedule import Fault

_TIMES_OUT_WITHIN_S = 180.0
_EXHAUSTED_WITHIN_S = 120.0


def late_task(scene: Scene, fault: Fault) -> Injected:
    point = FaultPoint.COMMITTER_WRITE_AFTER
    at = scene.strike(point, Strike.PAUSE)
    try:
        partition = scene.take_id(fault.target)
    finally:
        scene.faults.resume(point)
    return Injected(at, facts={"partition": partition})


def time_out(scene: Scene, point: FaultPoint) -> Injected:
    """Kill the driver, and start no other until its transactions have expired."""
    with scene.supervisor.held():
        at = scene.strike(point, Strike.KILL_ALL)
        gone = scene.supervisor.until(lambda: not scene.open_transactions(), _TIMES_OUT_WITHIN_S)
    return Injected(at, facts={"timed_out": gone, "down_s": round(time.time() - at, 1)})


def timeout_decided(scene: Scene, fault: Fault) -> Injected:  # noqa: ARG001
    return time_out(scene, FaultPoint.COMMITTER_WRITE_AFTER)


def timeout_open(scene: Scene, fault: Fault) -> Injected:  # noqa: ARG001
    return time_out(scene, FaultPoint.COMMITTER_VOTE_BEFORE)


def end_session(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    scene.kafka.end_session(scene.sink.names.group, scene.sink.names.driver)
    return Injected(time.time())


def exhaust_epoch(scene: Scene, fault: Fault) -> Injected:
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
