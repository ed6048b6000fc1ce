"""Play stories of jobs with new seeds for a while; print the figures and the smallest failure.

    python -m tests.protocol.explore_jobs [--minutes 60] [--seed N]

Exit code 1: a story has lost or doubled a row, or came to no end.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tests.protocol.plot import Plot
from tests.protocol.users import JobStory, Pair


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol.explore_jobs")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    end, seed = time.monotonic() + given.minutes * 60, given.seed
    pairs: Counter[Pair] = Counter()
    strikes = 0
    failed: list[tuple[int, JobStory]] = []
    while time.monotonic() < end:
        story = JobStory(Plot.of(seed)).play()
        pairs.update(story.pairs)
        strikes += len(story.plot.strikes)
        if story.violations:
            failed.append((seed, story))
        seed += 1
    _say([f"{seed - given.seed} stories from seed {given.seed}, {strikes} faults", *table(pairs)])
    if failed:
        first, story = min(failed, key=lambda each: len(each[1].plot.strikes))
        small = smallest(story)
        _say([f"{len(failed)} failed; the smallest, from seed {first}:", repr(small.plot)])
        _say(small.violations)
    return 1 if failed else 0


def smallest(story: JobStory) -> JobStory:
    """The story without each fault that its failure does not need."""
    for strike in story.plot.strikes:
        fewer = tuple(each for each in story.plot.strikes if each is not strike)
        less = JobStory(replace(story.plot, strikes=fewer)).play()
        if less.violations:
            return smallest(less)
    return story


def table(pairs: Counter[Pair]) -> list[str]:
    """How often each error was met, by the kind of the write, with its action."""
    return [
        f"{error:22} {kind:8} {action:10} {number:8}"
        for (error, kind, action), number in sorted(pairs.items())
    ]


def _say(lines: Iterable[str]) -> None:
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    sys.exit(main())
