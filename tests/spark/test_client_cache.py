"""What a process keeps of its queries, and when it closes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eos_sink.options import SinkOptions, parse_options
from eos_sink.spark.client_cache import ClientCache
from tests.fakes.clock import FakeClock


@dataclass
class Value:
    options: SinkOptions
    closed: int = 0
    error: Exception | None = None

    def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


@dataclass
class World:
    clock: FakeClock = field(default_factory=lambda: FakeClock(0))
    made: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept: ClientCache[Value] = ClientCache(self.clock)

    @property
    def closed(self) -> list[Value]:
        return [value for value in self.made if value.closed]

    def get(self, servers: str = "a:1,b:1", query: str = "q", **more: str) -> Value:
        given = {"kafka.bootstrap.servers": servers, "eos.id": query, "topic": "t", **more}
        options = parse_options(given)

        def make() -> Value:
            self.made.append(Value(options))
            return self.made[-1]

        return self.kept.get(options, make)


@pytest.fixture
def world() -> World:
    return World()


def test_a_query_gets_what_was_made_for_it(world: World) -> None:
    assert world.get() is world.get()
    assert world.get(query="other") is not world.get()
    assert [value.closed for value in world.made] == [0, 0]


def test_the_same_query_of_another_cluster_is_another_one(world: World) -> None:
    one, other = world.get("a:1,b:1"), world.get("c:1")
    assert world.get("a:1,b:1") is one
    assert world.get("c:1") is other
    assert one is not other
    assert not one.closed


@pytest.mark.parametrize("change", [{"eos.step.timeout.ms": "1000"}, {"servers": " B:1, a:1 "}])
def test_other_options_close_what_was_made_from_those_before(
    world: World, change: dict[str, str]
) -> None:
    before = world.get()
    after = world.get(**change)
    assert before.closed == 1
    assert world.get(**change) is after
    assert not after.closed


def test_what_was_idle_for_ten_minutes_is_closed_when_another_query_asks(world: World) -> None:
    idle, busy = world.get(query="idle"), world.get(query="busy")
    world.clock.advance(599)
    assert world.get(query="busy") is busy
    assert world.closed == []
    world.clock.advance(1)
    world.get(query="busy")
    assert world.closed == [idle]
    assert world.get(query="idle") is not idle


def test_a_query_that_asks_again_after_long_gets_what_it_had(world: World) -> None:
    value = world.get()
    world.clock.advance(86_400)
    assert world.get() is value


def test_a_batch_does_not_fail_because_something_else_could_not_be_closed(world: World) -> None:
    world.get(query="idle").error = OSError("no")
    world.clock.advance(600)
    assert world.get().closed == 0
