"""The dashboard of conf/grafana as pictures: `python -m tools.dashboard` draws those of the docs.

A real Prometheus answers each panel. It scrapes a real exporter over a real Kafka, while two
queries run there and something happens to one of them. What Grafana would draw is drawn with
matplotlib: panels in their places, with their titles, units and legends.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from threading import Event, Thread
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.ticker import FuncFormatter, MaxNLocator

from eos_sink_lab.testing import KafkaCluster, start_kafka
from integration.figured import Figured
from integration.prometheus import Prometheus, exporter, prometheus
from tools.dark import adapt

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "conf" / "grafana" / "eos-sink.json"
Box = tuple[float, float, float, float]
"""Left, bottom or top, width and height, in points or as shares."""
Line = tuple[str, list[datetime], list[float]]
"""Its label, times and values."""


@dataclass(frozen=True)
class Layout:
    """The places of the panels, in points.

    Attributes:
        shown: the titles of the panels, one below the other; empty: all, in Grafana's places.
    """

    width: float
    font: float
    shown: tuple[str, ...] = ()

    def places(self, panels: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Box]]:
        """Each panel that is shown, with its place counted from the top."""
        unit = self.width / _COLUMNS
        if not self.shown:
            for panel in panels:
                at = panel["gridPos"]
                yield panel, (at["x"] * unit, at["y"] * _ROW, at["w"] * unit, at["h"] * _ROW)
            return
        stats = [panel for panel in panels if panel["type"] == "stat"]
        for number, panel in enumerate(stats):
            yield panel, (number % 2 * 12 * unit, number // 2 * 62, 12 * unit, 62)
        by_title = {panel["title"]: panel for panel in panels}
        top = (len(stats) + 1) // 2 * 62
        for number, title in enumerate(title for title in self.shown if title in by_title):
            yield by_title[title], (0, top + number * 180, self.width, 180)


PICTURES = {
    "metrics-dashboard.svg": Layout(760, 9),
    "metrics-dashboard-narrow.svg": Layout(
        370,
        11,
        (
            "Rows a second",
            "Where the time of a batch goes",
            "Since the latest decision",
            "Open transactions",
            "Readers have waited for",
        ),
    ),
}

_COLUMNS, _ROW, _INCH, _TITLE = 24, 22.0, 72.0, 28.0
_GRID, _PAPER, _PANEL = "#e4e7eb", "#f4f5f5", "#ffffff"
_STYLE = {
    "text.color": "#24292e",
    "axes.edgecolor": _GRID,
    "svg.fonttype": "none",
    "svg.hashsalt": "eos-sink",
    "font.family": "sans-serif",
}
_STEP_S = 3.0
_WINDOW = "30s"
_UNIQUE = r"[_-][0-9a-f]{8}(?=-|$)"
"""What makes the topics of a test unique."""
_COLOURS = ["#1f60c4", "#e0752d", "#2e8b57", "#8f3bb8", "#c4162a", "#5b6b7b"]
_NAMES = {"green": "#2e8b57", "red": "#c4162a", "blue": "#1f60c4"}


def play(seconds: float, directory: Path) -> None:
    """Run two queries for a while, kill one of them during a batch, start it again, and draw."""
    with start_kafka() as cluster, tempfile.TemporaryDirectory() as data:
        orders, clicks = _queries(cluster)
        with exporter(*orders.words) as url, prometheus(url, Path(data)) as server:
            begun, ended = time.time(), Event()
            threads = [
                Thread(target=_orders, args=(orders, ended, seconds)),
                Thread(target=_keep, args=(clicks, ended, 0.8, lambda n: 400 + 150 * (n % 3))),
            ]
            for thread in threads:
                thread.start()
            time.sleep(seconds)
            draw(server, begun, time.time(), directory)
            ended.set()
            for thread in threads:
                thread.join()
        for query in (orders, clicks):
            query.close()


def draw(server: Prometheus, start: float, end: float, directory: Path) -> None:
    """Draw the panels that have data from `start` to `end`, in seconds since the epoch: a picture
    for wide windows, and one for narrow ones."""
    document = json.loads(DASHBOARD.read_text())
    lines = {p["title"]: _lines(p, server, start, end) for p in document["panels"]}
    panels = [panel for panel in document["panels"] if lines[panel["title"]]]
    for name, layout in PICTURES.items():
        plt.rcParams.update({**_STYLE, "font.size": layout.font})
        places = list(layout.places(panels))
        size = layout.width, max(y + height for _, (_, y, _, height) in places) + _TITLE
        figure = plt.figure(figsize=(size[0] / _INCH, size[1] / _INCH), facecolor=_PAPER)
        for panel, (x, y, width, height) in places:
            box = x + 3, size[1] - _TITLE - y - height + 3, width - 6, height - 6
            _frame(figure, _share(box, size), panel["title"])
            if panel["type"] == "stat":
                _stat(figure, _share(box, size), panel, lines[panel["title"]][0][2][-1])
            else:
                inside = box[0] + 46, box[1] + 48, box[2] - 58, box[3] - 72
                axes = figure.add_axes(_share(inside, size))
                axes.set_xlim(*(datetime.fromtimestamp(t, timezone.utc) for t in (start, end)))
                _series(axes, panel, lines[panel["title"]])
        figure.text(6 / size[0], 1 - 18 / size[1], document["title"], fontsize=13, weight="bold")
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", facecolor=_PAPER, metadata={"Date": None})
        plt.close(figure)
        # A tenth of a point is enough.
        picture = re.sub(r" +$|(?<=\d\.\d)\d+", "", drawn.getvalue(), flags=re.MULTILINE)
        (directory / name).write_text(adapt(picture), encoding="utf-8")


def _share(box: Box, size: tuple[float, float]) -> Box:
    """The box as shares of the picture, whose size is in points."""
    return box[0] / size[0], box[1] / size[1], box[2] / size[0], box[3] / size[1]


def _queries(cluster: KafkaCluster) -> tuple[Figured, Figured]:
    log, prefix = "__eos_sink_log", "eos-sink-"
    return (
        Figured(cluster, "orders", log=log, prefix=prefix),
        Figured(cluster, "clicks", log=log, prefix=prefix),
    )


def _keep(query: Figured, ended: Event, pause: float, rows: Callable[[int], int]) -> None:
    while not ended.wait(pause):
        query.batch(query.next, rows(query.next))


def _orders(query: Figured, ended: Event, seconds: float) -> None:
    """A third of the time without faults, then an aborted batch, and a run that dies in a batch."""
    calm, begun = Event(), time.monotonic()

    def after(share: float) -> bool:
        return time.monotonic() - begun > seconds * share

    while not ended.wait(1.2) and not after(0.4):
        query.batch(query.next, 1_500 + 600 * math.floor(math.sin(query.next / 4) * 2))
    if not ended.is_set():
        query.committer.abort(query.tasks(query.next, rows=900))
    while not ended.wait(1.2) and not after(0.6):
        query.batch(query.next, 1_500)
    if ended.is_set():
        return
    query.tasks(query.next, rows=1_500)  # And dies: readers of its topic wait.
    calm.wait(seconds * 0.15)
    query.start()
    while not ended.wait(1.2):
        query.batch(query.next, 2_500)


def _frame(figure: Any, box: Box, title: str) -> None:
    axes = figure.add_axes(box, facecolor=_PANEL)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, loc="left", weight="bold", y=1.0, pad=-15, x=0.012, fontsize="medium")


def _stat(figure: Any, box: Box, panel: dict[str, Any], value: float) -> None:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    colour = [s["color"] for s in steps if s["value"] is None or value >= s["value"]][-1]
    x, y = box[0] + box[2] / 2, box[1] + box[3] * 0.36
    figure.text(
        *(x, y),
        f"{value:g}",
        size=20,
        weight="bold",
        ha="center",
        va="center",
        color=_NAMES[colour],
    )


def _lines(panel: dict[str, Any], server: Prometheus, start: float, end: float) -> list[Line]:
    """The lines of a panel, without further ones of a query that are zero all the time."""
    lines: list[Line] = []
    start = end - (end - start) // _STEP_S * _STEP_S  # The last value is that of the end.
    for target in panel["targets"]:
        for found in server.range(_asked(target["expr"]), start, end, _STEP_S):
            label = target["legendFormat"]
            for name, value in found["metric"].items():
                label = label.replace("{{" + name + "}}", re.sub(_UNIQUE, "", value))
            times = [datetime.fromtimestamp(t, timezone.utc) for t, _ in found["values"]]
            values = [float(v) for _, v in found["values"]]
            if "," not in label or any(values):
                lines.append((label, times, values))
    return sorted(lines, key=lambda line: _rank(line[0]))


def _series(axes: Axes, panel: dict[str, Any], lines: list[Line]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    if stacked:
        known = {t: {} for _, times, _ in lines for t in times}
        for label, times, values in lines:
            for t, v in zip(times, values, strict=True):
                known[t][label] = 0.0 if math.isnan(v) else v
        at = sorted(known)
        axes.stackplot(
            at,
            [[known[t].get(label, 0.0) for t in at] for label, _, _ in lines],
            labels=[label for label, _, _ in lines],
            colors=_COLOURS,
            alpha=0.75,
        )
    else:
        for number, (label, times, values) in enumerate(lines):
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot(times, values, label=label, color=colour, linewidth=1.2)
            if len(lines) <= 2:
                axes.fill_between(times, values, color=colour, alpha=0.08)
    axes.set_facecolor(_PANEL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize="small", colors="#5b6b7b")
    axes.set_ylim(0, defaults.get("max", max(axes.get_ylim()[1], 1e-9)))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _unit(v, defaults["unit"])))
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-0.12, -0.16),
        ncols=5 if sum(len(label) for label, _, _ in lines) < 40 else 2,
        fontsize="small",
        frameon=False,
        handlelength=1.2,
        columnspacing=1.2,
    )


def _asked(expression: str) -> str:
    return expression.replace("$query", ".*").replace("$__rate_interval", _WINDOW)


def _rank(label: str) -> tuple[int, str]:
    steps = ["open", "write", "vote", "decide", "settle"]
    return (steps.index(label), "") if label in steps else (len(steps), label)


def _unit(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1000:g} ms" if 0 < value < 1 else f"{value:g} s"
    if unit == "percentunit":
        return f"{value:.0%}"
    if unit == "Bps":
        return f"{value / 1000:g} kB/s" if value >= 1000 else f"{value:g} B/s"
    if unit == "rowsps":
        return f"{value / 1000:g} k" if value >= 1000 else f"{value:g}"
    return f"{value:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long the queries run")
    parser.add_argument("--to", type=Path, default=ROOT / "docs", metavar="DIRECTORY")
    arguments = parser.parse_args()
    play(arguments.seconds, arguments.to)


if __name__ == "__main__":
    main()
