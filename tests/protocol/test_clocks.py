"""The age of a transaction is a matter of the brokers' clocks: the driver's own may be wrong."""

from __future__ import annotations

import pytest

from eos_sink.driver.committer import Committer
from eos_sink.errors import CommitFailedError
from tests.fakes.kafka import FakeKafka
from tests.protocol.test_stories import Driver
from tests.protocol.world import World

HOUR_MS = 3_600_000


@pytest.fixture
def world() -> World:
    return World([])


def wrong(world: World, off_ms: int) -> Driver:
    """A driver whose machine's clock is off."""
    driver = Driver(world)
    clock = world.cluster.clock
    driver.committer = Committer(
        FakeKafka(world.cluster), world.options, now_ms=lambda: clock.ms + off_ms
    )
    return driver


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_driver_with_a_wrong_clock_decides(world: World, off_ms: int) -> None:
    wrong(world, off_ms).run(0, [b"a"])
    assert world.visible() == [b"a"]


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_driver_with_a_wrong_clock_decides_nothing_near_a_time_out(
    world: World, off_ms: int
) -> None:
    driver = wrong(world, off_ms)
    reports = driver.write(driver.planner.plan(), 0, [b"a"])
    world.cluster.clock.advance(55)
    with pytest.raises(CommitFailedError) as error:
        driver.committer.commit(reports)
    assert error.value.data == {"left_ms": 5_000}
    driver.committer.abort(reports)
    assert world.visible() == []
