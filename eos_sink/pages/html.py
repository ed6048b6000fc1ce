"""The parts of an HTML page that needs nothing else: no script, no file, no address.

What goes into a part is HTML already: whatever comes from elsewhere goes through `text` first.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

_STYLE = """
:root { --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb; --good: #047857; --bad: #b91c1c;
        --doubt: #b45309; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 Inter, "Segoe UI", Helvetica, Arial, sans-serif;
       color: var(--ink); background: #f9fafb; }
main { max-width: 1060px; margin: 0 auto; padding: 36px 24px 72px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 40px 0 10px; }
p.sub { color: var(--soft); margin: 0 0 22px; }
.verdict { display: inline-block; padding: 3px 12px; border-radius: 999px; color: #fff;
           font-size: 14px; font-weight: 600; vertical-align: 4px; margin-left: 10px; }
.good { background: var(--good); } .bad { background: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(132px, 1fr)); gap: 12px; }
.tile, .card { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 12px 14px; } .card { padding: 14px; overflow-x: auto; }
.tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.25;
          font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.tile.alarm b { color: var(--bad); } .tile.zero b { color: var(--good); }
.tile.doubt b { color: var(--doubt); } .tile.unchecked b { color: var(--soft); }
span.alarm { color: var(--bad); font-weight: 600; } span.zero { color: var(--good); }
span.doubt { color: var(--doubt); } span.unchecked { color: var(--soft); }
code { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
        font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; } tr:last-child td { border-bottom: 0; }
td.alarm { color: var(--bad); font-weight: 600; } code { font-size: 13px; }
svg { width: 100%; height: auto; display: block; } .note { color: var(--soft); font-size: 13px; }
details summary { cursor: pointer; color: var(--soft); }
"""
# No browser has to run or load anything for such a page, whatever got into it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, parts: Iterable[str]) -> str:
    """The whole page; only `title` is plain text."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def section(title: str, content: str, note: str = "") -> str:
    """A heading, a card, and a small line below."""
    told = f'<p class="note">{note}</p>' if note else ""
    return f'<h2>{title}</h2><div class="card">{content}</div>{told}'


def tile(value: str, label: str, mark: str = "") -> str:
    """A large figure; `mark` is "zero" for one that is as it should be, "alarm" for one that is
    not, "doubt" or "unchecked" where that is open."""
    return f'<div class="tile {mark}"><b>{value}</b><span>{label}</span></div>'


def zero(value: int | None, label: str) -> str:
    """A figure that should be 0; None: it is not known."""
    if value is None:
        return tile("?", label, "alarm")
    return tile(f"{value:,}", label, "alarm" if value else "zero")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """The last `numbers` columns are set right."""
    first = len(head) - numbers

    def row(cells: Sequence[str], tag: Callable[[int], str]) -> str:
        return f"<tr>{''.join(f'<{tag(i)}>{cell}' for i, cell in enumerate(cells))}</tr>"

    top = row(head, lambda i: 'th class="n"' if i >= first else "th")
    body = "".join(row(cells, lambda i: 'td class="n"' if i >= first else "td") for cells in rows)
    return f"<table>{top}{body}</table>"


def text(plain: str) -> str:
    """Plain text as HTML."""
    return html.escape(plain)
