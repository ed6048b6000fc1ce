"""The pictures of the pages: `python -m tools.pictures` draws them into docs/pictures.

A test compares the files with these pictures. They are as wide as a narrow window can show with
legible text: time goes down, and a label is broken into lines.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

from tools.charts import CHARTS, Arrow, Box, Chart
from tools.dark import adapt
from tools.diagrams import DIAGRAMS, Bar, Diagram, Kind, Moment

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"

_LEFT, _TOP, _LANE, _BAR, _UNIT = 60, 50, 70, 67, 42
_FONT, _LINE, _LETTER = 12, 14, 6.0
"""The size of a letter, the height of a line, and the mean width of a letter."""
_FAINT, _RED = "#5b6b7b", "#b3261e"
_PLAIN = 'fill="#1f2d3d"'
_BOLD = f'{_PLAIN} font-weight="bold"'


def draw() -> dict[str, str]:
    """Return each picture by the name of its file."""
    return {
        **{f"{name}.svg": svg(diagram) for name, diagram in DIAGRAMS.items()},
        **{f"{name}.svg": chart_svg(chart) for name, chart in CHARTS.items()},
    }


def svg(diagram: Diagram) -> str:
    width = _LEFT + _LANE * len(diagram.lanes)
    height = _TOP + 10 * _UNIT + 10
    parts: list[str] = []
    for number, (name, _) in enumerate(diagram.lanes):
        middle = _LEFT + number * _LANE + _BAR / 2
        parts.append(f'<path d="M{middle:g} {_TOP - 6}V{height - 8}" stroke="#dfe5eb"/>')
        parts.append(_text((middle, 24), name, _BAR, _BOLD))
    parts += [_moment(moment, width) for moment in diagram.moments]
    for number, (_, bars) in enumerate(diagram.lanes):
        parts += [_bar(bar, _LEFT + number * _LANE) for bar in bars]
    return _whole(diagram.title, diagram.description, (width, height), parts)


def chart_svg(chart: Chart) -> str:
    parts = [_arrow(arrow) for arrow in chart.arrows] + [_box(box) for box in chart.boxes]
    return _whole(chart.title, chart.description, chart.size, parts)


def _whole(title: str, description: str, size: tuple[int, int], parts: list[str]) -> str:
    """The picture: text as text, on white, or on black where a page is dark."""
    width, height = size
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="{_FONT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(description)}</desc>',
        f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>',
    )
    return adapt("\n".join([*start, *parts, "</svg>", ""]))


def _bar(bar: Bar, left: int) -> str:
    top, height = _y(bar.start), (bar.end - bar.start) * _UNIT
    return _rectangle(left, top, _BAR, height, bar.kind) + _text(
        (left + _BAR / 2, top + height / 2), bar.label, _BAR
    )


def _box(box: Box) -> str:
    return _rectangle(box.left, box.top, box.width, box.height, box.kind) + _text(
        (box.left + box.width / 2, box.top + box.height / 2), box.label, box.width - 4
    )


def _rectangle(left: float, top: float, width: float, height: float, kind: Kind) -> str:
    fill, stroke, dashes = kind.value
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="5" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.3"{dash}/>'
    )


def _arrow(arrow: Arrow) -> str:
    """A straight arrow; its label is above its middle, or right of it if it goes down."""
    (x, y), (to_x, to_y) = arrow.start, arrow.end
    down = x == to_x
    back = 6 if to_x > x or to_y > y else -6
    head = (
        f"M{to_x - 4} {to_y - 6}L{to_x} {to_y}L{to_x + 4} {to_y - 6}"
        if down
        else f"M{to_x - back} {to_y - 4}L{to_x} {to_y}L{to_x - back} {to_y + 4}"
    )
    at = (x + 16, (y + to_y) / 2) if down else ((x + to_x) / 2, y - 9)
    return (
        f'<path d="M{x} {y}L{to_x} {to_y}{head}" fill="none" stroke="{_FAINT}" stroke-width="1.3"/>'
    ) + _text(at, arrow.label, 120)


def _text(at: tuple[float, float], text: str, width: float, style: str = _PLAIN) -> str:
    """The text around a point, in lines that fit the width."""
    middle, centre = at
    lines = textwrap.wrap(text, int(width / _LETTER), break_long_words=False)
    first = centre - (len(lines) - 1) * _LINE / 2 + _FONT * 0.35
    return "".join(
        f'<text x="{middle:g}" y="{first + number * _LINE:g}" text-anchor="middle" '
        f"{style}>{escape(line)}</text>"
        for number, line in enumerate(lines)
    )


def _moment(moment: Moment, width: int) -> str:
    y, ink = _y(moment.at), _RED if moment.bad else _FAINT
    return (
        f'<path d="M{_LEFT - 4} {y:g}H{width - 4}" stroke="{ink}" stroke-width="1.4" '
        f'stroke-dasharray="4 3"/>'
    ) + _text(((_LEFT - 4) / 2, y), moment.label, _LEFT - 4, f'fill="{ink}" font-weight="bold"')


def _y(at: float) -> float:
    return _TOP + at * _UNIT


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, picture in draw().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
