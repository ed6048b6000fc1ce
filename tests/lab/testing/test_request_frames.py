"""Requests are found in a stream however it is cut into pieces."""

from __future__ import annotations

import struct

import pytest

from eos_sink_lab.testing.request_frames import KINDS, FoundError, Frames, Hold, Holds


def request(kind: str, number: int, text: bytes) -> bytes:
    body = struct.pack(">hhi", KINDS[kind], 3, number) + text
    return struct.pack(">i", len(body)) + body


FETCH, END, OTHER_END = (
    request("Fetch", 1, b"apples"),
    request("EndTxn", 2, b"orders-id"),
    request("EndTxn", 3, b"payments"),
)
STREAM = FETCH + OTHER_END + END + FETCH


def frames(holds: Holds) -> Frames:
    return Frames(lambda: holds.armed, holds.may_want, holds.find)


def fed(carried: Frames, data: bytes, size: int) -> tuple[bytes, Hold | None]:
    """What passes, and the request that ends it."""
    passed = b""
    try:
        for start in range(0, len(data), size):
            for piece in carried.feed(data[start : start + size]):
                passed += piece
    except FoundError as found:
        return passed, found.hold
    return passed + carried.rest(), None


SIZES = pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 20, 1000])


@SIZES
def test_only_the_request_that_contains_the_text_is_held(size: int) -> None:
    holds = Holds([Hold(KINDS["EndTxn"], b"orders-id")])
    passed, hold = fed(frames(holds), STREAM, size)
    assert (passed, hold) == (FETCH + OTHER_END, holds[0])
    assert holds[0].request == END


@SIZES
def test_everything_passes_while_nothing_is_looked_for(size: int) -> None:
    assert fed(frames(Holds()), STREAM, size) == (STREAM, None)


def test_a_byte_passes_at_once_while_nothing_is_looked_for() -> None:
    carried = frames(Holds())
    assert [b"".join(carried.feed(STREAM[at : at + 1])) for at in range(len(STREAM))] == [
        STREAM[at : at + 1] for at in range(len(STREAM))
    ]


@pytest.mark.parametrize("begun", range(1, len(OTHER_END)))
def test_a_request_that_has_begun_to_pass_is_not_held(begun: int) -> None:
    holds = Holds()
    carried = frames(holds)
    passed = b"".join(carried.feed(END[:begun]))
    holds.append(Hold(KINDS["EndTxn"], b""))
    rest, hold = fed(carried, END[begun:] + OTHER_END, 5)
    assert (passed + rest, hold) == (END, holds[0])
    assert holds[0].request == OTHER_END


@SIZES
def test_what_is_not_the_protocol_of_kafka_passes(size: int) -> None:
    holds = Holds([Hold(KINDS["EndTxn"], b"")])
    data = b"\xff\xff\xff\xfftext" + END
    assert fed(frames(holds), data, size) == (data, None)
