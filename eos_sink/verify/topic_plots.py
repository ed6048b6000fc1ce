"""Plots a result of `eos-sink verify` as SVG."""

from __future__ import annotations

from datetime import timezone

import matplotlib as mpl
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from eos_sink.verify.plot_style import BLUE, FAINT, ORANGE, RED, STYLE, WIDTH, render_svg
from eos_sink.verify.verify_result import Result, Stretch

_MOST_BARS = 40
_MOST_BINS = 360
# What matplotlib can put on an axis of dates: years 1970 to 9999 or so.
_LATEST_MS = 253_000_000_000_000


def plot_rows_over_time(result: Result) -> str:
    """Plot rows per minute by their own timestamps, with marks at duplicates."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.2), layout="constrained")
        width_ms, bins = _drawn(result)
        per_minute = 60_000 / width_ms
        steps: list[tuple[float, float]] = []
        for at, rows in bins.items():
            if steps and _moment(at) > steps[-1][0]:
                steps.append((steps[-1][0], 0.0))
                steps.append((_moment(at), 0.0))
            steps.append((_moment(at), rows * per_minute))
            steps.append((_moment(at + width_ms), rows * per_minute))
        moments, rates = [moment for moment, _ in steps], [rate for _, rate in steps]
        axes.fill_between(moments, rates, color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(moments, rates, color=BLUE, linewidth=1)
        axes.set_ylim(0, max(rates, default=1.0) * 1.12)
        doubled = [_moment(at) for at in result.doubled_at if 0 <= at < _LATEST_MS]
        if doubled:
            height = [axes.get_ylim()[1] * 0.96] * len(doubled)
            axes.plot(doubled, height, "v", color=RED, markersize=6, label="doubled rows")
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
        axes.set_ylabel("rows a minute")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        locator = dates.AutoDateLocator(tz=timezone.utc, maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        concise = dates.ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(concise)
        axes.set_xlabel("time of the records, UTC")
        return render_svg(figure)


def plot_partitions(result: Result) -> str:
    """Plot the offsets of each partition: rows, aborted rows, markers, open transactions."""
    shown = _worst(result)
    with mpl.rc_context(STYLE):
        height = 1.1 + 0.26 * max(2, len(shown))
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        places = range(len(shown))
        left = [0] * len(shown)
        for label, color, widths in (
            ("rows", BLUE, [s.rows for s in shown]),
            ("aborted rows", ORANGE, [s.aborted or 0 for s in shown]),
            (_others(result), FAINT, [max(0, s.without_row - (s.aborted or 0)) for s in shown]),
            ("readers wait", RED, [s.behind for s in shown]),
        ):
            if any(widths):
                axes.barh(places, widths, left=left, color=color, height=0.7, label=label)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        axes.set_yticks(list(places), [f"{s.partition}" for s in shown])
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


def count_left_out(result: Result) -> int:
    """Count the partitions that the plot does not show."""
    return max(0, len(result.stretches) - _MOST_BARS)


def _drawn(result: Result) -> tuple[int, dict[int, int]]:
    """The width of a bin and the bins, widened until each is visible."""
    width = result.bin_ms
    seen = {at: rows for at, rows in result.rows_at.items() if 0 <= at < _LATEST_MS}
    while seen and (max(seen) - min(seen)) / width > _MOST_BINS:
        width *= 2
    bins: dict[int, int] = {}
    for at, rows in seen.items():
        bins[at // width * width] = bins.get(at // width * width, 0) + rows
    return width, bins


def _others(result: Result) -> str:
    counted = any(stretch.aborted is not None for stretch in result.stretches)
    return "markers" if counted else "markers and aborted rows"


def _worst(result: Result) -> list[Stretch]:
    """The partitions to show: those whose readers wait, then the longest."""
    ranked = sorted(result.stretches, key=lambda s: (-s.behind, -(s.stop - s.start)))
    return sorted(ranked[:_MOST_BARS], key=lambda s: s.partition)


def _moment(at_ms: int) -> float:
    """Days since the epoch, as matplotlib counts time."""
    return at_ms / 86_400_000
