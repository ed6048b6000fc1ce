"""A Kafka node that is a process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from eos_sink.deadline import Deadline
from eos_sink.testing.errors import NodeControlError, NodeFailedError
from eos_sink.testing.owned import OwnedNode
from eos_sink.testing.properties import NodePlan
from eos_sink.testing.waiting import wait_until

_TAIL_LINES = 25
_TAIL_BYTES = 16_384
_DIES_WITHIN_S = 30.0


@dataclass(frozen=True)
class Launch:
    """How a node is started, the same each time, so that it comes back with its ports and data.

    Attributes:
        command: the program and its arguments.
        log: takes its output, appended start after start.
    """

    command: tuple[str, ...]
    log: Path


class NodeProcess(OwnedNode):
    """See `KafkaNode`.

    Args:
        plan: its id and role.
        address: "host:port" where it is reached.
        launch: how it is started.
    """

    def __init__(self, plan: NodePlan, address: str, launch: Launch) -> None:
        super().__init__(plan.id, plan.role, address)
        self.log = launch.log
        self._command = launch.command
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False
        self._ended_by_us = False
        self._lock = threading.RLock()

    @property
    def pid(self) -> int:
        """Of its process, dead or alive.

        Raises:
            NodeControlError: it was never started.
        """
        if self._process is None:
            raise NodeControlError(f"Node {self.id} was never started.")
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def paused(self) -> bool:
        return self._paused and self.alive

    def start(self) -> None:
        with self._lock:
            if self.alive:
                raise NodeControlError(f"Node {self.id} is already running.")
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.log.parent,
                    # Ctrl-C ends the tests, which then end the nodes in their order.
                    start_new_session=True,
                )
            self._paused = self._ended_by_us = False

    def kill(self) -> None:
        with self._lock:
            self._signal(signal.SIGKILL)
            self._wait(_DIES_WITHIN_S)

    def stop(self, timeout_s: float = 60) -> None:
        with self._lock:
            if self.paused:
                self.resume()
            self._signal(signal.SIGTERM)
            self._wait(timeout_s)

    def pause(self) -> None:
        with self._lock:
            self._require_alive()
            os.kill(self.pid, signal.SIGSTOP)
            self._paused = True
            if hasattr(os, "waitid"):  # the signal is sent at once but arrives a moment later
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        with self._lock:
            self._require_alive()
            os.kill(self.pid, signal.SIGCONT)
            self._paused = False

    def raise_if_failed(self) -> None:
        if self._process is not None and not self.alive and not self._ended_by_us:
            raise NodeFailedError(repr(self), self._process.returncode, self.log_tail())

    def log_tail(self) -> list[str]:
        """The last lines of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-_TAIL_LINES:]

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._ended_by_us = True
            self._process.send_signal(number)

    def _wait(self, timeout_s: float) -> None:
        wait_until(lambda: not self.alive, Deadline(timeout_s), f"{self!r} has ended")
