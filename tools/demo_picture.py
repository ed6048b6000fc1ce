"""Draws docs/demo.svg, the picture of the README, from what a demo has found.

eos-sink demo --json | python -m tools.demo_picture
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tools.dark import adapt

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"

_WIDTH, _LEFT, _COLUMN = 480, 20, 160
_FIRST, _ROW = 104, 34
_INK, _FAINT, _LINE = "#1f2d3d", "#5b6b7b", "#dfe5eb"
_GOOD, _BAD = "#2f7d4f", "#b3261e"
_COUNTS = {
    "rows read": "records",
    "lost": "lost",
    "duplicated": "doubled",
    "out of order": "out_of_order",
}


def svg(document: Mapping[str, Any]) -> str:
    """The picture of the demo's JSON: a column for each sink. It is narrow, so that its text can be
    read on a telephone."""
    runs = document["runs"]
    ours, expected = runs[0], runs[0]["audit"]["count"]["expected"]
    captions = (
        f"{expected:,} rows; {ours['kills']} SIGKILLs of the driver, {ours['mid_commit']} of them",
        f"in mid-commit; {ours['zombies']} driver frozen and woken later",
    )
    bottom = _FIRST + _ROW * len(_COUNTS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{bottom}" '
        f'viewBox="0 0 {_WIDTH} {bottom}" font-family="Helvetica, Arial, sans-serif" '
        'font-size="16" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(" ".join(captions))}</title>',
        f'<rect width="{_WIDTH}" height="{bottom}" rx="10" fill="#ffffff"/>',
        *(
            _text(_LEFT, 28 + 20 * line, caption, _FAINT, 'font-size="14"')
            for line, caption in enumerate(captions)
        ),
        *(
            _cell(number, 84, run["sink"], _INK, ' font-weight="bold"')
            for number, run in enumerate(runs)
        ),
    ]
    for place, (name, key) in enumerate(_COUNTS.items()):
        y = _FIRST + place * _ROW
        parts.append(f'<path d="M{_LEFT} {y - 8}H{_WIDTH - _LEFT}" stroke="{_LINE}"/>')
        parts.append(_text(_LEFT, y + 15, name, _FAINT, ""))
        for number, run in enumerate(runs):
            count = run["audit"]["count"]
            right = count[key] == (expected if key == "records" else 0)
            parts.append(_cell(number, y + 15, f"{count[key]:,}", _GOOD if right else _BAD))
    return adapt("\n".join([*parts, "</svg>", ""]))


def _cell(number: int, y: int, text: str, colour: str, more: str = "") -> str:
    """Right-aligned text of a column."""
    x = _WIDTH - _LEFT - (1 - number) * _COLUMN
    return _text(x, y, text, colour, f'text-anchor="end"{more}')


def _text(x: int, y: int, text: str, colour: str, more: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" {more}>{escape(text)}</text>'


def main() -> int:
    PICTURE.write_text(svg(json.load(sys.stdin)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
