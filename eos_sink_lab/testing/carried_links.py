"""The links of a cluster in their process: what comes over a connection, and what becomes of it.

A request that is held takes its client's connection with it: that is reset. The connection to the
broker stays, as it does on a network that lost a client's reset or still carries what was sent
before it, and the request arrives by it when it is delivered. What the client sent behind the
request is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios

from eos_sink_lab.testing.request_frames import (
    ANSWERED,
    BROKEN,
    DELIVERED,
    DROPPED,
    HELD,
    FoundError,
    Frames,
    Hold,
    Holds,
    Logins,
    RefusedError,
)

HOST = "127.0.0.1"

# The directions of a link, by the cuts that each suffers from.
REQUESTS, ANSWERS = frozenset({"all"}), frozenset({"all", "answers"})

_CHUNK = 64 * 1024
# What may wait in one direction of a connection; a delay needs room for all that is under way.
_MOST_WAITING = 1024 * 1024
_MOST_DELAYED = 64 * 1024 * 1024
_BACKLOG = 128
# A broker closes the connection so long after it has refused a login, by default
# (connection.failed.authentication.delay.ms), so that the client can read why.
_REFUSED_S = 0.1
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST and discards what is unsent


class Flow:
    """One direction of a connection.

    Args:
        link: it is a part of.
        source, sink: where from and where to.
        cuts: those that it suffers from.
        frames: what it carries, as frames; ends the reading with FoundError.

    Attributes:
        discards: what is read goes nowhere.
    """

    def __init__(
        self,
        link: Link,
        source: socket.socket,
        sink: socket.socket,
        cuts: frozenset[str],
        frames: Frames,
    ) -> None:
        self._link, self._source, self._sink = link, source, sink
        self._cuts = cuts
        self._frames = frames
        self.discards = False
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._size = 0
        self._room = asyncio.Event()

    @property
    def held_back(self) -> int:
        """Bytes of the source that have not been written to the sink."""
        if self._source.fileno() < 0:
            return self._size
        unread = fcntl.ioctl(self._source, termios.FIONREAD, bytes(4))
        return self._size + self._frames.waiting + int(struct.unpack("i", unread)[0])

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
            for piece in self._frames.feed(data):
                self.carry(piece)
        if rest := self._frames.rest():
            self.carry(rest)
        self.carry(b"")

    def carry(self, data: bytes) -> None:
        """Let it arrive after what came before; nothing is the end of the stream."""
        if self.discards:
            return
        self._size += len(data)
        due = asyncio.get_running_loop().time() + self._link.delay
        self._waiting.put_nowait((due, data))

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
            await self._link.pace(self._cuts, len(data))
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
        self._held: Hold | None = None
        holds, logins = link.holds, link.logins

        def find(request: bytes) -> None:
            if logins.is_one(request):
                logins.find(request)
            holds.find(request)

        requests = Frames(
            lambda: holds.armed or logins.counts,
            lambda head: logins.is_one(head) or holds.may_want(head),
            find,
        )
        answers = Frames(lambda: False, self._answers_held, self._end)
        self._requests = Flow(link, self._client, self._broker, REQUESTS, requests)
        self._answers = Flow(link, self._broker, self._client, ANSWERS, answers)
        self.task = asyncio.create_task(self._carry())

    @property
    def held_back(self) -> int:
        return self._requests.held_back + self._answers.held_back

    def forget(self) -> None:
        self._requests.discards = self._answers.discards = True

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
            try:
                await asyncio.gather(*tasks)
            except FoundError as found:
                _, _, reading_answers, writing_answers = tasks
                writing_answers.cancel()
                await self._keep(found.hold, reading_answers)
        except RefusedError as refused:
            await asyncio.get_running_loop().sock_sendall(self._client, refused.answer)
            await asyncio.sleep(_REFUSED_S)
        except (OSError, asyncio.CancelledError):
            for end in (self._client, self._broker):
                reset(end)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._client.close()
            self._broker.close()
            self._link.connections.discard(self)

    async def _keep(self, hold: Hold, reading_answers: asyncio.Task[None]) -> None:
        """Break the client's connection; keep the broker's until the held request is answered."""
        self._answers.discards = True
        reset(self._client)
        self._client.close()
        self._held = hold
        hold.deliver = lambda: self._requests.carry(hold.request)
        hold.drop = self._drop
        hold.state = HELD
        try:
            await reading_answers
        except FoundError:
            hold.state = ANSWERED
        finally:
            if hold.state in (HELD, DELIVERED):
                hold.state = BROKEN

    def _drop(self) -> None:
        self.task.cancel()

    def _answers_held(self, head: bytes) -> bool:
        return self._held is not None and self._held.is_answered_by(head)

    def _end(self, answer: bytes) -> None:  # noqa: ARG002 - only its coming counts
        assert self._held is not None
        raise FoundError(self._held)


def reset(end: socket.socket) -> None:
    """Let its close send RST; without effect if it is closed."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


class Link:
    """The network between clients and one broker."""

    def __init__(self, port: int) -> None:
        self.to = 0
        self.cut = "none"
        self.delay = 0.0
        self.rate = 0
        self._free_at = {REQUESTS: 0.0, ANSWERS: 0.0}
        self.changed = asyncio.Event()
        self.connections: set[Connection] = set()
        self.holds = Holds()
        self.logins = Logins()
        self._listener = socket.create_server((HOST, port), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    @property
    def held_back(self) -> int:
        return sum(connection.held_back for connection in self.connections)

    async def pace(self, direction: frozenset[str], size: int) -> None:
        """Wait until so many bytes have gone in a direction, over all connections."""
        if self.rate:
            now = asyncio.get_running_loop().time()
            self._free_at[direction] = max(now, self._free_at[direction]) + size / self.rate
            await asyncio.sleep(self._free_at[direction] - now)

    async def change(self, cut: str, delay: float, rate: int) -> None:
        self.cut, self.delay, self.rate = cut, delay, rate
        self.changed.set()
        self.changed = asyncio.Event()
        if cut == "reset":
            tasks = [connection.task for connection in self.connections]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def strike(self, number: int, act: str) -> str:
        """Deliver or drop a request; return its state afterwards, or the present one."""
        hold = self.holds[number]
        if act == "deliver" and hold.state == HELD:
            hold.state = DELIVERED
            hold.deliver()
        elif act == "drop" and hold.state not in (ANSWERED, BROKEN):
            hold.state = DROPPED
            hold.drop()
        return hold.state

    async def _accept(self) -> None:
        while True:
            client, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            if self.cut == "reset":
                reset(client)
                client.close()
            else:
                self.connections.add(Connection(self, client))
