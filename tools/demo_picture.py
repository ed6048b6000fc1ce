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

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"

_WIDTH, _LEFT, _COLUMN = 760, 24, 124
_FIRST, _ROW = 96, 44
_INK, _FAINT, _LINE = "#1f2d3d", "#5b6b7b", "#dfe5eb"
_GOOD, _BAD = "#2f7d4f", "#b3261e"
_COLUMNS = {
    "rows read": "records",
    "lost": "lost",
    "duplicated": "doubled",
    "out of order": "out_of_order",
}


def svg(document: Mapping[str, Any]) -> str:
    """The picture of the demo's JSON: a line for each sink. Text as text, on white."""
    runs = document["runs"]
    ours, expected = runs[0], runs[0]["audit"]["count"]["expected"]
    told = (
        f"{expected:,} rows; {ours['kills']} SIGKILLs of the driver, {ours['mid_commit']} of them "
        f"in mid-commit; {ours['zombies']} driver frozen and woken later"
    )
    bottom = _FIRST + _ROW * len(runs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="17" role="img" '
        'aria-labelledby="t">',
        f'<title id="t">{escape(told)}</title>',
        f'<rect width="{_WIDTH}" height="{bottom}" rx="10" fill="#ffffff"/>',
        _text(_LEFT, 34, told, _FAINT, 'font-size="15"'),
        *(_cell(number, 72, name, _FAINT) for number, name in enumerate(_COLUMNS)),
    ]
    for place, run in enumerate(runs):
        y, count = _FIRST + place * _ROW, run["audit"]["count"]
        parts.append(f'<path d="M{_LEFT} {y - 10}H{_WIDTH - _LEFT}" stroke="{_LINE}"/>')
        parts.append(_text(_LEFT, y + 18, run["sink"], _INK, 'font-weight="bold"'))
        for number, key in enumerate(_COLUMNS.values()):
            right = count[key] == (expected if key == "records" else 0)
            parts.append(_cell(number, y + 18, f"{count[key]:,}", _GOOD if right else _BAD))
    return "\n".join([*parts, "</svg>", ""])


def _cell(number: int, y: int, text: str, colour: str) -> str:
    """Right-aligned; the last column ends at the right margin."""
    x = _WIDTH - _LEFT - (len(_COLUMNS) - 1 - number) * _COLUMN
    return _text(x, y, text, colour, 'text-anchor="end"')


def _text(x: int, y: int, text: str, colour: str, more: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" {more}>{escape(text)}</text>'


def main() -> int:
    PICTURE.write_text(svg(json.load(sys.stdin)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
