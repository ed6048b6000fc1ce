"""The tables about loops and Spark in bench/results/README.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.pages.publication import (
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import Label, Result
from eos_sink_lab.verify.pages import (
    BLUE,
    ORANGE,
    STYLE,
    VIOLET,
    WIDTH,
    label_plain_numbers,
    render_svg,
)

LOOPS, SPARK = "eos-loops", "eos-spark"
_COLORS = (BLUE, ORANGE, VIOLET)
_HEIGHT = 3.6
# Of a core: more processes that want it than a benchmark of two cores brings along.
_BUSY = 3
_RATE, _CPU = ("throughput",), ("CPU of client", "CPU of brokers")


def measured(found: Result) -> Iterator[str]:
    """Date and machine, and whether other work ran on it."""
    yield f"Measured {measured_on(found)}"
    load, cores = found.machine["load"][0], found.machine["cores"]
    if load > _BUSY * cores:
        yield (
            f"Other work ran on the machine (load {load:g}): compare within a table, and trust "
            "counts and CPU more than times."
        )


def loops(results: Results) -> Iterator[str]:
    """The throughput of each client, and the requests of a transaction."""
    found = results[LOOPS]
    clients = _labels(found, "client", "throughput")
    yield from measured(found)
    yield ""
    yield (
        "Thousands of records per second, and in parentheses the microseconds of CPU that client "
        "and broker spend on a record:"
    )
    yield ""
    head = ("commit every", "output partitions")

    def absolute(place: Mapping[str, Label]) -> Iterator[str]:
        for client in clients:
            rate, cpu = (_sum(found, what, client, False, place) for what in (_RATE, _CPU))
            yield f"{number(rate / 1000)} ({number(cpu)})"

    yield from table([*head, *map(str, clients)], [*_grid(found, "throughput", absolute)])
    yield (
        "With declared partitions, as a multiple of that: records (above 1 is faster), CPU (below "
        "1 is cheaper):"
    )
    yield ""
    declaring = [c for c in clients if any(found.having("throughput", client=c, declared=True))]

    def relative(place: Mapping[str, Label]) -> Iterator[str]:
        for client in declaring:
            rate, cpu = (_ratio(found, what, client, place) for what in (_RATE, _CPU))
            yield f"{rate:.2f} ({cpu:.2f})"

    yield from table([*head, *map(str, declaring)], [*_grid(found, "throughput", relative)])
    yield "Requests of librdkafka per transaction:"
    yield ""
    kinds = ("AddPartitionsToTxn", "Produce")

    def requests(place: Mapping[str, Label]) -> Iterator[str]:
        for kind in kinds:
            yield number(found.one(kind, declared=False, **place).spread.median)

    yield from table([*head, *kinds], [*_grid(found, kinds[0], requests)])


def visible(results: Results) -> Iterator[str]:
    """How long a record waits."""
    found = results[LOOPS]
    clients = _labels(found, "client", "visible")
    rows = [
        [
            _interval(interval),
            *(
                spread_text(found.one("visible", client=client, interval_ms=interval).spread)
                for client in clients
            ),
        ]
        for interval in _labels(found, "interval_ms", "visible")
    ]
    yield (
        f"Milliseconds from a record's creation until a `read_committed` reader has its copy, at "
        f"{number(found.parameters['rate'])} records per second into "
        f"{found.parameters['latency_partitions']} partitions: the median and the range of "
        "nine of ten values."
    )
    yield ""
    yield from table(["commit every", *map(str, clients)], rows)


def spark(results: Results) -> Iterator[str]:
    """The sinks."""
    found = results[SPARK]
    yield from measured(found)
    yield ""
    yield (
        f"Milliseconds at {number(found.parameters['rate'])} rows per second and "
        f"{found.parameters['tasks']} tasks per batch: of Spark's `addBatch`, and from a row's "
        "creation until a `read_committed` reader has it."
    )
    yield ""
    yield from table(
        ["trigger", "output partitions", "sink", "batches", "addBatch", "visible after"],
        [
            [
                _interval(each.labels["trigger_ms"]) if each.labels["trigger_ms"] else "at once",
                str(each.labels["partitions"]),
                str(each.labels["sink"]),
                str(found.one("addBatch", **each.labels).spread.n),
                spread_text(found.one("addBatch", **each.labels).spread),
                spread_text(each.spread),
            ]
            for each in found.having("visible")
        ],
    )


def draw_loops(results: Results) -> str:
    """Throughput over the number of partitions, a panel a commit interval."""
    found = results[LOOPS]
    intervals = _labels(found, "interval_ms", "throughput")
    with mpl.rc_context(STYLE):
        figure, panels = plt.subplots(
            1, len(intervals), figsize=(WIDTH, _HEIGHT), sharey=True, squeeze=False
        )
        for axes, interval in zip(panels[0], intervals, strict=True):
            for color, client in zip(_COLORS, _labels(found, "client", "throughput"), strict=False):
                for declared in (False, True):
                    series = list(
                        found.having(
                            "throughput", client=client, declared=declared, interval_ms=interval
                        )
                    )
                    if series:
                        axes.plot(
                            [each.labels["partitions"] for each in series],
                            [each.spread.median / 1000 for each in series],
                            color=color,
                            linestyle="--" if declared else "-",
                            marker="o",
                            markersize=3,
                            label=f"{client}, declared" if declared else str(client),
                        )
            axes.set_title(f"commit every {_interval(interval)}", fontsize=10)
            axes.set_xscale("log")
            axes.set_xlabel("output partitions")
            label_plain_numbers(axes.xaxis)
        panels[0][0].set_ylabel("thousand records/s")
        panels[0][0].set_ylim(bottom=0)
        panels[0][-1].legend(fontsize=8)
        figure.tight_layout()
        return render_svg(figure)


def _grid(
    found: Result, what: str, cells: Callable[[Mapping[str, Label]], Iterable[str]]
) -> Iterator[list[str]]:
    """A row for each commit interval and number of output partitions."""
    for interval in _labels(found, "interval_ms", what):
        for partitions in _labels(found, "partitions", what):
            place = {"interval_ms": interval, "partitions": partitions}
            yield [_interval(interval), str(partitions), *cells(place)]


def _ratio(found: Result, whats: Sequence[str], client: Label, place: Mapping[str, Label]) -> float:
    declared, plainly = (_sum(found, whats, client, way, place) for way in (True, False))
    return declared / plainly


def _sum(
    found: Result,
    whats: Sequence[str],
    client: Label,
    declared: bool,
    place: Mapping[str, Label],
) -> float:
    """Of some quantities of a loop: their medians."""
    series = (found.one(each, client=client, declared=declared, **place) for each in whats)
    return sum(each.spread.median for each in series)


def _labels(found: Result, name: str, what: str) -> list[Label]:
    """Its values, in the order in which they were measured."""
    return list(dict.fromkeys(each.labels[name] for each in found.having(what)))


def _interval(ms: Label) -> str:
    return f"{float(ms) / 1000:g} s" if float(ms) >= 1000 else f"{float(ms):g} ms"


PUBLICATIONS = (
    Publication("loops", RESULTS_PAGE, (LOOPS,), loops, {"eos-loops.svg": draw_loops}),
    Publication("visible", RESULTS_PAGE, (LOOPS,), visible),
    Publication("spark", RESULTS_PAGE, (SPARK,), spark),
)
