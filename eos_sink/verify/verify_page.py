"""Renders a result as one HTML page."""

from __future__ import annotations

import time

from eos_sink.verify import topic_plots
from eos_sink.verify.templating import render_page
from eos_sink.verify.verify_result import Result

_MOST_ROWS = 200
_MARKS = {"good": "zero", "wrong": "alarm", "no proof": "doubt", "not checked": "unchecked"}


def render_verify_page(result: Result) -> str:
    """Render the whole page."""
    return render_page(
        "eos_sink.verify",
        "verify.html",
        title=f"verify {result.topic}",
        result=result,
        marks=_MARKS,
        most_rows=_MOST_ROWS,
        when=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        over_time=topic_plots.plot_rows_over_time(result) if result.rows_at else "",
        by_partition=topic_plots.plot_partitions(result),
        not_drawn=topic_plots.count_left_out(result),
    )
