"""A node obeys in the same way whatever runs it; here a container that Docker only pretends."""

from __future__ import annotations

from typing import Any

import pytest

from eos_sink_lab.testing import KafkaNode, NodeControlError, NodeFailedError, NotReadyError, Role
from eos_sink_lab.testing.container_cluster import ContainerRunner
from eos_sink_lab.testing.node_properties import NodePlan

docker = pytest.importorskip("docker")


class PretendedContainer:
    """testcontainers' container and docker's own one."""

    name = "kafka"

    def __init__(self) -> None:
        self.status = self._actual = "created"
        self.signals: list[str] = []
        self.obeys = True
        self.removed = False
        self.attrs: dict[str, Any] = {"State": {"Pid": 4711, "ExitCode": 1}}

    def get_wrapped_container(self) -> PretendedContainer:
        return self

    def start(self) -> None:
        self._actual = "running"

    def reload(self) -> None:
        self.status = self._actual

    def kill(self, signal: str = "SIGKILL") -> None:
        self.signals.append(signal)
        if self.obeys:
            self._actual = "exited"

    def pause(self) -> None:
        self._actual = "paused"

    def unpause(self) -> None:
        self._actual = "running"

    def crash(self) -> None:
        self._actual = "exited"

    def logs(self, tail: int) -> bytes:
        return b"one line\nanother"

    def stop(self, **_: object) -> None:
        self.removed = True


@pytest.fixture
def container() -> PretendedContainer:
    return PretendedContainer()


@pytest.fixture
def node(container: PretendedContainer) -> KafkaNode:
    runner: Any = ContainerRunner(container)  # type: ignore[arg-type]
    return KafkaNode(NodePlan(1, Role.COMBINED), "127.0.0.1:1", runner)


def state(node: KafkaNode) -> tuple[bool, bool]:
    return node.alive, node.paused


def test_a_node_is_started_paused_resumed_and_killed(
    node: KafkaNode, container: PretendedContainer
) -> None:
    assert state(node) == (False, False)
    node.raise_if_failed()
    node.start()
    assert (state(node), node.pid) == ((True, False), 4711)
    with pytest.raises(NodeControlError):
        node.start()
    node.pause()
    node.pause()
    assert state(node) == (True, True)
    node.resume()
    node.resume()
    assert state(node) == (True, False)
    node.kill()
    node.kill()
    assert (state(node), container.signals) == ((False, False), ["SIGKILL"])
    node.raise_if_failed()
    for control in (node.pause, node.resume):
        with pytest.raises(NodeControlError):
            control()


def test_a_paused_node_is_resumed_before_it_is_stopped(
    node: KafkaNode, container: PretendedContainer
) -> None:
    node.start()
    node.pause()
    node.stop()
    assert (state(node), container.signals) == ((False, False), ["SIGTERM"])
    node.raise_if_failed()


def test_a_node_that_does_not_stop_is_an_error(
    node: KafkaNode, container: PretendedContainer
) -> None:
    node.start()
    container.obeys = False
    with pytest.raises(NotReadyError):
        node.stop(timeout_s=0.05)


def test_a_node_that_ended_by_itself_is_an_error_until_it_is_started_again(
    node: KafkaNode, container: PretendedContainer
) -> None:
    node.start()
    container.crash()
    with pytest.raises(NodeFailedError) as error:
        node.raise_if_failed()
    assert (error.value.exit_code, error.value.log_tail) == (1, ("one line", "another"))
    node.start()
    node.raise_if_failed()


def test_dockers_errors_are_those_of_the_cluster(
    node: KafkaNode, container: PretendedContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise docker.errors.APIError("no")

    monkeypatch.setattr(container, "start", refuse)
    with pytest.raises(NodeControlError):
        node.start()


def test_a_container_takes_no_variables(node: KafkaNode) -> None:
    with pytest.raises(NodeControlError, match="variables"):
        node.start({"CLOCK_OFF_S": "60"})
    assert not node.alive


def test_a_container_is_removed_once_it_was_started(container: PretendedContainer) -> None:
    runner = ContainerRunner(container)  # type: ignore[arg-type]
    runner.remove()
    assert not container.removed
    runner.start({})
    runner.remove()
    assert container.removed
