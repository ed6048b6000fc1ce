"""Renders a result of `eos-sink verify` as one HTML page with plots."""

from __future__ import annotations

import time
from datetime import timezone

import matplotlib as mpl
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from eos_sink_lab.verify.pages import (
    BLUE,
    FAINT,
    ORANGE,
    RED,
    STYLE,
    WIDTH,
    render_page,
    render_svg,
)
from eos_sink_lab.verify.verify_model import VerifyResult

_MOST_ROWS = 200
_MOST_BARS = 40
_MOST_BINS = 360
# What matplotlib can put on an axis of dates: years 1970 to 9999 or so.
_LATEST_MS = 253_000_000_000_000
_DAY_MS = 86_400_000
_MARKS = {"good": "zero", "wrong": "alarm", "no proof": "doubt", "not checked": "unchecked"}


def render_verify_page(result: VerifyResult) -> str:
    """Render the whole page."""
    return render_page(
        "eos_sink_lab.verify",
        "verify.html",
        title=f"verify {result.topic}",
        result=result,
        marks=_MARKS,
        most_rows=_MOST_ROWS,
        when=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        over_time=_plot_rows_over_time(result) if result.rows_at else "",
        by_partition=_plot_partitions(result),
        not_drawn=max(0, len(result.partitions) - _MOST_BARS),
    )


def _plot_rows_over_time(result: VerifyResult) -> str:
    """Rows per minute by their own timestamps, with marks at duplicates."""
    width_ms = result.bin_ms
    seen = {at: rows for at, rows in result.rows_at.items() if 0 <= at < _LATEST_MS}
    while seen and (max(seen) - min(seen)) / width_ms > _MOST_BINS:
        width_ms *= 2
    bins: dict[int, int] = {}
    for at, rows in seen.items():
        bins[at // width_ms * width_ms] = bins.get(at // width_ms * width_ms, 0) + rows
    # Matplotlib counts time in days since the epoch.
    steps: list[tuple[float, float]] = []
    for at, rows in bins.items():
        begin, end, rate = at / _DAY_MS, (at + width_ms) / _DAY_MS, rows * 60_000 / width_ms
        if steps and begin > steps[-1][0]:
            steps += [(steps[-1][0], 0.0), (begin, 0.0)]
        steps += [(begin, rate), (end, rate)]
    moments, rates = [moment for moment, _ in steps], [rate for _, rate in steps]
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.2), layout="constrained")
        axes.fill_between(moments, rates, color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(moments, rates, color=BLUE, linewidth=1)
        axes.set_ylim(0, max(rates, default=1.0) * 1.12)
        doubled = [at / _DAY_MS for at in result.doubled_at if 0 <= at < _LATEST_MS]
        if doubled:
            height = [axes.get_ylim()[1] * 0.96] * len(doubled)
            axes.plot(doubled, height, "v", color=RED, markersize=6, label="doubled rows")
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
        axes.set_ylabel("rows per minute")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        locator = dates.AutoDateLocator(tz=timezone.utc, maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        concise = dates.ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(concise)
        axes.set_xlabel("time of the records, UTC")
        return render_svg(figure)


def _plot_partitions(result: VerifyResult) -> str:
    """The offsets of each partition: rows, aborted rows, markers, and what readers wait for.

    Draws the partitions whose readers wait, then the longest ones.
    """
    ranked = sorted(result.partitions, key=lambda p: (-p.behind, -(p.read_to - p.read_from)))
    shown = sorted(ranked[:_MOST_BARS], key=lambda p: p.partition)
    counted = any(p.aborted is not None for p in result.partitions)
    others = "markers" if counted else "markers and aborted rows"
    with mpl.rc_context(STYLE):
        height = 1.1 + 0.26 * max(2, len(shown))
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        places = range(len(shown))
        left = [0] * len(shown)
        for label, color, widths in (
            ("rows", BLUE, [p.rows for p in shown]),
            ("aborted rows", ORANGE, [p.aborted or 0 for p in shown]),
            (others, FAINT, [max(0, p.without_row - (p.aborted or 0)) for p in shown]),
            ("readers wait", RED, [p.behind for p in shown]),
        ):
            if any(widths):
                axes.barh(places, widths, left=left, color=color, height=0.7, label=label)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        axes.set_yticks(list(places), [f"{p.partition}" for p in shown])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.set_ylabel("partition")
        axes.set_xlabel("offsets")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        if any(left):
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=9)
        return render_svg(figure)
