"""The pictures of docs/how-it-works.md: `python -m tools.pictures` draws them into docs/pictures.

A test compares the files with these pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from tools.dark import adapt
from tools.diagrams import DIAGRAMS, Bar, Diagram, Moment

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"

_LEFT, _UNIT, _WIDTH = 150, 80, 980
_TOP, _LANE, _BAR = 56, 50, 30
_INK, _FAINT, _RED = "#1f2d3d", "#5b6b7b", "#b3261e"


def svg(diagram: Diagram) -> str:
    """The picture: text as text, on white, or on black where a page is dark."""
    height = _TOP + _LANE * len(diagram.lanes) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="14" role="img" '
        f'aria-labelledby="t d">',
        f'<title id="t">{escape(diagram.title)}</title>',
        f'<desc id="d">{escape(diagram.description)}</desc>',
        f'<rect width="{_WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
    ]
    parts += [_moment(moment, height) for moment in diagram.moments]
    for number, (name, bars) in enumerate(diagram.lanes):
        top = _TOP + number * _LANE
        parts.append(
            f'<path d="M{_LEFT} {top + _BAR / 2:g}H{_WIDTH - 20}" stroke="#dfe5eb"/>'
            f'<text x="{_LEFT - 14}" y="{top + 20}" text-anchor="end" fill="{_INK}" '
            f'font-weight="bold">{escape(name)}</text>'
        )
        parts += [_bar(bar, top) for bar in bars]
    return adapt("\n".join([*parts, "</svg>", ""]))


def _bar(bar: Bar, top: int) -> str:
    fill, stroke, dashes = bar.kind.value
    x, width = _x(bar.start), (bar.end - bar.start) * _UNIT
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    middle = x + width / 2
    return (
        f'<rect x="{x:g}" y="{top}" width="{width:g}" height="{_BAR}" rx="5" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="1.3"{dash}/>'
        + (
            f'<text x="{middle:g}" y="{top + 20}" text-anchor="middle" fill="{_INK}">'
            f"{escape(bar.label)}</text>"
            if bar.label
            else ""
        )
    )


def _moment(moment: Moment, height: int) -> str:
    x, colour = _x(moment.at), _RED if moment.bad else _FAINT
    return (
        f'<path d="M{x:g} 38V{height - 12}" stroke="{colour}" stroke-width="1.4" '
        f'stroke-dasharray="4 3"/><text x="{x:g}" y="28" text-anchor="middle" fill="{colour}" '
        f'font-weight="bold">{escape(moment.label)}</text>'
    )


def _x(at: float) -> float:
    return _LEFT + at * _UNIT


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, diagram in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(svg(diagram), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
