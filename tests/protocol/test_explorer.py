"""Stories with the seeds of this run: the report's header names them, `EOS_SEED` repeats them."""

from __future__ import annotations

import os

import pytest

from tests.protocol.explorer import KINDS, play, show, smallest

STORIES = 100


# A hundred take a quarter of a minute: a busy machine may be some times slower.
@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_no_story_of_this_run_loses_or_doubles_a_row(kind: str, part: int) -> None:
    first = int(os.environ["EOS_SEED"]) + part * STORIES
    for seed in range(first, first + STORIES):
        story = play(KINDS[kind].story(KINDS[kind].plot(seed)))
        if story.violations:
            pytest.fail(f"{kind} {seed}: {show(smallest(story).plot)}: {story.violations}")


def test_a_few_streams_lose_and_double_no_row() -> None:
    stories = [play(KINDS["streams"].story(KINDS["streams"].plot(seed))) for seed in range(24)]
    assert [(show(each.plot), each.violations) for each in stories if each.violations] == []
