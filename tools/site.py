"""The documentation as a site: `make docs` builds it into build/site, strictly and offline.

The pages stay what they are in the tree, readable there with links from file to file. For the site
they are brought together in build/docs: README.md is its start page, docs/README.md the list of all
pages, and what a page links to outside of docs/ comes along. zensical.toml holds the navigation.
The version and the repository are added to it in build/.
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from eos_sink.version import REPOSITORY
from tools import dark, reference

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "zensical.toml"
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
_COMPLETED = ROOT / "build" / "zensical.toml"

# The settings of pages. The page of the product's name needs a title of its own in a browser's tab;
# wide tables and pictures need the place of the page's list of headings.
_WIDE = "hide: [toc]\n"
_SETTINGS = {
    "index.md": "title: Exactly once from PySpark to Kafka\n",
    **dict.fromkeys(
        ("guards.md", "kips.md", "messages.md", "metrics.md", "options.md", "status.md"), _WIDE
    ),
}

# Pages whose place in the site is not their name in docs/.
_PLACES = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "LICENSE": "licence.md",
    "eos_sink/__init__.py": "reference.md",
    "proof/spec/README.md": "model.md",
    "bench/results/README.md": "measurements.md",
    "bench/upstream.md": "upstream.md",
}
_LINK = re.compile(
    r"""(?:(?<=\]\()|(?<=src=")|(?<=srcset="))(?!https?://|#)([^)"#\s]+)(#[^)"\s]*)?(?=[)"])"""
)
_FENCE = re.compile(r"^(?:```.*?^```|~~~.*?^~~~)$", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Each page of the site: its file in the tree, and its place in the site."""
    files = sorted((ROOT / "docs").rglob("*.md"))
    own = {page.relative_to(ROOT).as_posix(): page.name for page in files}
    return {**own, **_PLACES}


def assemble(to: Path = PAGES) -> None:
    """Collect the pages, and the files that they show or link."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    files: dict[str, str] = {}
    for source, place in pages().items():
        text = _markdown(source)
        moved = _moved(text, lambda link, source=source: _place_of(link, source, files))
        settings = _SETTINGS.get(place, "") + _description(text)
        head = f"---\n{settings}---\n\n" if settings else ""
        whole = f"{head}{moved}{_origin(source)}"
        (to / place).write_text(whole, encoding="utf-8")
    for source, place in files.items():
        (to / place).parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".svg"):
            # The site's own switch decides between light and dark, not the browser's setting.
            text = (ROOT / source).read_text(encoding="utf-8")
            (to / place).write_text(dark.fix(text), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, to / place)
    shutil.copytree(ROOT / "tools" / "theme", to / "theme")


def _markdown(source: str) -> str:
    """The text of a page; the licence is plain text, which stays as it is, and the public module
    stands for the reference."""
    if source.endswith(".py"):
        return reference.markdown()
    text = (ROOT / source).read_text(encoding="utf-8")
    # Brackets stand for a link to a comparison, which a version that is not released cannot have.
    text = text.replace("## [Unreleased]", "## Unreleased")
    return text if source.endswith(".md") else f"# Licence\n\n```text\n{text.rstrip()}\n```\n"


def _description(text: str) -> str:
    """The setting that tells search engines what a page is about: its first paragraph."""
    blocks = _FENCE.sub("", text).split("\n\n")
    paragraph = next((block for block in blocks if re.match(r"[A-Z`[]", block.strip())), "")
    plain = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph))
    short = textwrap.shorten(plain, 160, placeholder="...")
    return f"description: {json.dumps(short, ensure_ascii=False)}\n" if short else ""


def _origin(source: str, repository: str = REPOSITORY) -> str:
    """The last line of a page: its file in the repository, which can be edited there."""
    link = f"\n[View or edit this page]({repository}/blob/HEAD/{source})\n"
    return link if repository else ""


def complete() -> None:
    """Write the configuration with what zensical.toml cannot know."""
    packaging = configparser.ConfigParser()
    packaging.read(ROOT / "setup.cfg", encoding="utf-8")
    about = packaging["metadata"]
    notice = f"{about['name']} {about['version']}, {about['license_expression']}"
    # The theme's own link to a repository asks GitHub for its stars; this one asks no server.
    link = f' · <a href="{REPOSITORY}">Repository</a>' if REPOSITORY else ""
    # Paths are relative to the file that names them.
    settings = CONFIG.read_text(encoding="utf-8").replace('_dir = "build/', '_dir = "')
    added = f"[project]\ncopyright = {json.dumps(notice + link, ensure_ascii=False)}\n"
    address = _address(REPOSITORY)
    added += f"site_url = {json.dumps(address)}\n" if address else ""
    _COMPLETED.write_text(settings.replace("[project]\n", added, 1), encoding="utf-8")


def _address(repository: str) -> str | None:
    """The address of the site on GitHub Pages, for each page's canonical link."""
    _, _, there = repository.partition("https://github.com/")
    owner, _, name = there.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if name else None


def _moved(text: str, place_of: Callable[[str], str]) -> str:
    """The text with its links turned into those of the site; blocks of code stay as they are."""
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_relinked(text[end : fence.start()], place_of), fence[0]]
        end = fence.end()
    return "".join([*parts, _relinked(text[end:], place_of)])


def _relinked(text: str, place_of: Callable[[str], str]) -> str:
    return _LINK.sub(lambda link: place_of(link[1]) + (link[2] or ""), text)


def _place_of(link: str, source: str, files: dict[str, str]) -> str:
    """Where a link of the page `source` leads in the site; a file that is no page is added."""
    target = os.path.normpath(os.path.join(os.path.dirname(source), link))
    if target in pages():
        return pages()[target]
    if not (ROOT / target).is_file():
        raise FileNotFoundError(f"{source}: {link}")
    # The name of what is not shown inside a page is one that browsers open, not keep.
    own = target.removeprefix("docs/")
    files[target] = own if own != target else f"files/{target}.txt"
    return files[target]


def build() -> int:
    """Build the site; a link or an anchor that leads nowhere fails."""
    assemble()
    complete()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run([*command, "-f", str(_COMPLETED)], cwd=ROOT, check=False).returncode


def serve(address: str) -> int:
    """Build and serve; a page that is edited shows after the next `make docs`."""
    assemble()
    complete()
    command = [sys.executable, "-m", "zensical", "serve", "-a", address, "-f", str(_COMPLETED)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="See `make docs`.")
    parser.add_argument("--serve", metavar="HOST:PORT", help="serve it instead of building it")
    arguments = parser.parse_args()
    return serve(arguments.serve) if arguments.serve else build()


if __name__ == "__main__":
    sys.exit(main())
