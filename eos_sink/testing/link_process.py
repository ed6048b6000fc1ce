"""Carries the connections between clients and brokers, and disturbs them when it is told to.

Runs as a process of its own (`python link_process.py TOKEN`, standard library only), so that it
takes no turn of the interpreter that runs the tests. Commands come line by line as JSON and each
is answered with a line when it holds:

    {"link": 1, "port": 20001, "to": 20002}    listen, and lead to that port from now on
    {"link": 1, "cut": "none|all|answers|reset", "delay": 0.0}
    {"link": 1, "held_back": true}             answered with a number of bytes

It ends when its input ends or its parent is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import json
import os
import resource
import selectors
import socket
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Callable
from typing import Any

HOST = "127.0.0.1"
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

_CHUNK = 256 * 1024
# What may wait in one direction of a connection; a delay needs room for all that is under way.
_MOST_WAITING = 1024 * 1024
_MOST_DELAYED = 64 * 1024 * 1024
_CHECK_PARENT_EVERY_S = 0.5
_BACKLOG = 128
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST and forgets what is unsent

DONE = "done"


class Loop:
    """Calls back when a socket is ready or a time has come; nothing is asked for in vain."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def want(self, file: Any, events: int, callback: Callable[[int], None]) -> None:
        """From now on call back for these events only; 0 for none."""
        known = self._selector.get_map().get(file)
        if known is None:
            if events:
                self._selector.register(file, events, callback)
        elif not events:
            self._selector.unregister(file)
        elif known.events != events:
            self._selector.modify(file, events, callback)

    def at(self, when: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (when, next(self._count), callback))

    def turn(self) -> None:
        wait = _CHECK_PARENT_EVERY_S
        if self._timers:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        for key, events in self._selector.select(wait):
            key.data(events)
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()


class Flow:
    """One direction of a connection: what was read and is not yet written."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self._source, self._sink = source, sink
        self._delay = 0.0
        self._frozen = False
        self._ended = False  # the source has said its last
        self.closed = False  # and the sink knows
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self._size = 0

    @property
    def wants_to_read(self) -> bool:
        most = _MOST_DELAYED if self._delay else _MOST_WAITING
        return not (self._frozen or self._ended) and self._size < most

    @property
    def wants_to_write(self) -> bool:
        due = bool(self._waiting) and self._waiting[0][0] <= time.monotonic()
        return due and not self._frozen

    @property
    def held_back(self) -> int:
        """Bytes of the source that have not been written to the sink."""
        if self._source.fileno() < 0:
            return 0
        unread = fcntl.ioctl(self._source, termios.FIONREAD, bytes(4))
        return self._size + int(struct.unpack("i", unread)[0])

    def change(self, frozen: bool, delay: float) -> None:
        self._frozen, self._delay = frozen, delay
        if not delay:  # it has been lifted: everything is due
            self._waiting = deque((0.0, data) for _, data in self._waiting)

    def read(self) -> float | None:
        """When what was read is to be written, if that is later."""
        with contextlib.suppress(BlockingIOError):
            data = self._source.recv(_CHUNK)
            if not data:
                self._ended = True
                return None
            due = time.monotonic() + self._delay if self._delay else 0.0
            self._waiting.append((due, memoryview(data)))
            self._size += len(data)
            return due or None
        return None

    def write(self) -> None:
        """Write what is due, and the end after the last of it."""
        with contextlib.suppress(BlockingIOError):
            while self.wants_to_write:
                due, data = self._waiting[0]
                sent = self._sink.send(data)
                self._size -= sent
                if sent < len(data):
                    self._waiting[0] = (due, data[sent:])
                    return
                self._waiting.popleft()
        if self._ended and not (self._waiting or self._frozen or self.closed):
            self.closed = True
            self._sink.shutdown(socket.SHUT_WR)


class Connection:
    """A client's connection and the one to the broker that goes with it."""

    def __init__(self, loop: Loop, client: socket.socket) -> None:
        self._loop = loop
        self._client = client
        self._broker = socket.socket()
        for end in (self._client, self._broker):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._requests = Flow(self._client, self._broker)
        self._answers = Flow(self._broker, self._client)
        self._frozen = False
        self._connected = False
        self.gone = False

    def open(self, port: int) -> None:
        """Connect to the broker; a client whose broker is dead is told by a reset."""
        try:
            self._broker.connect((HOST, port))
        except BlockingIOError:
            pass
        except OSError:
            self.reset()
        self._go_on()

    def change(self, cut: str, delay: float) -> None:
        self._frozen = cut == "all"
        self._requests.change(self._frozen, delay)
        self._answers.change(cut in {"all", "answers"}, delay)
        self._go_on()

    @property
    def held_back(self) -> int:
        return self._requests.held_back + self._answers.held_back

    def reset(self) -> None:
        """Break it at both ends."""
        for end in (self._client, self._broker):
            if end.fileno() >= 0:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._close()

    def _close(self) -> None:
        self.gone = True
        for end in (self._client, self._broker):
            if end.fileno() >= 0:
                self._loop.want(end, 0, self._ready)
                end.close()

    def _ready(self, _: int) -> None:
        try:
            if not self._connected:
                self._connected = self._finish_connecting()
            for flow in (self._requests, self._answers):
                due = flow.read() if flow.wants_to_read else None
                if due is not None:
                    self._loop.at(due, self._go_on)
        except OSError:
            self.reset()
        self._go_on()

    def _finish_connecting(self) -> bool:
        error = self._broker.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, "the broker does not take the connection")
        with contextlib.suppress(OSError):
            self._broker.getpeername()
            return True
        return False

    def _go_on(self) -> None:
        """Write what is due, then wait for what can be done next."""
        if self.gone:
            return
        requests, answers = self._requests, self._answers
        if not self._connected:
            self._loop.want(self._broker, 0 if self._frozen else WRITE, self._ready)
            return
        try:
            requests.write()
            answers.write()
        except OSError:
            self.reset()
            return
        if requests.closed and answers.closed:
            self._close()
            return
        self._loop.want(self._client, _events(requests, answers), self._ready)
        self._loop.want(self._broker, _events(answers, requests), self._ready)


def _events(reading: Flow, writing: Flow) -> int:
    return (READ if reading.wants_to_read else 0) | (WRITE if writing.wants_to_write else 0)


class Link:
    """The way of the clients to one broker."""

    def __init__(self, loop: Loop, port: int) -> None:
        self.to = 0
        self._loop = loop
        self._cut = "none"
        self._delay = 0.0
        self._connections: list[Connection] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((HOST, port))
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)

    @property
    def held_back(self) -> int:
        return sum(connection.held_back for connection in self._connections)

    def change(self, cut: str, delay: float) -> None:
        self._cut, self._delay = cut, delay
        # A frozen link leaves new connections to the system, where they hang.
        self._loop.want(self._listener, 0 if cut == "all" else READ, self._accept)
        for connection in self._connections:
            if cut == "reset":
                connection.reset()
            else:
                connection.change(cut, delay)

    def _accept(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            client, _address = self._listener.accept()
            connection = Connection(self._loop, client)
            if self._cut == "reset":
                connection.reset()
                return
            connection.open(self.to)
            connection.change(self._cut, self._delay)
            self._connections = [c for c in (*self._connections, connection) if not c.gone]


class Commands:
    """What the parent says, line by line."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._links: dict[int, Link] = {}
        self._said = b""
        self.ended = False
        loop.want(sys.stdin.fileno(), READ, self._read)

    def _read(self, _: int) -> None:
        chunk = os.read(sys.stdin.fileno(), 65536)
        self.ended = not chunk
        *lines, self._said = (self._said + chunk).split(b"\n")
        for line in lines:
            try:
                answer = f"{DONE} {self._do(json.loads(line))}"
            except OSError as error:
                answer = f"{error}"
            print(answer, flush=True)  # noqa: T201 - the answer to the parent

    def _do(self, command: dict[str, Any]) -> int:
        number = int(command["link"])
        if "to" in command:
            if number not in self._links:
                self._links[number] = Link(self._loop, command["port"])
            self._links[number].to = command["to"]
        elif "held_back" in command:
            return self._links[number].held_back
        self._links[number].change(command.get("cut", "none"), command.get("delay", 0.0))
        return 0


def main() -> None:
    """Carry connections until the parent has ended."""
    parent = os.getppid()
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    loop = Loop()
    commands = Commands(loop)
    while not commands.ended and os.getppid() == parent:
        loop.turn()


if __name__ == "__main__":
    main()
