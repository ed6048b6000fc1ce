"""Ports that nobody uses."""

from __future__ import annotations

import contextlib
import random
import socket

HOST = "127.0.0.1"

# Below what Linux and macOS hand out to outgoing connections (32768 and up, 49152 and up). From
# that range a client's own connection could take the port of a broker that is down, even connect
# to itself while it tries to reach it.
_RANGE = range(20000, 32000)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that are free now; somebody may be faster, so be ready to ask again."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(_RANGE, len(_RANGE)):
            if len(ports) == count:
                return ports
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            ports.append(port)
    raise OSError(f"No {count} free ports in {_RANGE}.")
