"""The result of `bench.timeline`: the steps of one small batch, one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.pages.publication import RESULTS_PAGE, Publication, Results, measured_on
from bench.result import Result
from eos_sink_lab.verify.pages import BLUE, GREEN, INK, ORANGE, STYLE, WIDTH, render_svg

NAME = "timeline"
KINDS: Mapping[str, Mapping[str, str]] = {
    "small partitions": {},
    "tasks with transactions of their own": {"eos.inline.bytes": "0"},
}
_COLORS = {"Spark": INK, "planner": BLUE, "task": GREEN, "committer": ORANGE}
# Of the batches; what fewer have is not of every batch.
_MOST = 0.8


def lines(results: Results) -> Iterator[str]:
    result = results[NAME]
    yield f"Measured {measured_on(result)} Medians of {result.parameters['batches']} batches."
    yield ""
    yield "![The steps of a batch of 1,000 rows, by process](../../docs/bench/timeline.svg)"


def steps_of(result: Result, kind: str) -> list[tuple[str, str, float, float]]:
    """Who, step, start and end in ms: the medians of the batches, in the order of their start."""
    found = []
    for start in result.having("start", kind=kind):
        began, ended = (
            series.spread.median for series in (start, result.one("end", **start.labels))
        )
        # A call with one gate has no length.
        if ended > began and len(start.samples) >= _MOST * result.parameters["batches"]:
            found.append((str(start.labels["who"]), str(start.labels["step"]), began, ended))
    order = [*_COLORS]
    return sorted(found, key=lambda each: (each[2], order.index(each[0])))


def plot(results: Results) -> str:
    """A bar for each step, from its start to its end; a panel for each kind of batch."""
    rows = {kind: steps_of(results[NAME], kind) for kind in KINDS}
    heights = [len(steps) for steps in rows.values()]
    with mpl.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(rows),
            figsize=(WIDTH, 1.4 + 0.24 * sum(heights)),
            layout="constrained",
            height_ratios=heights,
            sharex=True,
        )
        for axes, (kind, steps) in zip(panels, rows.items(), strict=True):
            for place, (who, _, start, end) in enumerate(steps):
                axes.barh(place, end - start, left=start, height=0.7, color=_COLORS[who])
            names = [f"{who}: {step}" for who, step, *_ in steps]
            axes.set_yticks(range(len(steps)), names, fontsize=8)
            axes.invert_yaxis()
            axes.set_title(kind, fontsize=10, loc="left")
        panels[-1].set_xlabel("milliseconds since the trigger")
        return render_svg(figure)


PUBLICATION = Publication(NAME, RESULTS_PAGE, (NAME,), lines, {"timeline.svg": plot})
