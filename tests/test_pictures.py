"""The pictures of docs/how-it-works.md are those that the stories draw."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from tools.pictures import FOLDER, svg
from tools.stories import STORIES


@pytest.mark.parametrize("name", STORIES)
def test_a_picture_is_what_its_story_draws(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == svg(STORIES[name]), "python -m tools.pictures"
    ElementTree.fromstring(drawn)


def test_each_picture_is_shown() -> None:
    page = (FOLDER.parent / "how-it-works.md").read_text(encoding="utf-8")
    for name in STORIES:
        assert f"](pictures/{name}.svg)" in page


@pytest.mark.parametrize("name", STORIES)
def test_the_bars_of_a_lane_follow_each_other(name: str) -> None:
    for _, bars in STORIES[name].lanes:
        for before, after in itertools.pairwise(bars):
            assert 0 <= before.start < before.end <= after.start < after.end <= 10
