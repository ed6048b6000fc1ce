"""The results of `bench.sinks`: throughput, CPU seconds, the latency of small batches."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.pages.publication import (
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import Result, Series, Spread, ratio
from eos_sink_lab.verify.pages import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    STYLE,
    WIDTH,
    plot_shares,
    render_svg,
)

_NAME = "sinks"
OURS, THEIRS, FLOOR = "kafka-eos", "kafka", "eos-sink-floor"
TITLES = {
    OURS: "kafka-eos",
    THEIRS: "Spark's own Kafka sink",
    FLOOR: "a Python sink that drops its rows",
    "noop": "Spark's `noop` sink",
    "librdkafka": "librdkafka, a loop in Python",
    "producer": "the producer of kafka-eos by itself",
    "ProducerPerformance": "Kafka's ProducerPerformance",
    "flink": "Flink's KafkaSink, EXACTLY_ONCE",
}
_COLORS = {OURS: BLUE, THEIRS: ORANGE, FLOOR: GREEN, "noop": FAINT}
_SMALL_BYTES = 10_000_000
_MAIN = "100 B"


def shapes_of(result: Result, *, small: bool) -> list[dict[str, Any]]:
    """The shapes for latency, or those for throughput."""
    return [
        shape
        for shape in result.parameters["shapes"]
        if (shape["rows"] * shape["value_bytes"] < _SMALL_BYTES) is small
    ]


def times_the_rows(result: Result, shape: str) -> Spread | None:
    """The rows of kafka-eos per row of Spark's own sink in the same time."""
    ours, theirs = (_times(result, peer, shape) for peer in (OURS, THEIRS))
    return ratio(theirs.samples, ours.samples) if ours and theirs else None


def added_ms(result: Result, shape: str, what: str = "addBatch") -> tuple[float, float] | None:
    """Median and p95 of kafka-eos minus those of Spark's own sink."""
    ours, theirs = (_times(result, peer, shape, what) for peer in (OURS, THEIRS))
    if ours is None or theirs is None:
        return None
    ahead, behind = ours.spread, theirs.spread
    return ahead.median - behind.median, ahead.p95 - behind.p95


def _times(result: Result, peer: str, shape: str, what: str = "addBatch") -> Series | None:
    return next(result.having(what, peer=peer, shape=shape), None)


def targets(results: Results) -> Iterator[str]:
    """The aims of this benchmark and the measured values."""
    result = results[_NAME]
    rows = []
    found = times_the_rows(result, _MAIN)
    if found is not None:
        rows.append(
            (
                "Rows per second, batches of 1M rows of 100 bytes, against Spark's own sink",
                "at least 1.2 times",
                f"{spread_text(found)} times",
            )
        )
    for shape in shapes_of(result, small=True):
        if (added := added_ms(result, shape["name"])) is not None:
            rows.append(
                (
                    f"Time added to a warm micro-batch of {shape['rows']:,} rows",
                    "at most 40 ms at the median, 80 at p95",
                    f"{added[0]:+.0f} ms at the median, {added[1]:+.0f} at p95",
                )
            )
    yield from table(("", "aim", "measured"), rows)


def lines(results: Results) -> Iterator[str]:
    result = results[_NAME]
    told = result.parameters
    yield (
        f"Measured {measured_on(result)} {told['rounds']} rounds, {told['tasks']} tasks. The "
        f"machine's load was {result.machine['load'][1]}."
    )
    yield ""
    yield "### Throughput"
    yield ""
    yield from _throughput(result)
    yield "![Rows per second against Spark's own sink, by shape](bench/sinks-ratio.svg)"
    yield ""
    yield "### CPU seconds"
    yield ""
    yield f"CPU seconds for a million rows of shape {_MAIN}; medians."
    yield ""
    yield from _cpu(result, _MAIN)
    if list(result.having("rate")):
        yield "### The limit"
        yield ""
        yield from _limits(result)
    yield "### Small batches"
    yield ""
    yield from _latency(result)
    yield "![Share of small batches by their time](bench/sinks-latency.svg)"


def _throughput(result: Result) -> Iterator[str]:
    peers = [peer for peer in _COLORS if list(result.having("addBatch", peer=peer))]
    rows = []
    for shape in shapes_of(result, small=False):
        name = shape["name"]
        found = times_the_rows(result, name)
        rates = [_rate(result, peer, shape) for peer in peers]
        floor, used = _of_floor(result, name), _cpu_ratio(result, name)
        rows.append((name, *rates, spread_text(found) if found else "", floor, used))
    heads = [f"{TITLES[peer]}, rows/s" for peer in peers]
    ratios = ("kafka-eos / Spark's own", "kafka-eos / dropped rows", "CPU, kafka-eos / Spark's own")
    yield from table(("shape", *heads, *ratios), rows)


def _of_floor(result: Result, shape: str) -> str:
    ours, floor = (_times(result, peer, shape) for peer in (OURS, FLOOR))
    return f"{ratio(floor.samples, ours.samples).median:.2f}" if ours and floor else ""


def _cpu_ratio(result: Result, shape: str) -> str:
    ours, theirs = (
        sum(each.spread.median for each in result.having("cpu", peer=peer, shape=shape))
        for peer in (OURS, THEIRS)
    )
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def _rate(result: Result, peer: str, shape: dict[str, Any]) -> str:
    times = _times(result, peer, shape["name"])
    return number(shape["rows"] * 1000 / times.spread.median) if times else ""


def _cpu(result: Result, shape: str) -> Iterator[str]:
    parts = {"spark": "Spark's JVM", "python": "Python workers", "broker": "broker"}
    rows = []
    for peer, title in TITLES.items():
        used = {
            str(each.labels["whose"]): each.spread.median
            for each in result.having("cpu", peer=peer, shape=shape)
        }
        if used:
            own = sum(seconds for whose, seconds in used.items() if whose not in parts)
            cells = [f"{used[part]:.2f}" if part in used else "" for part in parts]
            rows.append((title, *cells, f"{own:.2f}" if own else "", f"{sum(used.values()):.2f}"))
    yield from table(("", *parts.values(), "its own process", "all"), rows)


def _limits(result: Result) -> Iterator[str]:
    rows = []
    for shape in shapes_of(result, small=False):
        for peer in ("librdkafka", "producer", "ProducerPerformance", "flink"):
            for rate in result.having("rate", peer=peer, shape=shape["name"]):
                megabytes = rate.spread.median * shape["value_bytes"] / 1e6
                told = (spread_text(rate.spread), number(megabytes))
                rows.append((f"{shape['name']}: {TITLES[peer]}", *told))
    yield from table(("", "rows/s", "MB/s"), rows)


def _latency(result: Result) -> Iterator[str]:
    rows = []
    for shape in shapes_of(result, small=True):
        for peer, title in TITLES.items():
            batch, trigger = (
                _times(result, peer, shape["name"], what) for what in ("addBatch", "trigger")
            )
            if batch is None or trigger is None:
                continue
            cells = [
                f"{value:.0f}"
                for found in (batch.spread, trigger.spread)
                for value in (found.median, found.p95)
            ]
            rows.append((title, *cells))
    heads = ("addBatch, median ms", "p95", "whole trigger, median ms", "p95")
    yield from table(("", *heads), rows)


def ratio_plot(results: Results) -> str:
    """A bar of nine tenths and a mark at the median for each shape."""
    result = results[_NAME]
    found = [
        (shape["name"], times)
        for shape in shapes_of(result, small=False)
        if (times := times_the_rows(result, shape["name"])) is not None
    ][::-1]
    with mpl.rc_context(STYLE):
        height = 1.2 + 0.32 * len(found)
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        for place, (_, times) in enumerate(found):
            axes.plot((times.p5, times.p95), (place, place), color=BLUE, linewidth=5, alpha=0.3)
            axes.plot(times.median, place, "o", color=BLUE)
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_yticks(range(len(found)), [name for name, _ in found])
        axes.set_xlim(left=0)
        axes.set_xlabel("times the rows of Spark's own sink in the same time")
        return render_svg(figure)


def latency_plot(results: Results) -> str:
    """The share of small batches by their time."""
    result = results[_NAME]
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.2), layout="constrained")
        longest = []
        for shape in shapes_of(result, small=True):
            for peer, color in _COLORS.items():
                times = _times(result, peer, shape["name"])
                if times is None:
                    continue
                plot_shares(axes, times.samples, color, TITLES[peer].replace("`", ""))
                longest.append(times.spread.p95)
        axes.set_xlim(0, 1.6 * median(longest) + max(longest) if longest else 1)
        axes.set_xlabel("ms of addBatch")
        axes.set_ylabel("% of batches")
        if longest:
            axes.legend(loc="lower right", fontsize=9)
        return render_svg(figure)


TARGETS = Publication("targets", "bench.md", (_NAME,), targets)
SINKS = Publication(
    "sinks",
    "bench.md",
    (_NAME,),
    lines,
    {"sinks-ratio.svg": ratio_plot, "sinks-latency.svg": latency_plot},
)
