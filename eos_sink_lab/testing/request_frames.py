"""Finds requests of Kafka's protocol in what clients send, for the links that hold one of them.

A part of the process of `link_process.py`: standard library only.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterator

KINDS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "CreateTopics": 19,
    "DeleteTopics": 20,
    "DeleteRecords": 21,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28,
    "DescribeProducers": 61,
    "DescribeTransactions": 65,
    "ListTransactions": 66,
}
"""The kinds of requests that a link can hold, and the numbers that Kafka knows them by."""

ARMED, HELD, DELIVERED, ANSWERED, BROKEN, DROPPED = (
    *("armed", "held", "delivered", "answered", "broken", "dropped"),
)

_SASL_AUTHENTICATE, _AUTHENTICATION_FAILED, _FLEXIBLE = 36, 58, 2
_SIZE = 4
_HEAD = _SIZE + 4
_ALL_THAT_COMES = 1 << 62


class Hold:
    """A request that is looked for, or was found.

    Args:
        key: the number of its kind.
        match: bytes that it contains.

    Attributes:
        state: one of the six above.
        request: its bytes; empty until it is found.
        deliver: sends it to its broker; set when it is held.
        drop: ends its connection to the broker; set when it is held.
    """

    def __init__(self, key: int, match: bytes) -> None:
        self.key, self._match = key, match
        self.state = ARMED
        self.request = b""
        self.deliver: Callable[[], None] = lambda: None
        self.drop: Callable[[], None] = lambda: None

    def wants(self, request: bytes) -> bool:
        return self.state == ARMED and _key(request) == self.key and self._match in request

    def is_answered_by(self, head: bytes) -> bool:
        """Whether an answer that begins so has the number of the request."""
        return head[_SIZE:_HEAD] == self.request[_HEAD : _HEAD + 4]


class FoundError(Exception):
    """A request that is to be held, or the answer of the one that was held, has come."""

    def __init__(self, hold: Hold) -> None:
        super().__init__(hold.key)
        self.hold = hold


class Holds(list[Hold]):
    """Those of a link."""

    @property
    def armed(self) -> bool:
        return any(hold.state == ARMED for hold in self)

    def may_want(self, head: bytes) -> bool:
        """Whether a request that begins so is looked for."""
        return any(hold.state == ARMED and hold.key == _key(head) for hold in self)

    def find(self, request: bytes) -> None:
        """Raise FoundError for one that is to be held."""
        for hold in self:
            if hold.wants(request):
                hold.request = request
                raise FoundError(hold)


class RefusedError(Exception):
    """A login that is one too many has come; it has the answer."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("Too many connects")
        self.answer = answer


class Logins:
    """Counts a link's logins, and refuses those above a limit as Amazon MSK does.

    Attributes:
        counts: whether it was asked to; from then on, they wait for their first bytes.
        most: in a second; None: any number.
        tried: how many there were, with those that were refused.
    """

    def __init__(self) -> None:
        self.counts = False
        self.most: int | None = None
        self.tried = 0
        self._accepted: deque[float] = deque()

    def is_one(self, head: bytes) -> bool:
        """Whether a request that begins so is a login by PLAIN, which is one request."""
        return self.counts and _key(head) == _SASL_AUTHENTICATE

    def find(self, request: bytes) -> None:
        """Raise RefusedError for one too many."""
        self.tried += 1
        now = time.monotonic()
        while self._accepted and now - self._accepted[0] >= 1:
            self._accepted.popleft()
        if self.most is None or len(self._accepted) < self.most:
            self._accepted.append(now)
            return
        # SaslAuthenticateResponse.json; the flexible version has a tag buffer in its header, too.
        version = int.from_bytes(request[_SIZE + 2 : _SIZE + 4], "big")
        text = b"Too many connects"
        body = struct.pack(">h", _AUTHENTICATION_FAILED)
        if version < _FLEXIBLE:
            body += struct.pack(f">h{len(text)}si", len(text), text, 0) + bytes(8 * version)
        else:
            body = bytes(1) + body + bytes([len(text) + 1]) + text + bytes([1]) + bytes(9)
        answer = request[_HEAD : _HEAD + 4] + body
        raise RefusedError(struct.pack(">i", len(answer)) + answer)


class Frames:
    """One direction of a connection, as frames: four bytes with a size, and so many bytes.

    Bytes pass as they come. Only a frame that `wants` its first eight bytes is collected; the
    first bytes of one also wait for the others while something is looked for.

    Args:
        looks: whether something is looked for.
        wants: whether a frame that begins so is collected.
        find: called with a frame that was collected, before it passes; may raise FoundError.
    """

    def __init__(
        self,
        looks: Callable[[], bool],
        wants: Callable[[bytes], bool],
        find: Callable[[bytes], None],
    ) -> None:
        self._looks, self._wants, self._find = looks, wants, find
        self._kept = bytearray()
        self._passed = 0  # of those that are kept
        self._left = 0  # of a frame that passes

    @property
    def waiting(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._kept) - self._passed

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that pass now."""
        self._kept += data
        while self._kept:
            if self._left:
                yield self._take(self._left)
            elif len(self._kept) < _HEAD:
                break
            elif self._passed or not self._wants(bytes(self._kept[:_HEAD])):
                rest = self._size() - self._passed
                del self._kept[: self._passed]
                self._passed = 0
                # What has no such size is not Kafka's protocol.
                self._left = rest if rest > 0 else _ALL_THAT_COMES
            elif len(self._kept) >= self._size():
                frame = self._take(self._size())
                self._find(frame)
                yield frame
            else:
                return
        if self._kept and not self._looks():
            yield self.rest()

    def rest(self) -> bytes:
        """What waits, which passes now."""
        piece = bytes(self._kept[self._passed :])
        self._passed = len(self._kept)
        return piece

    def _size(self) -> int:
        return _SIZE + int.from_bytes(self._kept[:_SIZE], "big", signed=True)

    def _take(self, size: int) -> bytes:
        piece = bytes(self._kept[:size])
        del self._kept[: len(piece)]
        self._left = max(0, self._left - len(piece))
        return piece


def _key(head: bytes) -> int:
    return int.from_bytes(head[_SIZE : _SIZE + 2], "big")
