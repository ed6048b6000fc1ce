"""The fenced blocks and tables of the documentation, for the tests that run and compare them.

A block that no test can run carries `<!-- not run: reason -->` on the line above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "bench" / "results" / "README.md",
    ],
    key=str,
)

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_FILE = re.compile(r"^# ([\w-]+\.(?:py|yml))$")


@dataclass(frozen=True)
class Snippet:
    """One fenced block.

    Attributes:
        page: the file that it is in.
        line: the line of its opening fence, from 1.
        language: what stands behind the fence.
        text: what is inside.
        not_run: why no test runs it, or None.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """The name that a first line such as `# job.py` gives the block."""
        match = _FILE.match(self.text.partition("\n")[0])
        return match[1] if match else None

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block: continued lines joined, comments left out."""
        joined = self.text.replace("\\\n", " ")
        lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
        return [re.sub(r"\s+", " ", line) for line in lines if line]


def snippets_of(page: Path) -> list[Snippet]:
    """Every fenced block of a page, in order.

    Raises:
        ValueError: a fence is indented or never closed, so that it could slip through.
    """
    found: list[Snippet] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        if opening[1]:
            raise ValueError(f"{page}:{number + 1}: the fence is indented")
        end = next(
            (i for i in range(number + 1, len(lines)) if lines[i].strip() == opening[2]), None
        )
        if end is None:
            raise ValueError(f"{page}:{number + 1}: the fence is not closed")
        above = _NOT_RUN.match(lines[number - 1]) if number else None
        found.append(
            Snippet(
                page=page,
                line=number + 1,
                language=opening[3].strip(),
                text="\n".join(lines[number + 1 : end]) + "\n",
                not_run=above[1] if above else None,
            )
        )
        number = end + 1
    return found


def all_snippets() -> list[Snippet]:
    return [snippet for page in PAGES for snippet in snippets_of(page)]


def python_snippets() -> list[Snippet]:
    """The Python blocks that `integration/test_docs.py` runs: every one that is not excused."""
    return [s for s in all_snippets() if s.language == "python" and s.not_run is None]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def table(page: Path, section: str = "") -> list[list[str]]:
    """The cells of the first table of a page, or of a section of it, without its head."""
    rows: list[list[str]] = []
    text = page.read_text()
    for line in text[text.index(f"\n## {section}\n") if section else 0 :].splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            break
    return rows[2:]
