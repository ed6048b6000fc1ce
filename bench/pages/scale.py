"""The tables about scale: settling by the number of tasks, requests, many tasks and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.many import OF_EACH, SHOWN
from bench.pages.publication import (
    PERFORMANCE_PAGE,
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.requests import PARTITIONS
from bench.result import Label, Result, spread
from eos_sink_lab.verify.pages import (
    BLUE,
    GREEN,
    ORANGE,
    STYLE,
    WIDTH,
    label_plain_numbers,
    render_svg,
)

SETTLE, REQUESTS, MANY = "settle", "requests", "many"
_PHASES = {"plan": "plan", "tasks": "all tasks", "commit": "vote, decide, settle"}
# Heartbeats come by the clock, and are not of a batch.
_HEARTBEAT = "HEARTBEAT"
_STEPS = {
    "vote": "vote",
    "decide": "decide",
    "settle": "settle",
    "commit": "`commit()`, all of these",
    "plan": "next plan",
    "abort": "`abort()`",
}


def settling(results: Results) -> Iterator[str]:
    """The driver's steps, their CPU seconds, and idle tasks."""
    found = results[SETTLE]
    load = found.machine["load"][0]
    yield f"Measured {measured_on(found)}"
    yield f"The machine's load was {number(load)}."
    yield "Three brokers, replication factor 3, `min.insync.replicas` 2;"
    yield "median milliseconds of the driver's steps, and the range of nine of ten values:"
    yield ""
    tasks = sorted(medians(found, "commit"))
    yield from table(
        ["tasks", *_STEPS.values()],
        [[str(n), *(_milliseconds(found, what, tasks=n) for what in _STEPS)] for n in tasks],
    )
    yield "CPU seconds of a batch's `commit()`:"
    yield ""
    whose = ("driver", "brokers")
    yield from table(
        ["tasks", *whose],
        [[str(n), *(_middle(found, f"commit: CPU of {w}", tasks=n) for w in whose)] for n in tasks],
    )
    yield "One task with rows, and idle tasks:"
    yield ""
    idle = sorted(int(s.labels["idle"]) for s in found.having("commit") if "idle" in s.labels)
    yield from table(
        ["idle tasks", "`commit()`"],
        [[str(n), _milliseconds(found, "commit", idle=n)] for n in idle],
    )


def medians(result: Result, what: str) -> dict[int, float]:
    """Of a quantity that was measured by the number of tasks."""
    found = [each for each in result.having(what) if "tasks" in each.labels]
    return {int(each.labels["tasks"]): each.spread.median for each in found}


def asked(results: Results) -> Iterator[str]:
    """Requests of batches whose tasks open a transaction each."""
    yield f"Requests of a warm batch, each task with one row for each of {PARTITIONS} partitions,"
    yield "by what sends them:"
    yield ""
    yield from _by_api(results[REQUESTS])


def many(results: Results) -> Iterator[str]:
    """Many tasks, many queries and many topics."""
    found = results[MANY]
    yield f"Measured {measured_on(found)}"
    yield f"The machine's load was {number(found.machine['load'][0])}, most of it other work. Three"
    yield "brokers, replication factor 3, `min.insync.replicas` 2."
    yield ""
    yield "One query, a batch each:"
    yield ""
    tasks = sorted(medians(found, "commit"))
    sizes = {
        "decision, bytes": "decision size",
        "coordinators' log, bytes per replica": "coordinator's log",
    }
    rows = [[name, *_numbers(medians(found, what), tasks)] for name, what in sizes.items()]
    for what in ("vote", "decide", "settle", "plan"):
        times = {n: 1000 * value for n, value in medians(found, what).items()}
        rows.append([f"{_STEPS[what]}, ms", *_numbers(times, tasks)])
    yield from table(["tasks", *(f"{n:,}" for n in tasks)], rows)
    queries = int(found.parameters["queries"])
    ids = int(found.one("transactional ids").spread.median)
    log = found.one("decision log").spread.median
    yield f"{queries:,} queries with a topic and {OF_EACH} tasks each, one after the other:"
    yield f"{ids:,} transactional ids in the end, {number(log / 1000)} kB of decision log a"
    yield f"replica; `eos-sink status` of all takes {number(found.one('status').spread.median)} s."
    yield "Milliseconds:"
    yield ""
    steps = {"start": ("plan", False), "next plan": ("plan", True), "`commit()`": ("commit", True)}
    ends = {SHOWN: f"the first {SHOWN} queries", queries: f"the last {SHOWN} of {queries:,}"}
    yield from table(
        ["", *ends.values()],
        [
            [name, *(_milliseconds(found, what, queries=n, warm=warm) for n in ends)]
            for name, (what, warm) in steps.items()
        ],
    )
    yield f"A query with one task and a row for each of the {queries:,} topics, milliseconds:"
    yield ""
    yield from table(
        ["", "first batch", "next batches"],
        [
            [name, *(_milliseconds(found, what, topics=queries, warm=w) for w in (False, True))]
            for name, what in {"plan": "plan", "task": "write", "`commit()`": "commit"}.items()
        ],
    )


def inline(results: Results) -> Iterator[str]:
    """Batches whose rows the driver writes."""
    yield f"Requests of a warm batch, a row for each of {PARTITIONS} partitions in each task:"
    yield ""
    yield from _by_api(results[REQUESTS], inline=True)


def plot(results: Results) -> str:
    """Milliseconds by the number of tasks."""
    found = results[SETTLE]
    shown = {"settle": BLUE, "decide": GREEN, "abort": ORANGE}
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
        for what, color in shown.items():
            points = sorted(medians(found, what).items())
            tasks, times = [n for n, _ in points], [1000 * value for _, value in points]
            axes.plot(tasks, times, color=color, marker="o", markersize=3, label=what)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("tasks")
        axes.set_ylabel("milliseconds")
        label_plain_numbers(axes.xaxis)
        label_plain_numbers(axes.yaxis)
        axes.legend(loc="upper left", fontsize=9)
        return render_svg(figure)


def _numbers(values: Mapping[int, float], tasks: Iterable[int]) -> list[str]:
    return [number(values[n]) for n in tasks]


def _requests(result: Result, phase: str, *, inline: bool) -> dict[int, float]:
    """All requests of a phase in a batch, by the number of tasks, which are all inline or not at
    all."""
    found: dict[int, float] = {}
    for each in result.having("requests", phase=phase, inline=inline):
        if each.labels["api"] != _HEARTBEAT:
            tasks = int(each.labels["tasks"])
            found[tasks] = found.get(tasks, 0.0) + each.spread.median
    return found


def _by_api(found: Result, *, inline: bool = False) -> Iterator[str]:
    counted = found.having("requests", inline=inline)
    series = [each for each in counted if each.labels["api"] != _HEARTBEAT]
    tasks = sorted({int(each.labels["tasks"]) for each in series})
    kinds = sorted(
        {(str(s.labels["phase"]), str(s.labels["client"]), str(s.labels["api"])) for s in series}
    )
    order = list(_PHASES)
    rows = []
    for phase, client, api in sorted(kinds, key=lambda kind: (order.index(kind[0]), *kind[1:])):
        same = {
            int(each.labels["tasks"]): each.spread.median
            for each in series
            if (each.labels["phase"], each.labels["client"], each.labels["api"])
            == (phase, client, api)
        }
        cells = [number(same.get(n, 0)) for n in tasks]
        rows.append([f"{_PHASES[phase]}: {api} ({client})", *cells])
    sums = [_requests(found, phase, inline=inline) for phase in order]
    rows.append(["all", *(number(sum(each.get(n, 0) for each in sums)) for n in tasks)])
    yield from table(["tasks", *map(str, tasks)], rows)


def _milliseconds(found: Result, what: str, **labels: Label) -> str:
    series = [s for s in found.having(what, **labels) if len(s.labels) == len(labels)]
    if not series:
        return "none"
    return spread_text(spread(1000 * value for value in series[0].samples))


def _middle(found: Result, what: str, **labels: int) -> str:
    return number(found.one(what, **labels).spread.median)


SETTLING = Publication("settling", RESULTS_PAGE, (SETTLE,), settling, {"settling.svg": plot})
ASKED = Publication("requests", RESULTS_PAGE, (REQUESTS,), asked)
INLINE = Publication("inline", RESULTS_PAGE, (REQUESTS,), inline)
MANY_OF_EACH = Publication("many", PERFORMANCE_PAGE, (MANY,), many)
