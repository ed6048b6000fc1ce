"""The one place where a report becomes text."""

from __future__ import annotations

import json
import os

from eos_sink.cli.report import Cell, Mood, Report

_COLOURS = {Mood.GOOD: "\033[32m", Mood.WARN: "\033[33m", Mood.BAD: "\033[1;31m"}
_RESET = "\033[0m"


def render(report: Report, *, as_json: bool = False, colour: bool = False) -> str:
    """The report as text for a terminal, a file or a program.

    Args:
        report: what to show.
        as_json: its document and nothing else.
        colour: use colours, unless NO_COLOR is set.
    """
    if as_json:
        return json.dumps(report.document, indent=2)
    if not report.columns:
        return "\n".join(report.notes)
    colour = colour and not os.environ.get("NO_COLOR")
    heads = tuple(Cell(column) for column in report.columns)
    widths = [
        max(len(row[column].text) for row in (heads, *report.rows))
        for column in range(len(report.columns))
    ]
    rule = "─" * (sum(widths) + 3 * (len(widths) - 1))
    lines = ["", _line(heads, widths, report.left, colour=False), rule]
    lines += [_line(row, widths, report.left, colour=colour) for row in report.rows]
    lines += [rule, *report.notes]
    return "\n".join(lines)


def _line(row: tuple[Cell, ...], widths: list[int], left: int, *, colour: bool) -> str:
    parts = []
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = cell.text.ljust(width) if index < left else cell.text.rjust(width)
        start = _COLOURS.get(cell.mood) if colour else None
        parts.append(f"{start}{text}{_RESET}" if start else text)
    return "   ".join(parts).rstrip()
