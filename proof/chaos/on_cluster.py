"""Faults of Kafka's own processes and of the network."""

from __future__ import annotations

import contextlib
import time
from functools import partial

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import HeldRequest, KafkaNode, TestClusterError
from proof.chaos.kinds import Kind
from proof.chaos.scene import Injected, NotReached, Scene
from proof.chaos.schedule import Fault

_RESTARTS_WITHIN_S = 90.0
_HELD_WITHIN_S = 60.0
_ANSWERED_WITHIN_S = 30.0


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


def late_request(scene: Scene, fault: Fault) -> Injected:
    """Hold the query's next request of a kind, whichever broker it goes to, and deliver it late."""
    kind, query = fault.request, scene.sink.names.group
    links = {node.id: node.link for node in scene.kafka.brokers}
    armed = {each: link.hold(kind, query) for each, link in links.items()}
    scene.supervisor.until(
        lambda: any(held.state != "armed" for held in armed.values()), _HELD_WITHIN_S
    )
    struck = {node: held for node, held in armed.items() if held.state != "armed"}
    for node in armed.keys() - struck.keys():
        armed[node].drop()
    if not struck:
        raise NotReached(f"a request {kind}")
    facts: dict[str, object] = {"request": kind, "nodes": sorted(struck)}
    return Injected(time.time(), partial(_deliver, struck, facts), facts=facts)


def _deliver(struck: dict[int, HeldRequest], facts: dict[str, object]) -> None:
    for held in struck.values():
        # Its connection ends with a broker.
        with contextlib.suppress(TestClusterError):
            held.deliver(Deadline(_ANSWERED_WITHIN_S))
    facts["late"] = [held.state for held in struck.values()]
