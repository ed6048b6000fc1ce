"""A node of a test cluster, which can be killed, paused and started again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Literal, Protocol

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_admin import port_answers, read_metadata
from eos_sink_lab.testing.cluster_errors import NodeControlError, NodeFailedError
from eos_sink_lab.testing.network_links import Link
from eos_sink_lab.testing.node_properties import NodePlan
from eos_sink_lab.testing.waiting import wait_until


class NodeRunner(Protocol):
    """The host of a node: a process or a container."""

    @property
    def state(self) -> Literal["running", "paused", "ended"]: ...
    @property
    def pid(self) -> int:
        """Of its process on this machine."""

    def start(self, environ: Mapping[str, str]) -> None:
        """Start it, with variables beside those that it always has."""

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""

    def terminate(self) -> None:
        """SIGTERM, without waiting."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def failure(self) -> tuple[int | None, list[str]]:
        """The exit code of the node that has ended, and the last lines of its log."""


class KafkaNode:
    """One Kafka process. Its methods may be called from any thread.

    Attributes:
        id: Kafka's `node.id`.
        role: `broker`, `controller` or `combined`.
        address: "host:port" for clients, or for other nodes if it is a controller; past its link.
    """

    def __init__(self, plan: NodePlan, address: str, runner: NodeRunner) -> None:
        self.id = plan.id
        self.role = plan.role
        self.address = address
        self._runner = runner
        self._link: Link | None = None
        self._end_expected = True
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<{self.role} {self.id} at {self.address}>"

    @property
    def alive(self) -> bool:
        """True if its process exists; a paused one does."""
        return self._runner.state != "ended"

    @property
    def paused(self) -> bool:
        """True if it is paused."""
        return self._runner.state == "paused"

    @property
    def pid(self) -> int:
        """The id of its process on this machine."""
        return self._runner.pid

    @property
    def link(self) -> Link:
        """The network between clients and this broker.

        Raises:
            NodeControlError: it is a controller, or the cluster was not started `proxied`.
        """
        if self._link is None:
            raise NodeControlError(
                f"{self!r} has no link: use a broker of start_kafka(..., proxied=True)."
            )
        return self._link

    def kill(self) -> None:
        """End it at once (SIGKILL), also when it is paused. Without effect if it is dead."""
        with self._lock:
            if self.alive:
                self._end_expected = True
                self._runner.kill()

    def stop(self, timeout_s: float = 60) -> None:
        """Shut it down (SIGTERM) and wait for its end. Without effect if it is dead.

        Raises:
            NotReadyError: it was still there after `timeout_s` seconds.
        """
        with self._lock:
            if self.paused:
                self.resume()
            if self.alive:
                self._end_expected = True
                self._runner.terminate()
                wait_until(lambda: not self.alive, Deadline(timeout_s), f"{self!r} has ended")

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open, nothing answers.

        Raises:
            NodeControlError: it is dead.
        """
        with self._lock:
            self._require_alive()
            if not self.paused:
                self._runner.pause()

    def resume(self) -> None:
        """Let a paused node go on (SIGCONT). Does not wait until it answers.

        Raises:
            NodeControlError: it is dead.
        """
        with self._lock:
            self._require_alive()
            if self.paused:
                self._runner.resume()

    def start(self, environ: Mapping[str, str] | None = None) -> None:
        """Start it with the same port and data, without waiting until it answers.

        Args:
            environ: variables for its process, until it ends; a container takes none.

        Raises:
            NodeControlError: it is running, or takes no variables.
        """
        with self._lock:
            if self.alive:
                raise NodeControlError(f"{self!r} is already running.")
            self._runner.start(environ or {})
            self._end_expected = False

    def restart(self, timeout_s: float = 60, environ: Mapping[str, str] | None = None) -> None:
        """Stop it if it is alive, start it, and wait until it answers.

        Args:
            timeout_s: for all of this.
            environ: as of `start`.

        Raises:
            NodeFailedError: it ended while starting.
            NotReadyError: it did not answer within `timeout_s` seconds.
        """
        deadline = Deadline(timeout_s)
        if self.alive:
            self.stop(deadline.left)
        self.start(environ)

        def is_back() -> bool:
            self.raise_if_failed()
            if not self.role.serves_clients:
                return port_answers(self.address)
            metadata = read_metadata(self.address, deadline)
            return metadata is not None and self.id in metadata.brokers

        wait_until(is_back, deadline, f"{self!r} answers again")

    def raise_if_failed(self) -> None:
        """Raise NodeFailedError, with the last lines of its log, if it ended by itself."""
        if not self._end_expected and not self.alive:
            raise NodeFailedError(repr(self), *self._runner.failure())

    def _require_alive(self) -> None:
        if not self.alive:
            raise NodeControlError(f"{self!r} is dead: restart it first.")
