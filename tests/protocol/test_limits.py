"""What a topic takes, and how many rows go through the driver: each limit from both sides."""

from __future__ import annotations

import pytest

from eos_sink.identity import QueryNames
from eos_sink.protocol.inline import NOTHING_INLINE, inline_share, room_after, room_after_failure
from eos_sink.protocol.model import BatchId, Decision, Plan, PlanToken, RowDigest
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.protocol.values import Position
from eos_sink.protocol.written import MOST_RANGES, WrittenNumbers

FOREVER = 2**63 - 1
MB = 1024 * 1024
MOST_BYTES, LEAST_ROOM = 16 * MB, MB // 4


def plan(tasks: int | None, given_up: int = 0) -> Plan:
    token = PlanToken(QueryNames("p", "q"), 1, Position("log", 0, 1), b"")
    decision = None if tasks is None else Decision(BatchId("s", 0), 0, tasks, RowDigest(), ())
    return Plan(token, decision, given_up=given_up)


@pytest.mark.parametrize(
    ("option", "partition", "tasks", "given_up", "share"),
    [
        (65536, 0, None, 0, 65536),
        (16 * MB, 0, None, 0, 16 * MB // 200),
        (16 * MB, 199, None, 0, 16 * MB // 200),
        (16 * MB, 200, None, 0, NOTHING_INLINE),
        # 199 tasks may come that were not expected: each has half of a usual share.
        (16 * MB, 0, 1, 0, 16 * MB - 199 * (16 * MB // 400)),
        (16 * MB, 1, 1, 0, 16 * MB // 400),
        (16 * MB, 199, 1, 0, 16 * MB // 400),
        (16 * MB, 200, 1, 0, NOTHING_INLINE),
        (100, 1, 1, 0, 100),
        (16 * MB, 0, 0, 0, 16 * MB - 199 * (16 * MB // 400)),
        (16 * MB, 299, 300, 0, 16 * MB // 300),
        (16 * MB, 300, 300, 0, NOTHING_INLINE),
        (65536, 0, 1, 1, 65536),
        (65536, 0, 1, 2, 65536 // 4),
        (65536, 0, 1, 4, 65536 // 64),
        (65536, 0, 1, 5, NOTHING_INLINE),
    ],
)
def test_a_task_hands_over_what_the_driver_can_hold_of_all(
    option: int, partition: int, tasks: int | None, given_up: int, share: int
) -> None:
    assert inline_share(option, partition, plan(tasks, given_up)) == share


@pytest.mark.parametrize(
    ("codec", "sure"),
    [
        ("producer", 100_000),
        ("gzip", (100_000 - 128) * 1_000 // 1_001),
        ("snappy", (100_000 - 128) * 50 // 51),
        ("lz4", (100_000 - 128) * 250 // 251),
        ("zstd", (100_000 - 128) * 250 // 251),
    ],
)
def test_a_codec_may_make_a_batch_larger(codec: str, sure: int) -> None:
    assert TopicRules(1, 100_000, codec).sure_bytes == sure
    assert TopicRules(1, 100, codec).sure_bytes == (100 if codec == "producer" else 1)


BASE = {"max.message.bytes": "100", "segment.bytes": "200"}
_BEFORE, _AFTER, _EITHER = (
    f"message.timestamp.{each}.max.ms" for each in ("before", "after", "difference")
)


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({}, TopicRules(3, 100)),
        ({"segment.bytes": "50"}, TopicRules(3, 50)),
        ({_EITHER: "7"}, TopicRules(3, 100, before_ms=7, after_ms=7)),
        ({_EITHER: "7", _AFTER: "5"}, TopicRules(3, 100, before_ms=7, after_ms=5)),
        ({_BEFORE: "5"}, TopicRules(3, 100, before_ms=5)),
        (
            {_BEFORE: "5", _AFTER: "6", "message.timestamp.type": "LogAppendTime"},
            TopicRules(3, 100),
        ),
        ({_BEFORE: "5", "message.timestamp.type": "CreateTime"}, TopicRules(3, 100, before_ms=5)),
        ({"compression.type": "gzip"}, TopicRules(3, 100, "gzip")),
        ({"cleanup.policy": "compact,delete"}, TopicRules(3, 100, keyed=True)),
        ({"cleanup.policy": "delete"}, TopicRules(3, 100)),
    ],
)
def test_the_settings_of_a_topic_are_its_rules(settings: dict[str, str], rules: TopicRules) -> None:
    assert TopicRules.of(3, {**BASE, **settings}) == rules
    assert rules.before_ms <= FOREVER


def test_a_topic_whose_settings_are_not_known_has_no_limits() -> None:
    assert TopicRules.of(3, {}) == TopicRules(3, FOREVER)


KEPT = WrittenNumbers(((3, 5), (8, 8)), forgotten_below=7)


@pytest.mark.parametrize(
    ("number", "written", "forgotten"),
    [
        (2, False, True),
        (3, True, False),
        (5, True, False),
        (6, False, True),
        (7, False, False),
        (8, True, False),
        (9, False, False),
    ],
)
def test_a_number_is_written_forgotten_or_new(number: int, written: bool, forgotten: bool) -> None:
    assert (number in KEPT, KEPT.forgets(number)) == (written, forgotten)
    assert number not in WrittenNumbers()


@pytest.mark.parametrize(
    ("number", "ranges"),
    [
        (1, ((1, 1), (3, 5), (8, 8))),
        (2, ((2, 5), (8, 8))),
        (4, ((3, 5), (8, 8))),
        (6, ((3, 6), (8, 8))),
        (7, ((3, 5), (7, 8))),
        (9, ((3, 5), (8, 9))),
        (11, ((3, 5), (8, 8), (11, 11))),
    ],
)
def test_a_number_that_is_added_joins_its_neighbours(
    number: int, ranges: tuple[tuple[int, int], ...]
) -> None:
    assert KEPT.add(number) == WrittenNumbers(ranges, forgotten_below=7)
    assert WrittenNumbers(((3, 5), (7, 8))).add(6).ranges == ((3, 8),)


def test_the_lowest_range_of_too_many_is_forgotten() -> None:
    full = WrittenNumbers(tuple((2 * n, 2 * n) for n in range(MOST_RANGES)))
    more = full.add(2 * MOST_RANGES)
    assert (more.ranges[0], len(more.ranges)) == ((2, 2), MOST_RANGES)
    assert more.forgotten_below == 1


@pytest.mark.parametrize(
    ("room", "sent", "part", "after"),
    [
        (MOST_BYTES, 60_000, 0.2, MOST_BYTES),
        (2_000_000, 60_000, 0.25, 2_000_000),
        (2_000_000, 1_500_000, 0.25, 3_000_000),
        (MOST_BYTES, MOST_BYTES, 0.2, MOST_BYTES),
        (MOST_BYTES, 6_000_000, 0.75, 2_000_000),
        (1_000_000, 6_000_000, 0.5, 1_000_000),
        (MOST_BYTES, 100, 0.9, LEAST_ROOM),
        (2_560_000, 0, 0.9, 2_570_000),
        (2_560_000, 0, 0.2, 2_570_000),
        (MOST_BYTES, 0, 0.9, MOST_BYTES),
    ],
)
def test_the_driver_takes_as_many_rows_as_it_can_write_in_time(
    room: int, sent: int, part: float, after: int
) -> None:
    assert room_after(room, sent, part) == after


@pytest.mark.parametrize(
    ("room", "sent", "after"),
    [
        (MOST_BYTES, 4_000_000, 1_000_000),
        (300_000, 4_000_000, 300_000),
        (MOST_BYTES, 4 * LEAST_ROOM, MOST_BYTES),
        (MOST_BYTES, 4 * LEAST_ROOM + 4, LEAST_ROOM + 1),
        (MOST_BYTES, 9, MOST_BYTES),
    ],
)
def test_a_decision_that_fails_leaves_less_room_for_rows(room: int, sent: int, after: int) -> None:
    assert room_after_failure(room, sent) == after
