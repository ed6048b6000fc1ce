"""The network between clients and brokers: free ports, and links that fail on command.

Each broker of a cluster that was started with `proxied=True` has a link. `link_process.py` carries
the links of a cluster, and ends with the cluster or with the process that made it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from eos_sink_lab.testing import carried_links, link_process
from eos_sink_lab.testing.cluster_errors import NodeControlError
from eos_sink_lab.testing.held_request import HeldRequest
from eos_sink_lab.testing.request_frames import KINDS

HOST = carried_links.HOST

# Below what Linux and macOS hand out to outgoing connections (32768 and up, 49152 and up). From
# that range a client's own connection could take the port of a broker that is down, even connect
# to itself while it tries to reach it.
_PORTS = range(20000, 32000)
_PORT_ATTEMPTS = 20
# With its directory given, it needs no installation and imports the standard library only.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from eos_sink_lab.testing import link_process; link_process.run()"
)
_ENDS_WITHIN_S = 10


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that are free now; another process may take one before you do."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(_PORTS, len(_PORTS)):
            if len(ports) == count:
                return ports
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            ports.append(port)
    raise OSError(f"No {count} free ports in {_PORTS}.")


class Link:
    """The network between all clients and one broker; other brokers do not use it.

    A change is in effect when a call returns, until the next one. Calls may come from any thread.

    Attributes:
        address: "host:port" under which clients know the broker.
    """

    def __init__(self, carrier: Carrier, node_id: int, port: int) -> None:
        self.address = f"{HOST}:{port}"
        self.port = port
        self._carrier = carrier
        self._node_id = node_id
        self._cut = "none"
        self._delay = 0.0
        self._rate = 0
        self._held: list[HeldRequest] = []

    def __repr__(self) -> str:
        return f"<link to {self._node_id} at {self.address}, cut={self._cut}, delay={self._delay}>"

    def cut(self, *, answers_only: bool = False) -> None:
        """Drop everything in silence, as when packets are lost.

        Connections stay open and new ones get no answer. What clients have sent arrives after
        `heal`, even if they have given up by then.

        Args:
            answers_only: requests still arrive at the broker and only its answers do not come
                back: clients cannot know what was done.
        """
        self._change("answers" if answers_only else "all", self._delay, self._rate)

    def reset(self) -> None:
        """Break every connection, and each new one at once, as a firewall that rejects."""
        self._change("reset", self._delay, self._rate)

    def forget(self) -> None:
        """Drop in silence, from now on and for good, what comes over the connections that are open,
        as a load balancer does with idle ones. New ones work."""
        self._carrier.send({"link": self._node_id, "forget": True})

    def limit_logins(self, most: int | None) -> int:
        """Refuse more logins by PLAIN in a second than that, as Amazon MSK does; None: no limit.

        Returns:
            How many were tried since the last call.
        """
        return int(self._carrier.send({"link": self._node_id, "logins": most}))

    def delay(self, seconds: float) -> None:
        """Let everything arrive so much later, in each direction; 0 ends it.

        Raises:
            ValueError: less than 0.
        """
        if seconds < 0:
            raise ValueError(f"A delay cannot be {seconds} s.")
        self._change(self._cut, seconds, self._rate)

    def limit(self, bytes_per_second: int) -> None:
        """Carry no more than that in each direction, over all connections; 0 ends it.

        Raises:
            ValueError: less than 0.
        """
        if bytes_per_second < 0:
            raise ValueError(f"A rate cannot be {bytes_per_second} bytes a second.")
        self._change(self._cut, self._delay, bytes_per_second)

    def heal(self) -> None:
        """Carry everything again without delay and limit, what was held back first; drop held
        requests."""
        self._change("none", 0.0, 0)
        while self._held:
            self._held.pop().drop()

    def hold(self, kind: str, match: str = "") -> HeldRequest:
        """Hold the next request of a kind: its connection breaks, and it arrives when you say so.

        The client sees a reset and sends the request again, over another connection, as Kafka's
        clients do; that repetition passes. Only what clients send is seen, not what brokers send
        each other.

        Args:
            kind: Kafka's name of the request, such as "EndTxn".
            match: what the request contains, such as a transactional id.

        Raises:
            ValueError: no such kind can be held.
        """
        if kind not in KINDS:
            raise ValueError(f"No request {kind!r} can be held; these can: {', '.join(KINDS)}.")
        order: dict[str, object] = {"hold": KINDS[kind], "match": match.encode().decode("latin-1")}
        number = int(self._carrier.send({"link": self._node_id, **order}))

        def ask(act: str) -> str:
            return self._carrier.send({"link": self._node_id, "held": number, "do": act})

        self._held.append(HeldRequest(f"{kind} to {self.address}", ask))
        return self._held[-1]

    @property
    def held_back(self) -> int:
        """Bytes of requests and answers that wait to be carried."""
        return int(self._carrier.send({"link": self._node_id, "held_back": True}))

    def _change(self, cut: str, delay: float, rate: int) -> None:
        order = {"link": self._node_id, "cut": cut, "delay": delay, "rate": rate}
        self._carrier.send(order)
        self._cut, self._delay, self._rate = cut, delay, rate


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
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(Path(__file__).absolute().parents[2])],
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
            self.send({"link": node_id, "to": to_port})
            return self._links[node_id]
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            (port,) = free_ports(1)
            try:
                self.send({"link": node_id, "port": port, "to": to_port})
            except NodeControlError:
                if attempt == _PORT_ATTEMPTS or self._process.poll() is not None:
                    raise
                continue  # another process took the port
            break
        self._links[node_id] = Link(self, node_id, port)
        return self._links[node_id]

    def send(self, command: dict[str, object]) -> str:
        """Send a command, wait until it is in effect, and return the result of a question.

        Raises:
            NodeControlError: it failed.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
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
        with self._lock, contextlib.suppress(OSError):
            try:
                self._process.communicate(timeout=_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
