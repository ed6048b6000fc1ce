"""Draws docs/badges.svg, the first line of the README: `python -m tools.badges`.

A test compares the file with setup.cfg and with the versions that are tested.
"""

from __future__ import annotations

import configparser
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from proof.matrix.cells import PYTHONS, SPARKS

_ROOT = Path(__file__).resolve().parent.parent
PICTURE = _ROOT / "docs" / "badges.svg"

_HEIGHT, _LETTER, _PAD, _GAP = 22, 7.2, 8, 6
_INK, _PAPER, _BLUE = "#ffffff", "#4a5663", "#2f6db3"


def badges() -> dict[str, str]:
    """What the package is."""
    packaging = configparser.ConfigParser()
    packaging.read(_ROOT / "setup.cfg")
    about = packaging["metadata"]
    (status,) = (
        line.rpartition(" - ")[2].lower()
        for line in about["classifiers"].splitlines()
        if line.startswith("Development Status")
    )
    sparks = [version.rpartition(".")[0] for version in SPARKS]
    return {
        "state": status,
        "licence": about["license_expression"],
        "Python": f"{PYTHONS[0]} to {PYTHONS[-1]}",
        "Spark": f"{sparks[0]} to {sparks[-1]}",
    }


def svg() -> str:
    """The badges beside each other, readable on white and on black."""
    parts, x = [], 0.0
    for name, value in badges().items():
        for text, colour in ((name, _PAPER), (value, _BLUE)):
            width = len(text) * _LETTER + 2 * _PAD
            parts.append(
                f'<rect x="{x:g}" width="{width:g}" height="{_HEIGHT}" fill="{colour}"/>'
                f'<text x="{x + width / 2:g}" y="15.5" text-anchor="middle">{escape(text)}</text>'
            )
            x += width
        x += _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - _GAP:g}" height="{_HEIGHT}" '
        f'font-family="Menlo, Consolas, monospace" font-size="12" fill="{_INK}" role="img">'
    )
    title = f"<title>{escape(', '.join(f'{n}: {v}' for n, v in badges().items()))}</title>"
    return "\n".join([head, title, *parts, "</svg>", ""])


def main() -> int:
    PICTURE.write_text(svg(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
