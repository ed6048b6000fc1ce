"""What a process keeps of its queries, and when it closes it."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

from eos_sink.errors import ConfigurationError, OutcomeUnknownError, SupersededError
from eos_sink.options import parse_options
from eos_sink.sink_options import SinkOptions
from eos_sink.spark.client_cache import ClientCache
from tests.fakes.clock import FakeClock


@dataclass
class Value:
    options: SinkOptions
    closed: int = 0
    error: BaseException | None = None

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

    def get(self, servers: str = "a:1,b:1", query: str = "q", run: str = "", **more: str) -> Value:
        with self.lease(servers, query, run, **more) as value:
            return value

    def lease(
        self, servers: str = "a:1,b:1", query: str = "q", run: str = "", **more: str
    ) -> AbstractContextManager[Value]:
        given = {"kafka.bootstrap.servers": servers, "eos.id": query, "topic": "t", **more}
        options = parse_options(given)

        def make() -> Value:
            self.made.append(Value(options))
            return self.made[-1]

        return self.kept.lease(options, make, run)


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


def test_each_run_of_a_query_gets_a_value_of_its_own(world: World) -> None:
    before = world.get(run="1")
    assert world.get(run="1") is before
    assert world.get(run="2") is not before
    assert before.closed == 1


def test_threads_of_one_query_take_turns_and_those_of_others_do_not_wait(world: World) -> None:
    inside, done = threading.Event(), threading.Event()
    parts: list[str] = []

    def hold() -> None:
        with world.lease():
            inside.set()
            assert done.wait(30)
            parts.append("first")

    def follow() -> None:
        with world.lease():
            parts.append("second")

    first, second = threading.Thread(target=hold), threading.Thread(target=follow)
    first.start()
    assert inside.wait(30)
    second.start()
    world.clock.advance(600)
    world.get(query="other")
    assert parts == []
    assert world.closed == [], "a value that is in use was idle"
    done.set()
    for thread in (first, second):
        thread.join(30)
    assert parts == ["first", "second"]


@pytest.mark.parametrize("change", [{"eos.step.timeout.ms": "1000"}, {"servers": " B:1, a:1 "}])
def test_other_options_close_what_was_made_from_those_before(
    world: World, change: dict[str, str]
) -> None:
    before = world.get()
    after = world.get(**change)
    assert before.closed == 1
    assert world.get(**change) is after
    assert not after.closed


def test_a_library_that_the_driver_lacks_is_named_with_its_remedy(world: World) -> None:
    with pytest.raises(ConfigurationError, match="has no module 'kafka'") as raised, world.lease():
        raise ModuleNotFoundError(name="kafka")
    assert "pip install --upgrade eos_sink-*.whl" in raised.value.remedy
    world.get()


def test_what_was_idle_for_ten_minutes_is_closed_when_another_query_asks(world: World) -> None:
    idle, busy = world.get(query="idle"), world.get(query="busy")
    world.clock.advance(599)
    assert world.get(query="busy") is busy
    assert world.closed == []
    world.clock.advance(1)
    world.get(query="busy")
    assert world.closed == [idle]
    assert world.get(query="idle") is not idle


def test_clients_that_have_no_answer_are_not_used_again(world: World) -> None:
    """They may know only brokers that are gone."""
    with pytest.raises(OutcomeUnknownError), world.lease():
        raise OutcomeUnknownError("No answer.", remedy="Start the query again.")
    assert world.closed == world.made
    with pytest.raises(SupersededError), world.lease() as value:
        raise SupersededError("Another run.", remedy="Let it go on.")
    assert world.get() is value


def test_a_query_that_asks_again_after_long_gets_what_it_had(world: World) -> None:
    value = world.get()
    world.clock.advance(86_400)
    assert world.get() is value


def test_a_batch_does_not_fail_because_something_else_could_not_be_closed(world: World) -> None:
    world.get(query="idle").error = OSError("no")
    world.clock.advance(600)
    assert world.get().closed == 0


def test_a_query_does_not_wait_because_the_close_of_its_clients_was_interrupted(
    world: World,
) -> None:
    world.get(query="idle").error = KeyboardInterrupt()
    world.clock.advance(600)
    with pytest.raises(KeyboardInterrupt):
        world.get()
    next_write = threading.Thread(target=lambda: world.get(query="idle"), daemon=True)
    next_write.start()
    next_write.join(5)
    assert not next_write.is_alive()
