"""The site has every page, and nothing of it is fetched from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
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


def test_licence_and_security_policy_are_pages(tmp_path: Path) -> None:
    site.assemble(tmp_path / "docs")
    start = (tmp_path / "docs" / "index.md").read_text()
    assert "](licence.md)" in start
    assert "](security.md)" in start
    licence = (tmp_path / "docs" / "licence.md").read_text()
    assert (site.ROOT / "LICENSE").read_text() in licence


def test_a_link_to_nothing_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md"):
        site._moved("[x](nowhere.md)", lambda link: site._place_of(link, "docs/errors.md", {}))


def test_code_is_left_as_it_is() -> None:
    text = "```python\nx[0](y.md)\n```\n[y](z.md#a)\n"
    assert site._moved(text, str.upper) == "```python\nx[0](y.md)\n```\n[y](Z.MD#a)\n"


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


def test_a_page_is_described_by_its_first_paragraph() -> None:
    before = "# Title\n\n![picture](a.svg)\n\n```sh\nRun\n```\n\n"
    text = before + "`sink` reads [a\npage](b.md), *too*.\n\nMore."
    assert site._description(text) == 'description: "sink reads a page, too."\n'
    assert site._description("# Licence\n\n```text\nAll\n```\n") == ""


def test_the_changelog_s_headings_have_no_brackets(tmp_path: Path) -> None:
    site.assemble(tmp_path)
    assert "\n## Unreleased\n" in (tmp_path / "changelog.md").read_text()


def test_the_site_on_github_pages_has_canonical_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_COMPLETED", tmp_path / "zensical.toml")
    monkeypatch.setattr(site, "REPOSITORY", "https://github.com/Some/where")
    site.complete()
    settings = tomllib.loads(site._COMPLETED.read_text())["project"]
    assert settings["site_url"] == "https://some.github.io/where/"


def test_a_page_links_its_file_where_the_repository_is_known() -> None:
    linked = "](https://github.com/some/where/blob/HEAD/docs/errors.md)"
    assert linked in site._origin("docs/errors.md", "https://github.com/some/where")
    assert not site._origin("docs/errors.md", "")


def test_the_site_tells_its_version_and_keeps_the_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_COMPLETED", tmp_path / "zensical.toml")
    site.complete()
    settings = tomllib.loads(site._COMPLETED.read_text())["project"]
    assert version("eos-sink") in settings.pop("copyright")
    assert settings.keys() == project().keys()
