"""A Kafka node that is a process of this machine."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.errors import NodeControlError, NodeFailedError, NotReadyError
from eos_sink.testing.owned import OwnedNode
from eos_sink.testing.process_tree import ProcessTree, wait_stopped
from eos_sink.testing.properties import NodePlan

_TAIL_LINES = 25
_STOPS_WITHIN_S = 30.0


class NodeProcess(OwnedNode):
    """See `KafkaNode`.

    Args:
        plan: its id and role.
        address: "host:port" where it is reached.
        command: starts it, the same each time, so that it comes back with its ports and data.
        environ: of the process.
        log: takes its output, appended start after start.
    """

    def __init__(
        self,
        plan: NodePlan,
        address: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
    ) -> None:
        super().__init__(plan.id, plan.role, address)
        self.log = log
        self._command, self._environ = command, environ
        self._process: ProcessTree | None = None
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
        return self._process is not None and self._process.alive

    @property
    def paused(self) -> bool:
        return self._paused and self.alive

    def start(self) -> None:
        with self._lock:
            if self.alive:
                raise NodeControlError(f"Node {self.id} is already running.")
            self._process = ProcessTree(self._command, self.log, self._environ, cwd=self.log.parent)
            self._paused = self._ended_by_us = False

    def kill(self) -> None:
        with self._lock:
            if self._process is not None and self.alive:
                self._ended_by_us = True
                self._process.kill()

    def stop(self, timeout_s: float = 60) -> None:
        with self._lock:
            if self._process is None or not self.alive:
                return
            if self.paused:
                self.resume()
            self._ended_by_us = True
            self._process.signal(signal.SIGTERM)
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise NotReadyError(f"{self!r} did not end within {timeout_s:g} s.") from None

    def pause(self) -> None:
        with self._lock:
            self._require_process().pause()
            self._paused = True
            # The signal is sent at once but arrives a moment later.
            wait_stopped(self.pid, Deadline(_STOPS_WITHIN_S))

    def resume(self) -> None:
        with self._lock:
            self._require_process().resume()
            self._paused = False

    def raise_if_failed(self) -> None:
        if self._process is not None and not self.alive and not self._ended_by_us:
            raise NodeFailedError(repr(self), self._process.exit_code, self.log_tail())

    def log_tail(self) -> list[str]:
        """The last lines of its log."""
        return self._process.read_log()[-_TAIL_LINES:] if self._process is not None else []

    def _require_process(self) -> ProcessTree:
        self._require_alive()
        assert self._process is not None
        return self._process
