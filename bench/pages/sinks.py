"""The results of `bench.sinks`: throughput and CPU seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.floor import FORMAT as FLOOR
from bench.pages.publication import (
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.pages.small_batches import NAME, added_ms
from bench.result import Result, Series, Spread, ratio
from eos_sink_lab.verify.pages import (
    BLUE,
    INK,
    STYLE,
    WIDTH,
    render_svg,
)

_NAME = "sinks"
OURS, THEIRS = "kafka-eos", "kafka"
TITLES = {
    OURS: "kafka-eos",
    THEIRS: "Spark's own Kafka sink",
    FLOOR: "a Python sink that drops its rows",
    "noop": "Spark's `noop` sink",
    "producer": "the producer of kafka-eos by itself",
    "flink": "Flink's KafkaSink, EXACTLY_ONCE",
}
_STREAMS = (OURS, THEIRS, FLOOR, "noop")
_PARTS = {"spark": "Spark's JVM", "python": "Python workers", "broker": "broker"}
_MAIN = "100 B"
# The aims: of the rows of Spark's own sink, and of the time that it takes for a small batch.
_TIMES, _MEDIAN_MS, _P95_MS = 1.2, 40, 80


def times_the_rows(result: Result, shape: str) -> Spread | None:
    """The rows of kafka-eos per row of Spark's own sink in the same time."""
    ours, theirs = (_times(result, peer, shape) for peer in (OURS, THEIRS))
    return ratio(theirs.samples, ours.samples) if ours and theirs else None


def _times(result: Result, peer: str, shape: str) -> Series | None:
    return result.find("addBatch", peer=peer, shape=shape)


def targets(results: Results) -> Iterator[str]:
    """The aims and the measured values."""
    rows = []
    if _NAME in results and (found := times_the_rows(results[_NAME], _MAIN)):
        what = "Rows per second, batches of 1M rows of 100 bytes, against Spark's own sink"
        aim, told = f"at least {_TIMES:g} times", f"{spread_text(found)} times"
        rows.append((what, aim, told, _yes(found.median >= _TIMES)))
    if NAME in results and (added := added_ms(results[NAME], 2)):
        what = "Time added to a warm micro-batch of 1,000 rows, against Spark's own sink"
        measured = f"{added[0]:+.0f} ms at the median, {added[1]:+.0f} at p95"
        aim = f"at most {_MEDIAN_MS} ms at the median, {_P95_MS} at p95"
        reached = added[0] <= _MEDIAN_MS and added[1] <= _P95_MS
        rows.append((what, aim, measured, _yes(reached)))
    yield from table(("", "aim", "measured", "reached"), rows)


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


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
    yield "![Rows per second against Spark's own sink, by shape](../../docs/bench/sinks-ratio.svg)"
    yield ""
    yield "### CPU seconds"
    yield ""
    yield f"CPU seconds for a million rows of shape {_MAIN}; medians."
    yield ""
    yield from _cpu(result, _MAIN)
    yield "The same of each shape, kafka-eos / Spark's own, and in all if the rows are dropped:"
    yield ""
    yield from _cpu_by_shape(result)
    if list(result.having("rate")):
        yield "### The limit"
        yield ""
        yield from _limits(result)


def _throughput(result: Result) -> Iterator[str]:
    peers = [peer for peer in _STREAMS if list(result.having("addBatch", peer=peer))]
    rows = []
    for shape in result.parameters["shapes"]:
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
    ours, theirs = (sum(_used(result, peer, shape).values()) for peer in (OURS, THEIRS))
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def _rate(result: Result, peer: str, shape: dict[str, Any]) -> str:
    times = _times(result, peer, shape["name"])
    return number(shape["rows"] * 1000 / times.spread.median) if times else ""


def _cpu(result: Result, shape: str) -> Iterator[str]:
    rows = []
    for peer, title in TITLES.items():
        if used := _used(result, peer, shape):
            own = sum(seconds for whose, seconds in used.items() if whose not in _PARTS)
            cells = [f"{used[part]:.2f}" if part in used else "" for part in _PARTS]
            rows.append((title, *cells, f"{own:.2f}" if own else "", f"{sum(used.values()):.2f}"))
    yield from table(("", *_PARTS.values(), "its own process", "all"), rows)


def _cpu_by_shape(result: Result) -> Iterator[str]:
    rows = []
    for shape in result.parameters["shapes"]:
        ours, theirs, floor = (_used(result, peer, shape["name"]) for peer in (OURS, THEIRS, FLOOR))
        if ours and theirs and floor:
            cells = [f"{number(ours[part])} / {number(theirs[part])}" for part in _PARTS]
            rows.append((shape["name"], *cells, number(sum(floor.values()))))
    yield from table(("shape", *_PARTS.values(), "rows dropped, all"), rows)


def _used(result: Result, peer: str, shape: str) -> dict[str, float]:
    """CPU seconds of each process for a million rows."""
    return {
        str(each.labels["whose"]): each.spread.median
        for each in result.having("cpu", peer=peer, shape=shape)
    }


def _limits(result: Result) -> Iterator[str]:
    rows = []
    for shape in result.parameters["shapes"]:
        for peer in ("producer", "flink"):
            for rate in result.having("rate", peer=peer, shape=shape["name"]):
                megabytes = rate.spread.median * shape["value_bytes"] / 1e6
                told = (spread_text(rate.spread), number(megabytes))
                rows.append((f"{shape['name']}: {TITLES[peer]}", *told))
    yield from table(("", "rows/s", "MB/s"), rows)


def ratio_plot(results: Results) -> str:
    """A bar of nine tenths and a mark at the median for each shape."""
    result = results[_NAME]
    found = [
        (shape["name"], times)
        for shape in result.parameters["shapes"]
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


TARGETS = Publication("targets", RESULTS_PAGE, (_NAME, NAME), targets)
SINKS = Publication("sinks", RESULTS_PAGE, (_NAME,), lines, {"sinks-ratio.svg": ratio_plot})
