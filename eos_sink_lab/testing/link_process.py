"""Carries the connections between clients and brokers, and disturbs them on command.

It runs as a process (`python link_process.py`, standard library only), so that it does not compete
for the interpreter of the tests. Commands are lines of JSON; each is answered with a line when it
is in effect:

    {"link": 1, "port": 20001, "to": 20002}    listen, and lead to that port from now on
    {"link": 1, "cut": "none|all|answers|reset", "delay": 0.0}
    {"link": 1, "held_back": true}             answered with a number of bytes

It ends when its input ends or its parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import resource
import socket
import struct
import sys
import termios
from typing import Any

HOST = "127.0.0.1"
DONE = "done"

_CHUNK = 64 * 1024
# What may wait in one direction of a connection; a delay needs room for all that is under way.
_MOST_WAITING = 1024 * 1024
_MOST_DELAYED = 64 * 1024 * 1024
_CHECK_PARENT_EVERY_S = 0.5
_BACKLOG = 128
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST and discards what is unsent


class Flow:
    """One direction of a connection."""

    def __init__(
        self, link: Link, source: socket.socket, sink: socket.socket, cuts: set[str]
    ) -> None:
        self._link, self._source, self._sink = link, source, sink
        self._cuts = cuts
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._size = 0
        self._room = asyncio.Event()

    @property
    def held_back(self) -> int:
        """Bytes of the source that have not been written to the sink."""
        unread = fcntl.ioctl(self._source, termios.FIONREAD, bytes(4))
        return self._size + int(struct.unpack("i", unread)[0])

    @property
    def _is_cut(self) -> bool:
        return self._link.cut in self._cuts

    async def read(self) -> None:
        loop = asyncio.get_running_loop()
        data = b"first"
        while data:
            while self._is_cut:
                await self._link.changed.wait()
            while self._size >= (_MOST_DELAYED if self._link.delay else _MOST_WAITING):
                self._room.clear()
                await self._room.wait()
            data = await loop.sock_recv(self._source, _CHUNK)
            self._size += len(data)
            self._waiting.put_nowait((loop.time() + self._link.delay, data))

    async def write(self) -> None:
        """Write what is due, and the end of the stream after the last of it."""
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._waiting.get()
            # A delay that was lifted makes everything due.
            while self._is_cut or (self._link.delay and due > loop.time()):
                timeout = None if self._is_cut else due - loop.time()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._link.changed.wait(), timeout)
            if not data:
                self._sink.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(self._sink, data)
            self._size -= len(data)
            self._room.set()


class Connection:
    """A client's connection, and the one to the broker that belongs to it."""

    def __init__(self, link: Link, client: socket.socket) -> None:
        self._link = link
        self._client, self._broker = client, socket.socket()
        for end in (self._client, self._broker):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._requests = Flow(link, self._client, self._broker, {"all"})
        self._answers = Flow(link, self._broker, self._client, {"all", "answers"})
        self.task = asyncio.create_task(self._carry())

    @property
    def held_back(self) -> int:
        return self._requests.held_back + self._answers.held_back

    async def _carry(self) -> None:
        """Carry both directions to their ends; any error resets both connections."""
        tasks: list[asyncio.Task[None]] = []
        try:
            while self._link.cut == "all":
                await self._link.changed.wait()
            address = (HOST, self._link.to)
            await asyncio.get_running_loop().sock_connect(self._broker, address)
            for flow in (self._requests, self._answers):
                tasks += [asyncio.create_task(flow.read()), asyncio.create_task(flow.write())]
            await asyncio.gather(*tasks)
        except (OSError, asyncio.CancelledError):
            for end in (self._client, self._broker):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._client.close()
            self._broker.close()
            self._link.connections.discard(self)


class Link:
    """The network between clients and one broker."""

    def __init__(self, port: int) -> None:
        self.to = 0
        self.cut = "none"
        self.delay = 0.0
        self.changed = asyncio.Event()
        self.connections: set[Connection] = set()
        self._listener = socket.create_server((HOST, port), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    @property
    def held_back(self) -> int:
        return sum(connection.held_back for connection in self.connections)

    async def change(self, cut: str, delay: float) -> None:
        self.cut, self.delay = cut, delay
        self.changed.set()
        self.changed = asyncio.Event()
        if cut == "reset":
            tasks = [connection.task for connection in self.connections]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            client, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            if self.cut == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                client.close()
            else:
                self.connections.add(Connection(self, client))


async def execute(command: dict[str, Any], links: dict[int, Link]) -> int:
    """Execute a command of the parent; return what a question asks for."""
    number = int(command["link"])
    if "to" in command:
        if number not in links:
            links[number] = Link(command["port"])
        links[number].to = command["to"]
    elif "held_back" in command:
        return links[number].held_back
    else:
        await links[number].change(command["cut"], command["delay"])
    return 0


async def end_with_parent() -> None:
    """End when the parent is gone; a child that it forked may hold the pipe open."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_CHECK_PARENT_EVERY_S)
    os._exit(0)


async def main() -> None:
    """Carry connections until the input ends."""
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    watching = asyncio.create_task(end_with_parent())
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    links: dict[int, Link] = {}
    while line := await commands.readline():
        try:
            answer = f"{DONE} {await execute(json.loads(line), links)}"
        except OSError as error:
            answer = f"{error}"
        print(answer, flush=True)  # noqa: T201 - the answer to the parent
    watching.cancel()


if __name__ == "__main__":
    asyncio.run(main())
