"""Renders the report as one HTML page with plots, from the figures in its JSON file alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from eos_sink_lab.verify.pages import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    RED,
    STYLE,
    VIOLET,
    WIDTH,
    label_plain_numbers,
    plot_shares,
    render_page,
    render_svg,
)
from proof.chaos.kinds import Family, family_of

Figures = dict[str, Any]

_COLORS = {
    Family.DRIVER: RED,
    Family.PROCESS: ORANGE,
    Family.ZOMBIE: VIOLET,
    Family.CLUSTER: GREEN,
    Family.NETWORK: BLUE,
}
_BINS = 240
_NARROWEST_S = 5


def render_chaos_page(figures: Figures) -> str:
    """Render the whole page."""
    values = {
        "title": f"chaos, seed {figures['seed']}",
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(figures["began"])),
        "throughput": plot_throughput(figures),
        "latency": plot_latency(figures),
        "recoveries": plot_recoveries(figures) if figures["recovery_s"]["kills"] else "",
    }
    return render_page("proof.chaos", "chaos.html", **(figures | values))


def plot_throughput(figures: Figures) -> str:
    """Rows that became visible, over time."""

    def draw(axes: Axes) -> None:
        width, bins = _binned(figures)
        rates = [sum(second["rows"] for second in group) / width for group in bins]
        minutes = [place * width / 60 for place in range(len(bins))]
        axes.fill_between(minutes, rates, step="post", color=BLUE, alpha=0.25, linewidth=0)
        axes.step(minutes, rates, where="post", color=BLUE, linewidth=1)
        axes.axhline(figures["rate"], color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_ylabel("rows visible per second")
        axes.set_ylim(bottom=0)

    return _over_time(figures, draw)


def plot_latency(figures: Figures) -> str:
    """From fed to visible, over time."""

    def draw(axes: Axes) -> None:
        width, bins = _binned(figures)
        seen = [(place * width / 60, group) for place, group in enumerate(bins) if group]
        minutes = [minute for minute, _ in seen]
        middle = [sorted(s["median_s"] for s in group)[len(group) // 2] for _, group in seen]
        longest = [max(s["longest_s"] for s in group) for _, group in seen]
        axes.scatter(minutes, longest, s=6, color=ORANGE, linewidth=0, label="slowest row")
        axes.plot(minutes, middle, color=BLUE, linewidth=1.1, label="median row")
        axes.set_yscale("log")
        axes.set_ylabel("seconds from fed to visible")
        label_plain_numbers(axes.yaxis)
        axes.legend(loc="upper right", ncols=2, fontsize=9)

    return _over_time(figures, draw)


def plot_recoveries(figures: Figures) -> str:
    """From SIGKILL of a driver to the first newly visible row: how many took at most so long."""
    splits = [each["split"] for each in figures["outcomes"] if each["split"]]
    shares = ("plan_s", "tasks_s", "commit_s")
    ours = [sum(split[name] for name in shares) for split in splits]
    totals = [split["total_s"] for split in splits]
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.0), layout="constrained")
        for values, color, label in (
            (ours, BLUE, "the sink"),
            (totals, INK, "all, with Spark's start"),
        ):
            plot_shares(axes, values, color, label)
        axes.set_xscale("log")
        label_plain_numbers(axes.xaxis)
        axes.set_xlabel("seconds from SIGKILL to the first newly visible row")
        axes.set_ylabel("% of kills")
        axes.legend(loc="center", bbox_to_anchor=(0.58, 0.5), fontsize=9)
        return render_svg(figure)


def _over_time(figures: Figures, draw: Callable[[Axes], None]) -> str:
    with mpl.rc_context(STYLE):
        figure, (marks, axes) = plt.subplots(
            2,
            1,
            figsize=(WIDTH, 4.0),
            sharex=True,
            layout="constrained",
            height_ratios=(1.15, 3),
        )
        draw(axes)
        axes.set_xlabel("minutes")
        axes.set_xlim(0, max(1.0, _last(figures) / 60))
        _mark(marks, axes, figures)
        return render_svg(figure)


def _mark(marks: Axes, axes: Axes, figures: Figures) -> None:
    """A lane for each family of faults above the plot, a mark for each fault in it."""
    families = list(Family)
    for outcome in figures["outcomes"]:
        for fault in outcome["faults"]:
            if fault["struck"]:
                family = family_of(fault["kind"])
                minute = outcome["at_s"] / 60
                lane = len(families) - families.index(family)
                marks.plot(minute, lane, "|", color=_COLORS[family], markersize=7, mew=1.6)
                axes.axvline(minute, color=_COLORS[family], linewidth=0.5, alpha=0.25, zorder=0)
    marks.set_ylim(0.3, len(families) + 0.7)
    marks.set_yticks(range(len(families), 0, -1), [family.value for family in families], fontsize=8)
    for label, family in zip(marks.get_yticklabels(), families, strict=True):
        label.set_color(_COLORS[family])
    marks.grid(visible=False)
    marks.tick_params(length=0)
    for side in marks.spines.values():
        side.set_visible(False)


def _binned(figures: Figures) -> tuple[int, list[Sequence[Figures]]]:
    """The width of a bin in seconds, and what the reader saw in each."""
    width = max(_NARROWEST_S, round(_last(figures) / _BINS))
    bins: list[list[Figures]] = [[] for _ in range(int(_last(figures)) // width + 1)]
    for second in figures["seconds"]:
        place = int(second["t"] - figures["began"]) // width
        if 0 <= place < len(bins):
            bins[place].append(second)
    return width, list(bins)


def _last(figures: Figures) -> float:
    return float(figures["minutes"]) * 60
