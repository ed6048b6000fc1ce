"""The site has every page, and nothing of it is fetched from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools import site

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?(https?:[^"' >]+)""")
"""What a browser loads by itself, from another host; `<a href>` is not among it."""


def titles(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each page of the navigation, and its name there."""
    for entry in entries:
        for name, below in entry.items():
            yield from titles(below) if isinstance(below, list) else [(below, name)]


def project() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads(site.CONFIG.read_text())["project"]
    return settings


def test_every_page_is_in_the_navigation_once_and_the_other_way_round() -> None:
    given, pages = (
        sorted(page for page, _ in titles(project()["nav"])),
        sorted(site.pages().values()),
    )
    assert given == pages, "give each page its line in `nav` of zensical.toml"


def test_the_navigation_names_a_page_by_its_heading() -> None:
    names = dict(titles(project()["nav"]))
    for source, place in site.pages().items():
        lines = site._markdown(source).splitlines()
        assert f"# {names[place]}" == next(line for line in lines if line.startswith("# ")), place


def test_links_lead_to_the_places_of_the_site(tmp_path: Path) -> None:
    site.assemble(tmp_path / "docs")
    start = (tmp_path / "docs" / "index.md").read_text()
    assert "](get-started.md)" in start
    assert "](pages.md)" in start
    assert "](protocol.svg)" in start
    for picture in ("metrics-dashboard.svg", "metrics-dashboard-narrow.svg"):
        assert f'="{picture}"' in (tmp_path / "docs" / "metrics.md").read_text()
        assert (tmp_path / "docs" / picture).is_file()
    options = (tmp_path / "docs" / "options.md").read_text()
    shown = "files/conf/query.properties.txt"
    assert f"]({shown})" in options
    assert (tmp_path / "docs" / shown).read_text() == (
        site.ROOT / "conf" / "query.properties"
    ).read_text()


def test_a_link_to_nothing_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md"):
        site._moved("[x](nowhere.md)", lambda link: site._place_of(link, "docs/errors.md", {}))


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere() -> None:
    pytest.importorskip("zensical")
    built = subprocess.run(
        [sys.executable, "-m", "tools.site"],
        cwd=site.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    for place in site.pages().values():
        page = (site.SITE / place).with_suffix(".html").read_text()
        assert not FETCHED.findall(page), place
