"""A Kafka node that is a process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from eos_sink.deadline import Deadline
from eos_sink.testing.errors import NodeControlError, NodeFailedError
from eos_sink.testing.interface import KafkaNode, Role
from eos_sink.testing.waiting import wait_until

_TAIL_LINES = 25
_TAIL_BYTES = 16_384
_DIES_WITHIN_S = 30.0


class NodeProcess(KafkaNode):
    """See `KafkaNode`.

    Args:
        command: starts it; the same each time, so it comes back with its ports and data.
        log: takes its output, appended start after start.
        answers: asks whether it does its work, with the deadline of the waiting.
    """

    def __init__(
        self,
        node_id: int,
        role: Role,
        address: str,
        command: Sequence[str],
        log: Path,
        answers: Callable[[Deadline], bool],
    ) -> None:
        super().__init__(node_id, role, address)
        self.log = log
        self._command = list(command)
        self._answers = answers
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
        """Start its process, without waiting until it answers."""
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

    def restart(self, timeout_s: float = 60) -> None:
        deadline = Deadline(timeout_s)
        with self._lock:
            if self.alive:
                self.stop(deadline.left)
            self.start()
        wait_until(lambda: self._is_back(deadline), deadline, f"{self!r} answers again")

    def raise_if_failed(self) -> None:
        """Raise if it ended by itself.

        Raises:
            NodeFailedError: with its exit code and the last lines of its log.
        """
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

    def _is_back(self, deadline: Deadline) -> bool:
        self.raise_if_failed()
        return self._answers(deadline)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._ended_by_us = True
            self._process.send_signal(number)

    def _wait(self, timeout_s: float) -> None:
        wait_until(lambda: not self.alive, Deadline(timeout_s), f"{self!r} has ended")

    def _require_alive(self) -> None:
        if not self.alive:
            raise NodeControlError(f"{self!r} is dead: restart it first.")
