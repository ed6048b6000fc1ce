"""The output of `eos-sink watch`: a picture, lines, JSON."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

import eos_sink.__main__ as program
from eos_sink import cli
from eos_sink.cli.output import CommandError
from eos_sink.cli.watch_command import take_update
from eos_sink.cli.watch_views import (
    JsonLines,
    Lines,
    Picture,
    Update,
    View,
    draw_bars,
    make_view,
)
from eos_sink.kafka_config.acls import Resource
from eos_sink.ops.activity import ActivityTracker
from eos_sink.ops.observer import Observer
from tests.fakes.admin import FakeAdmin
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import World


class Watching:
    """Takes updates of a world."""

    def __init__(self, world: World) -> None:
        self.admin = FakeAdmin(world.cluster)
        clock = world.cluster.clock
        self._observer = Observer(self.admin, world.options.names.prefix, lambda: clock.ms)
        self._tracker = ActivityTracker()

    def update(self) -> Update:
        words = ["watch", "--bootstrap-server", "kafka:9092"]
        return take_update(self._observer, self._tracker, cli.parser().parse_args(words))


class Shown:
    """A view that shows a world."""

    def __init__(self, world: World, make: Callable[[io.StringIO], View]) -> None:
        self.watching = Watching(world)
        self._out = io.StringIO()
        self._view = make(self._out)

    def look(self) -> str:
        """What one more look adds."""
        before = self._out.tell()
        self._view.show(self.watching.update())
        return self._out.getvalue()[before:]


def test_each_event_is_one_line(world: World) -> None:
    driver, shown = Driver(world), Shown(world, Lines)
    driver.run(0, [b"a"])
    first = shown.look()
    assert "Queries: 1." in first
    assert "decided, 1 rows" in first
    assert first.rstrip().endswith("settled")
    assert shown.look() == ""
    driver.run(1, [b"b", b"c"])
    assert len(shown.look().splitlines()) == 2


def test_an_alert_is_shown_when_it_comes_and_again_when_it_comes_back(world: World) -> None:
    driver = Driver(world)
    driver.run(0, [b"a"])
    shown = Shown(world, Lines)
    assert "!" not in shown.look()
    driver.write(driver.planner.plan(), 1, [b"b"])
    world.cluster.clock.advance(0.9 * world.options.transaction_timeout_ms / 1000)
    told = shown.look()
    assert "! " in told
    assert "timeout" in told
    assert "!" not in shown.look()
    driver.run(1, [b"b"])
    assert "!" not in shown.look()


def test_each_thing_that_is_not_seen_is_shown(world: World) -> None:
    Driver(world).run(0, [b"a"])
    shown = Shown(world, Lines)
    shown.watching.admin.denied |= {Resource.TRANSACTIONAL_ID, Resource.GROUP}
    assert shown.look().count("! ") == 2
    assert "!" not in shown.look()


def test_a_look_is_a_json_object_on_one_line(world: World) -> None:
    shown = Shown(world, JsonLines)
    empty = json.loads(shown.look())
    assert (empty["queries"], empty["events"]) == ([], [])
    decide_and_die(world)
    text = shown.look()
    assert text.count("\n") == 1
    document = json.loads(text)
    assert document["queries"][0]["readers_behind"] == 2
    assert [each["event"] for each in document["events"]] == ["started", "decided"]
    assert document["events"][1]["rows"] == 2


def test_the_picture_has_a_row_a_query_and_the_latest_events(world: World) -> None:
    driver = Driver(world)
    for batch in range(3):
        driver.run(batch, [b"a"] * (batch + 1))
    picture = Picture(Console(file=io.StringIO(), width=200), "eos-sink watch")
    console = Console(file=io.StringIO(), width=200)
    console.print(picture.draw(Watching(world).update()))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert world.options.names.query in text
    assert "settled" in text
    assert "decided, 3 rows" in text
    assert draw_bars([1, 2, 3]) in text


def test_a_column_s_height_is_its_share_of_the_greatest() -> None:
    assert draw_bars([0, 7, 14]) == "▁▅█"
    assert draw_bars([]) == ""
    assert draw_bars([0, 0]) == "▁▁"


def test_a_pipe_gets_lines_and_a_terminal_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()

    def made(*, as_json: bool = False, lines: bool = False) -> type[View]:
        return type(make_view(out, as_json=as_json, lines=lines, title=""))

    assert made() is Lines
    assert made(as_json=True) is JsonLines
    monkeypatch.setattr(out, "isatty", lambda: True)
    assert made() is Picture
    assert made(lines=True) is Lines
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"pip install 'eos-sink\[cli\]'"):
        made()


@pytest.mark.parametrize(("command", "code"), [("watch", 0), ("status", 130)])
def test_ctrl_c_within_a_call_of_the_kafka_client_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    """confluent-kafka turns it into a SystemError: seen in `describe_topics`, 1 time in 75."""

    def interrupted(*_: object, **__: object) -> None:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(Observer, "look", interrupted)
    monkeypatch.setattr(sys, "argv", ["eos-sink", command, "--bootstrap-server", "127.0.0.1:1"])
    assert program.main() == code


@pytest.mark.parametrize("command", ["watch", "status"])
def test_a_signal_within_a_call_of_the_kafka_client_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def terminated(*_: object, **__: object) -> None:
        raise SystemError("returned a result with an exception set") from SystemExit(143)

    monkeypatch.setattr(Observer, "look", terminated)
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--bootstrap-server", "127.0.0.1:1"])
    assert ended.value.code == 143


def test_any_other_system_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise SystemError

    monkeypatch.setattr(Observer, "look", broken)
    for command in ("watch", "status"):
        with pytest.raises(SystemError):
            cli.main([command, "--bootstrap-server", "127.0.0.1:1"])
