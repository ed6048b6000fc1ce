"""The network between clients and brokers: links that can be cut, slowed down and healed.

Each broker of a cluster that was started with `proxied=True` has one. They are carried by a process
of their own (`link_process.py`), which ends with the cluster, or with the process that made it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from eos_sink.testing import link_process
from eos_sink.testing.errors import NodeControlError
from eos_sink.testing.ports import HOST, free_ports

_TRIES_AT_PORTS = 20
_ENDS_WITHIN_S = 10


class Link:
    """The way of every client to one broker; the brokers among themselves do not use it.

    What is said about it holds when a call returns, and until the next one. Calls may come from any
    thread.

    Attributes:
        address: "host:port" under which clients know the broker.
    """

    def __init__(self, carrier: Carrier, node_id: int, port: int) -> None:
        self.address = f"{HOST}:{port}"
        self._carrier = carrier
        self._node_id = node_id
        self._cut = "none"
        self._delay = 0.0

    def __repr__(self) -> str:
        return f"<link to {self._node_id} at {self.address}, cut={self._cut}, delay={self._delay}>"

    def cut(self, *, answers_only: bool = False) -> None:
        """Let nothing pass any more, in silence, as when packets are dropped.

        Connections stay open and new ones get no answer. What clients have sent and could not be
        delivered arrives after `heal`, even if they have given up meanwhile.

        Args:
            answers_only: requests go on arriving at the broker and only its answers do not come
                back: clients cannot know what was done.
        """
        self._change("answers" if answers_only else "all", self._delay)

    def reset(self) -> None:
        """Break every connection, and each new one at once, as a firewall that rejects."""
        self._change("reset", self._delay)

    def delay(self, seconds: float) -> None:
        """Let everything arrive so much later, in each direction; 0 ends it.

        Raises:
            ValueError: less than 0.
        """
        if seconds < 0:
            raise ValueError(f"A delay cannot be {seconds} s.")
        self._change(self._cut, seconds)

    def heal(self) -> None:
        """Carry everything again at once, what was held back first."""
        self._change("none", 0.0)

    @property
    def held_back(self) -> int:
        """Bytes, of requests and of answers, that wait to be carried: what a cut has swallowed."""
        return int(self._carrier.tell({"link": self._node_id, "held_back": True}))

    def _change(self, cut: str, delay: float) -> None:
        self._carrier.tell({"link": self._node_id, "cut": cut, "delay": delay})
        self._cut, self._delay = cut, delay


class Carrier:
    """The process that carries all links of a cluster.

    Args:
        environ: of the process; it names the watchdog of the cluster.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._links: dict[int, Link] = {}
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(link_process.__file__).absolute())],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def lead(self, node_id: int, to_port: int) -> Link:
        """The broker's link, which leads to that port of this machine from now on.

        Raises:
            NodeControlError: the process has ended, or finds no port to listen at.
        """
        if node_id in self._links:
            self.tell({"link": node_id, "to": to_port})
            return self._links[node_id]
        for attempt in range(1, _TRIES_AT_PORTS + 1):
            (port,) = free_ports(1)
            try:
                self.tell({"link": node_id, "port": port, "to": to_port})
            except NodeControlError:
                if attempt == _TRIES_AT_PORTS or self._process.poll() is not None:
                    raise
                continue  # somebody was faster at the port
            break
        self._links[node_id] = Link(self, node_id, port)
        return self._links[node_id]

    def tell(self, command: dict[str, object]) -> str:
        """Give a command and wait until it holds.

        Returns:
            What it was asked for, if it is a question.

        Raises:
            NodeControlError: it could not be done.
        """
        with self._lock:
            stdin, stdout = self._pipes()
            try:
                stdin.write(json.dumps(command).encode() + b"\n")
                stdin.flush()
                answer = stdout.readline().decode().strip()
            except (OSError, ValueError) as error:
                answer = str(error)
        done, _, result = answer.partition(" ")
        if done != link_process.DONE:
            raise NodeControlError(
                f"The links to the brokers cannot be changed: {answer or 'they have ended'}."
            )
        return result

    def close(self) -> None:
        """End the process and with it every connection."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            stdin, stdout = self._pipes()
            with contextlib.suppress(OSError):
                stdin.close()
            try:
                self._process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            stdout.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        return stdin, stdout
