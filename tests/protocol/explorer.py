"""Play stories with new seeds for a while, the kinds in turns; print the figures and the smallest
failure.

    python -m tests.protocol.explorer [--minutes 60] [--seed N] [streams] [jobs] [sources]

Exit code 1: a story has lost or doubled a row, or came to no end.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from tests.fakes.process import Killed
from tests.protocol.explore_source import SourcePlot, SourceStory
from tests.protocol.explore_streams import StreamPlot, StreamStory
from tests.protocol.plot import Plot
from tests.protocol.scene import Strike
from tests.protocol.spark import SessionDied
from tests.protocol.users import JobStory


class Story(Protocol):
    """A plot and what came of it."""

    plot: Any
    violations: list[str]
    """All that went wrong."""

    @property
    def met(self) -> Counter[str]:
        """How often each error was met."""
        ...

    def play(self) -> object: ...


S = TypeVar("S", bound=Story)


class Kind(NamedTuple):
    """How a seed becomes a plot, and a plot a story."""

    plot: Callable[[int], Any]
    story: Callable[[Any], Story]


KINDS = {
    "streams": Kind(StreamPlot.of, StreamStory),
    "jobs": Kind(Plot.of, JobStory),
    "sources": Kind(SourcePlot.of, SourceStory),
}


def play(story: S) -> S:
    """Play a story; that one of its players ends in an error of Python is a failure, too."""
    try:
        story.play()
    except (Exception, Killed, SessionDied):  # noqa: BLE001 - whatever it is
        story.violations.append(traceback.format_exc())
    return story


def smallest(story: S) -> S:
    """The story without each fault that its failure does not need, and as plain as possible."""
    for plot in _plainer(story.plot):
        less = play(cast("Callable[[Any], S]", type(story))(plot))
        if less.violations:
            return smallest(less)
    return story


def _plainer(plot: Any) -> Iterator[Any]:
    strikes: Sequence[Strike] = plot.strikes
    for at in range(len(strikes)):
        yield replace(plot, strikes=(*strikes[:at], *strikes[at + 1 :]))
    for each in fields(plot):
        if each.name != "strikes" and getattr(plot, each.name) != each.default:
            yield replace(plot, **{each.name: each.default})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol.explorer")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all by default")
    given = parser.parse_args()
    kinds = given.kinds or list(KINDS)
    logging.disable(logging.CRITICAL)
    end, seed = time.monotonic() + given.minutes * 60, given.seed
    met: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    failed: list[tuple[str, int, Story]] = []
    faults = 0
    while time.monotonic() < end:
        for kind in kinds:
            story = play(KINDS[kind].story(KINDS[kind].plot(seed)))
            met[kind].update(story.met)
            faults += len(story.plot.strikes)
            if story.violations:
                failed.append((kind, seed, story))
                _say([f"{kind} {seed} failed"])
        seed += 1
    _say([f"{seed - given.seed} stories of each kind from seed {given.seed}, {faults} faults"])
    for kind in kinds:
        _say(f"{kind:8} {number:8} {what}" for what, number in sorted(met[kind].items()))
    if failed:
        kind, first, story = min(failed, key=lambda each: len(each[2].plot.strikes))
        small = smallest(story)
        _say([f"{len(failed)} failed; the smallest of them, {kind} {first}:", show(small.plot)])
        _say(small.violations)
    return 1 if failed else 0


def show(plot: Any) -> str:
    """The plot as code."""
    strikes = [
        f"Strike({each.fault}, {each.at}, {each.wake}, {each.until})" for each in plot.strikes
    ]
    others = [
        f"{each.name}={getattr(plot, each.name)!r}"
        for each in fields(plot)
        if each.name != "strikes" and getattr(plot, each.name) != each.default
    ]
    return f"{type(plot).__name__}(({''.join(f'{each}, ' for each in strikes)}), {others})"


def _say(lines: Iterable[str]) -> None:
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
