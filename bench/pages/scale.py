"""The tables about scale: settling by the number of tasks, formulas, conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench import scale
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
from bench.result import Result, spread
from bench.scale import Fit, fit, medians
from eos_sink_lab.verify.pages import (
    BLUE,
    GREEN,
    ORANGE,
    STYLE,
    WIDTH,
    label_plain_numbers,
    render_svg,
)

SETTLE, REQUESTS = "settle", "requests"
_PHASES = {"plan": "plan", "tasks": "all tasks", "commit": "vote, decide, settle"}
_TASKS = (10, 1_000, 10_000)
_QUERIES, _EVERY_S, _OF_EACH = 1_000, 10, 10
_RECORD_LIMIT = 16 * 1024 * 1024
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


def formulas(results: Results) -> Iterator[str]:
    """Each formula, its predictions, and the measurements."""
    yield "| cost | unit | formula | tasks | predicted | measured |"
    yield "|---|---|---|--:|--:|--:|"
    for each in _fits(results):
        line = each.line
        formula = f"{number(line.base)} + {number(line.each)} * tasks"
        for tasks, measured in each.between.items():
            told = f"{tasks} | {number(line.at(tasks))} | {number(measured)} |"
            yield f"| {each.what} | {each.unit} | {formula} | {told}"
    yield ""
    yield "Requests of a warm batch, each task with one row for each of "
    yield f"{PARTITIONS} partitions, by what sends them:"
    yield ""
    yield from _by_api(results[REQUESTS])


def follows(results: Results) -> Iterator[str]:
    """The formulas at ten, a thousand and ten thousand tasks, and at a thousand queries."""
    fits = {each.what: each for each in _fits(results)}
    asked = [each for name, each in fits.items() if name.startswith("requests")]
    size, log = fits["decision"], fits["coordinators' log"]
    rows = [
        ["requests", *(number(_sum(asked, n)) for n in _TASKS)],
        ["transactional ids", *(f"{scale.transactional_ids(1, n):,}" for n in _TASKS)],
        ["decision, bytes", *(number(size.line.at(n)) for n in _TASKS)],
        ["coordinators' log, bytes per replica", *(number(log.line.at(n)) for n in _TASKS)],
        *(
            [f"{name}, ms", *(number(fits[name].line.at(n)) for n in _TASKS)]
            for name in ("vote", "decide", "settle", "next plan")
        ),
    ]
    yield "One query, per batch:"
    yield ""
    yield from table(["tasks", *(f"{n:,}" for n in _TASKS)], rows)
    most = scale.most_tasks(size.line, _RECORD_LIMIT)
    yield f"A decision reaches the log's `max.message.bytes` of 16 MiB at about {most:,} tasks."
    yield ""
    yield f"{_QUERIES:,} queries of {_OF_EACH} tasks each, a batch every {_EVERY_S} s:"
    yield ""
    record = size.line.at(_OF_EACH)
    each_second = _QUERIES / _EVERY_S
    idle = sum(s.spread.median for s in results[REQUESTS].having("idle"))
    ids = scale.transactional_ids(_QUERIES, _OF_EACH)
    coordinators = log.line.at(_OF_EACH) * each_second
    yield from table(
        ["", "on the whole cluster"],
        [
            ["requests per second for batches", number(_sum(asked, _OF_EACH) * each_second)],
            ["requests per second when idle", number(idle * _QUERIES)],
            ["transactional ids", f"{ids:,}"],
            ["static group members", f"{_QUERIES:,}"],
            ["decision log, bytes per second and replica", number(record * each_second)],
            ["decision log, live bytes", number(record * _QUERIES)],
            ["coordinators' log, bytes per second and replica", number(coordinators)],
            ["bytes that a plan reads", number(scale.read_by_a_plan(_QUERIES, record))],
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


def _fits(results: Results) -> Iterator[Fit]:
    settle, counted = results[SETTLE], results[REQUESTS]
    for phase, name in _PHASES.items():
        asked = scale.requests(counted, phase)
        yield fit(f"requests: {name}", "a batch", asked)
    yield fit("decision", "B", medians(settle, "decision size"))
    yield fit("coordinators' log", "B", medians(settle, "coordinator's log"))
    for what, name in _STEPS.items():
        yield fit(name, "ms", {n: 1000 * value for n, value in medians(settle, what).items()})


def _sum(fits: Sequence[Fit], tasks: int) -> float:
    return sum(each.line.at(tasks) for each in fits)


def _by_api(found: Result, *, inline: bool = False) -> Iterator[str]:
    counted = found.having("requests", inline=inline)
    series = [each for each in counted if each.labels["api"] != scale.HEARTBEAT]
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
    asked = [scale.requests(found, phase, inline=inline) for phase in order]
    rows.append(["all", *(number(sum(each.get(n, 0) for each in asked)) for n in tasks)])
    yield from table(["tasks", *map(str, tasks)], rows)


def _milliseconds(found: Result, what: str, **labels: int) -> str:
    series = [s for s in found.having(what, **labels) if len(s.labels) == len(labels)]
    if not series:
        return "none"
    return spread_text(spread(1000 * value for value in series[0].samples))


def _middle(found: Result, what: str, **labels: int) -> str:
    return number(found.one(what, **labels).spread.median)


SETTLING = Publication("settling", RESULTS_PAGE, (SETTLE,), settling, {"settling.svg": plot})
FORMULAS = Publication("formulas", RESULTS_PAGE, (SETTLE, REQUESTS), formulas)
INLINE = Publication("inline", RESULTS_PAGE, (REQUESTS,), inline)
FOLLOWS = Publication("what follows", PERFORMANCE_PAGE, (SETTLE, REQUESTS), follows)
