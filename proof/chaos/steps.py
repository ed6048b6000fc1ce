"""Performs a step of the schedule: injects faults, ends them, and waits for the recovery."""

from __future__ import annotations

import time
from functools import partial

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import TestClusterError, read_timeline
from eos_sink_lab.testing.topic_scan import Offsets, ReaderError
from proof.chaos.feeder import Feeder
from proof.chaos.inject import inject
from proof.chaos.kinds import DRIVER_DIES, KILLS
from proof.chaos.recovery import split
from proof.chaos.result import Outcome
from proof.chaos.scene import Injected, Scene
from proof.chaos.schedule import Fault, Step

RECOVERS_WITHIN_S = 360.0


class Performer:
    """Performs steps.

    Args:
        scene: with a driver at work.
        feeder: of the query.
        offsets: of the topic.
    """

    def __init__(self, scene: Scene, feeder: Feeder, offsets: Offsets) -> None:
        self._scene, self._feeder, self._offsets = scene, feeder, offsets

    def perform(self, step: Step) -> Outcome:
        """Pause, inject the faults, end them, and wait until the run has recovered."""
        scene = self._scene
        scene.supervisor.prepare()
        scene.supervisor.pause(step.rest_s)
        scene.supervisor.master = step.master
        scene.checkpoint.may_stop = False
        outcome = Outcome(step, scene.supervisor.wait_life().number)
        try:
            for fault in step.faults:
                self._strike(fault, outcome)
            scene.supervisor.wait_due()
        finally:
            scene.supervisor.do_due()
        outcome.healed = time.time()
        self._recover(outcome)
        return outcome

    def _strike(self, fault: Fault, outcome: Outcome) -> None:
        try:
            done = inject(self._scene, fault)
        except Exception as error:  # noqa: BLE001 - it is in the report; the run goes on
            outcome.facts.setdefault("not_reached", []).append(f"{fault.kind.value}: {error!r}")
            self._scene.journal.say(f"    not reached: {error!r}")
            return
        outcome.struck.append(fault)
        outcome.at = min(done.at, outcome.at or done.at)
        outcome.facts |= done.facts or {}
        # It ends on time, even while another fault waits for its fault point.
        lasts_s = max(fault.duration_s, done.lasts_s)
        self._scene.supervisor.later(done.at + lasts_s, partial(self._heal, done, outcome))

    def _heal(self, injected: Injected, outcome: Outcome) -> None:
        try:
            injected.heal()
        except (TestClusterError, ValueError) as error:
            outcome.facts.setdefault("not_healed", []).append(str(error))
        outcome.facts |= injected.facts or {}

    def _recover(self, outcome: Outcome) -> None:
        scene, deadline = self._scene, Deadline(RECOVERS_WITHIN_S)
        if outcome.at is None:
            outcome.at = outcome.healed
        fed = self._feeder.rows
        # One row more: this needs a working driver.
        if not scene.supervisor.until(lambda: scene.watch.whole > fed, deadline.left):
            outcome.held_up = f"row {scene.watch.whole} is missing, and {fed} were fed"
            return
        try:
            behind = self._offsets.wait_readers(self._offsets.wait_high(deadline), deadline)
        except ReaderError as error:
            outcome.held_up = str(error)
            return
        if behind:
            outcome.held_up = f"readers wait at {behind}"
            return
        self._measure(outcome)

    def _measure(self, outcome: Outcome) -> None:
        scene, at = self._scene, outcome.at
        assert at is not None
        outcome.caught_up = time.time()
        outcome.silence_s = scene.watch.longest_silence(at, outcome.caught_up)
        if not any(fault.kind in DRIVER_DIES for fault in outcome.struck):
            outcome.visible = scene.watch.first_after(at)
            return
        successor = scene.supervisor.starts_since(at)
        if successor is None:
            return
        outcome.visible = scene.watch.first_after(successor.started)
        if (
            outcome.visible is None
            or len(outcome.struck) > 1
            or outcome.struck[0].kind not in KILLS
        ):
            return
        later = scene.supervisor.starts_since(successor.started)
        # If the next driver was restarted too, the parts of the time are unknown.
        if later is None or later.started > outcome.visible:
            outcome.split = split(at, outcome.visible, read_timeline(successor.timeline))
