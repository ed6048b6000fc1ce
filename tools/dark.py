"""Pictures for dark pages, such as GitHub's.

Pictures are drawn on white. On a dark page their lightness is inverted and their hue is kept.
"""

from __future__ import annotations

_STYLE = (
    "<style>@media (prefers-color-scheme: dark) "
    "{ :root { filter: invert(0.92) hue-rotate(180deg) } }</style>\n"
)


def adapt(svg: str) -> str:
    """Return the picture with a style that suits it to a dark page."""
    end = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:end]}\n{_STYLE}{svg[end:].removeprefix(chr(10))}"


def is_adapted(svg: str) -> bool:
    return _STYLE in svg


def fix(svg: str) -> str:
    """Return the picture without that style, for a page that has a switch of its own."""
    return svg.replace(_STYLE, "")
