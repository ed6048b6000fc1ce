"""Order along keys, and rows over time."""

from __future__ import annotations

from eos_sink.verify.order import Order
from eos_sink.verify.timeline import Timeline


def test_a_row_behind_a_later_one_of_its_key_is_out_of_order() -> None:
    order = Order()
    for offset, (key, place) in enumerate([(b"a", 1), (b"b", 5), (b"a", 3), (b"a", 2), (b"b", 5)]):
        order.add(0, offset, key, place)
    assert (order.wrong, order.examples) == (1, [(0, 3, b"a", 2, 3)])
    assert order.keys_in_several == 0


def test_order_holds_within_a_partition_and_keys_in_several_are_counted() -> None:
    order = Order()
    order.add(0, 0, b"a", 9)
    order.add(1, 0, b"a", 1)
    assert (order.wrong, order.keys_in_several) == (0, 1)


def test_what_cannot_be_compared_is_counted_and_not_judged() -> None:
    order = Order()
    for place in (1, "x", None, 2):
        order.add(0, 0, b"a", place)
    assert (order.wrong, order.silent) == (0, 2)


def test_no_more_keys_are_remembered_than_there_is_room_for() -> None:
    order = Order(most_keys=2)
    for key in (b"a", b"b", b"c", b"c", b"a"):
        order.add(0, 0, key, 1)
    assert order.unfollowed == 2


def test_bins_grow_with_the_time_they_span() -> None:
    timeline = Timeline()
    for time_ms in (1_000, 1_500, 2_000):
        timeline.add(time_ms)
    assert timeline.bins() == {1_000: 2, 2_000: 1}
    for second in range(5_000):
        timeline.add(second * 1_000)
    timeline.add(2**62)
    timeline.add(-(2**62))
    bins = timeline.bins()
    assert len(bins) <= 2_048
    assert sum(bins.values()) == 5_005
