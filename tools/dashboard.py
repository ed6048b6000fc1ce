"""The dashboard of conf/grafana as one picture: `python -m tools.dashboard` draws the docs' one.

A real Prometheus answers each panel. It scrapes a real exporter over a real Kafka, while two
queries run there and something happens to one of them. What Grafana would draw is drawn with
matplotlib: panels in their places, with their titles, units and legends.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
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

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "conf" / "grafana" / "eos-sink.json"
PICTURE = ROOT / "docs" / "metrics-dashboard.png"

_COLUMNS, _INCH = 24, 0.62
_STEP_S = 1.0
_WINDOW = "30s"
_COLOURS = ["#1f60c4", "#e0752d", "#2e8b57", "#8f3bb8", "#c4162a", "#5b6b7b"]
_INK, _GRID, _PAPER, _PANEL = "#24292e", "#e4e7eb", "#f4f5f5", "#ffffff"
_NAMES = {"green": "#2e8b57", "red": "#c4162a", "blue": "#1f60c4"}


def play(seconds: float, picture: Path) -> None:
    """Run two queries for a while, kill one of them during a batch, start it again, and draw."""
    with start_kafka() as cluster, tempfile.TemporaryDirectory() as directory:
        orders, clicks = _queries(cluster)
        first, others = orders.words, Path(directory)
        with exporter(*first) as url, prometheus(url, others) as server:
            begun, ended = time.time(), Event()
            threads = [
                Thread(target=_orders, args=(orders, ended, seconds)),
                Thread(target=_keep, args=(clicks, ended, 0.8, lambda n: 400 + 150 * (n % 3))),
            ]
            for thread in threads:
                thread.start()
            time.sleep(seconds)
            draw(server, begun, time.time(), picture)
            ended.set()
            for thread in threads:
                thread.join()
        for query in (orders, clicks):
            query.close()


def draw(server: Prometheus, start: float, end: float, picture: Path) -> None:
    """Every panel of the dashboard, from `start` to `end`, in seconds since the epoch."""
    document = json.loads(DASHBOARD.read_text())
    rows = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in document["panels"])
    plt.rcParams.update({"font.size": 8, "text.color": _INK, "axes.edgecolor": _GRID})
    figure = plt.figure(figsize=(_COLUMNS * _INCH, rows * _INCH * 0.55 + 0.4), facecolor=_PAPER)
    for panel in document["panels"]:
        at = panel["gridPos"]
        height = 0.97 / rows
        box = (
            at["x"] / _COLUMNS + 0.004,
            0.97 - (at["y"] + at["h"]) * height + 0.004,
            at["w"] / _COLUMNS - 0.008,
            at["h"] * height - 0.008,
        )
        _frame(figure, box, panel["title"])
        if panel["type"] == "stat":
            _stat(figure, box, panel, server)
        else:
            small = (box[0] + 0.034, box[1] + 0.034, box[2] - 0.046, box[3] - 0.066)
            _series(figure.add_axes(small), panel, server, start, end)
    figure.text(0.006, 0.982, document["title"], fontsize=13, weight="bold")
    figure.savefig(picture, dpi=80, facecolor=_PAPER)
    plt.close(figure)


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


def _frame(figure: Any, box: tuple[float, float, float, float], title: str) -> None:
    axes = figure.add_axes(box, facecolor=_PANEL)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, loc="left", fontsize=9, weight="bold", y=1.0, pad=-13, x=0.012)


def _stat(
    figure: Any, box: tuple[float, float, float, float], panel: dict[str, Any], server: Prometheus
) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    found = server.query(_asked(panel["targets"][0]["expr"]))
    value = float(found[0]["value"][1]) if found else math.nan
    steps = defaults["thresholds"]["steps"]
    colour = [s["color"] for s in steps if s["value"] is None or value >= s["value"]][-1]
    text = "no data" if math.isnan(value) else f"{value:g}"
    x, y = box[0] + box[2] / 2, box[1] + box[3] * 0.36
    figure.text(
        x, y, text, fontsize=22, weight="bold", ha="center", va="center", color=_NAMES[colour]
    )


def _series(
    axes: Axes, panel: dict[str, Any], server: Prometheus, start: float, end: float
) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    lines: list[tuple[str, list[datetime], list[float]]] = []
    for target in panel["targets"]:
        for found in server.range(_asked(target["expr"]), start, end, _STEP_S):
            label = target["legendFormat"]
            for name, value in found["metric"].items():
                label = label.replace("{{" + name + "}}", value)
            times = [datetime.fromtimestamp(t, timezone.utc) for t, _ in found["values"]]
            lines.append((label, times, [float(v) for _, v in found["values"]]))
    lines.sort(key=lambda line: _rank(line[0]))
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    if stacked and lines:
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
            axes.fill_between(times, values, color=colour, alpha=0.08)
    axes.set_facecolor(_PANEL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=7, colors="#5b6b7b")
    axes.set_xlim(
        datetime.fromtimestamp(start, timezone.utc), datetime.fromtimestamp(end, timezone.utc)
    )
    axes.set_ylim(0, defaults.get("max", max(axes.get_ylim()[1], 1e-9)))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _unit(v, defaults["unit"])))
    if lines:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.13),
            ncols=5 if sum(len(label) for label, _, _ in lines) < 80 else 2,
            fontsize=7,
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
    parser.add_argument("--to", type=Path, default=PICTURE, metavar="FILE")
    arguments = parser.parse_args()
    play(arguments.seconds, arguments.to)


if __name__ == "__main__":
    main()
