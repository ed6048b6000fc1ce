"""The pictures of the pages and of the README are those that their scripts draw."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eos_sink.kafka_config.acls import Permissions
from tests.snippets import ROOT
from tools import badges, dark, demo_picture
from tools.charts import CHARTS
from tools.diagrams import DIAGRAMS
from tools.pictures import FOLDER, draw


def test_the_pictures_are_what_their_diagrams_draw() -> None:
    files = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert files == draw(), "python -m tools.pictures"


def test_each_picture_is_shown() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in FOLDER.parent.glob("*.md"))
    assert set(re.findall(r"\]\(pictures/(.+?)\)", pages)) == draw().keys()


def test_the_permissions_drawn_are_the_code_s() -> None:
    """All of them for the driver, and some of the driver's for tasks."""
    needs = Permissions(prefix="p", log="log")
    group, topic = needs.source("group", ["topic"])
    acls = {
        "topics of the rows": needs.topic("topic"),
        "transactional ids with the prefix": [needs.transactions],
        "the query's group": [needs.group],
        "decision log": [needs.log_read, needs.log_write, needs.log_create],
        "topics of the source": [topic],
        "group of the source": [group],
    }
    _, _, _, *boxes = CHARTS["permissions"].boxes
    assert {box.label for box in boxes} == acls.keys()
    for box in boxes:
        of_driver, *of_tasks = [
            set(arrow.label.split(", "))
            for arrow in CHARTS["permissions"].arrows
            if box.top < arrow.end[1] < box.top + box.height
        ]
        assert of_driver == {acl.operation for acl in acls[box.label]}
        assert all(operations <= of_driver for operations in of_tasks)


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_bars_of_a_lane_follow_each_other(name: str) -> None:
    for _, bars in DIAGRAMS[name].lanes:
        for before, after in itertools.pairwise(bars):
            assert 0 <= before.start < before.end <= after.start < after.end <= 10


def test_the_badges_say_what_the_package_is() -> None:
    drawn = badges.PICTURE.read_text(encoding="utf-8")
    assert drawn == badges.svg(), "python -m tools.badges"
    ElementTree.fromstring(drawn)
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[2]
    assert all(value.lower() in first.lower() for value in badges.badges().values())


def test_the_picture_of_a_demo_shows_each_run_and_what_is_wrong() -> None:
    counts = {"expected": 9000, "records": 9000, "lost": 0, "doubled": 0, "out_of_order": 0}
    ours = {
        "sink": "format('kafka-eos')",
        "audit": {"count": counts},
        "kills": 3,
        "mid_commit": 1,
        "zombies": 1,
    }
    other = {**ours, "sink": "format('kafka')", "audit": {"count": {**counts, "doubled": 1234}}}
    drawn = demo_picture.svg({"runs": [ours, other]})
    texts = [each.text for each in ElementTree.fromstring(drawn).iter() if each.text]
    assert {"format('kafka-eos')", "format('kafka')", "9,000", "1,234"} <= set(texts)
    assert drawn.count(demo_picture._BAD) == 1


def test_the_readme_shows_a_demo_of_all_rows() -> None:
    drawn = demo_picture.PICTURE.read_text(encoding="utf-8")
    assert "336,776 rows" in drawn
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")


# Badges suit both, and a terminal is dark itself.
SUIT_BOTH = {"badges.svg", "watch.svg"}


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name
)
def test_a_picture_suits_a_dark_page(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert dark.is_adapted(text) == (picture.name not in SUIT_BOTH)
    ElementTree.fromstring(text)


def test_a_picture_is_the_same_without_the_style() -> None:
    svg_text = '<?xml version="1.0"?>\n<svg viewBox="0 0 1 1">\n<path d="M0 0"/></svg>\n'
    assert dark.fix(dark.adapt(svg_text)) == svg_text
