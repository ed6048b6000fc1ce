"""Injects faults: one function for each kind."""

from __future__ import annotations

from collections.abc import Callable

from proof.chaos import on_checkpoint, on_cluster, on_driver, on_transactions
from proof.chaos.kinds import Kind
from proof.chaos.scene import Injected, Scene
from proof.chaos.schedule import Fault

INJECT: dict[Kind, Callable[[Scene, Fault], Injected]] = {
    Kind.KILL_DRIVER: on_driver.kill_driver,
    Kind.KILL_DRIVER_ANYTIME: on_driver.kill_driver_anytime,
    Kind.KILL_JVM: on_driver.kill_jvm,
    Kind.KILL_PLANNER: on_driver.kill_process,
    Kind.KILL_COMMITTER: on_driver.kill_process,
    Kind.KILL_TASK: on_driver.kill_process,
    Kind.KILL_EXECUTOR: on_driver.kill_executor,
    Kind.PAUSE: on_driver.pause,
    Kind.ZOMBIE: on_driver.zombie,
    Kind.ZOMBIE_ANYTIME: on_driver.zombie_anytime,
    Kind.LATE_TASK: on_transactions.late_task,
    Kind.TIMEOUT_DECIDED: on_transactions.timeout_decided,
    Kind.TIMEOUT_OPEN: on_transactions.timeout_open,
    Kind.END_SESSION: on_transactions.end_session,
    Kind.EXHAUST_EPOCH: on_transactions.exhaust_epoch,
    Kind.KILL_BROKER: on_cluster.kill_broker,
    Kind.PAUSE_BROKER: on_cluster.pause_broker,
    Kind.KILL_CONTROLLER: on_cluster.kill_controller,
    Kind.PAUSE_CONTROLLER: on_cluster.pause_controller,
    Kind.MOVE_LEADER: on_cluster.move_leader,
    Kind.MOVE_TRANSACTIONS: on_cluster.move_transactions,
    Kind.MOVE_GROUP: on_cluster.move_group,
    Kind.CUT: on_cluster.cut,
    Kind.CUT_ANSWERS: on_cluster.cut,
    Kind.RESET: on_cluster.reset,
    Kind.DELAY: on_cluster.delay,
    Kind.LATE_REQUEST: on_cluster.late_request,
    Kind.LOSE_RUNNING: on_checkpoint.lose_running,
    Kind.LOSE_KILLED: on_checkpoint.lose_killed,
    Kind.LOSE_EXPIRED: on_checkpoint.lose_expired,
    Kind.RESTORE_OLD: on_checkpoint.restore_old,
    Kind.MOVE_CHECKPOINT: on_checkpoint.move,
    Kind.HALVE_CHECKPOINT: on_checkpoint.halve,
}


def inject(scene: Scene, fault: Fault) -> Injected:
    """Inject a fault.

    Raises:
        NotReached: the driver did not reach the fault point in time.
    """
    return INJECT[fault.kind](scene, fault)
