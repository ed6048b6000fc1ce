"""Faults of Kafka's own processes and of the network."""

from __future__ import annotations

import time
from functools import partial

from eos_sink_lab.testing import KafkaNode
from proof.chaos.kinds import Kind
from proof.chaos.scene import Injected, Scene
from proof.chaos.schedule import Fault

_RESTARTS_WITHIN_S = 90.0


def kill_broker(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _killed(scene.broker(fault.target))


def pause_broker(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _paused(scene.broker(fault.target))


def kill_controller(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _killed(scene.active_controller())


def pause_controller(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    return _paused(scene.active_controller())


def _killed(node: KafkaNode) -> Injected:
    node.kill()
    return Injected(time.time(), partial(node.restart, _RESTARTS_WITHIN_S), facts={"node": node.id})


def _paused(node: KafkaNode) -> Injected:
    node.pause()
    return Injected(time.time(), node.resume, facts={"node": node.id})


def move_leader(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    to = scene.kafka.move_leader(scene.topic, fault.target % scene.partitions)
    return Injected(time.time(), facts={"to": to})


def move_transactions(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    name = scene.sink.names.task(fault.target % 2, fault.target // 2)
    return Injected(time.time(), facts={"to": scene.kafka.move_transaction_coordinator(name)})


def move_group(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    to = scene.kafka.move_group_coordinator(scene.sink.names.group)
    return Injected(time.time(), facts={"to": to})


def cut(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    node = scene.broker(fault.target)
    node.link.cut(answers_only=fault.kind is Kind.CUT_ANSWERS)
    return Injected(time.time(), node.link.heal, facts={"node": node.id})


def reset(scene: Scene, fault: Fault) -> Injected:
    scene.supervisor.pause(fault.after_s)
    node = scene.broker(fault.target)
    node.link.reset()
    return Injected(time.time(), node.link.heal, facts={"node": node.id})


def delay(scene: Scene, fault: Fault) -> Injected:
    node = scene.broker(fault.target)
    one_way_s = 0.05 + 0.1 * fault.after_s
    node.link.delay(one_way_s)
    facts: dict[str, object] = {"node": node.id, "one_way_s": round(one_way_s, 2)}
    return Injected(time.time(), node.link.heal, facts=facts)
