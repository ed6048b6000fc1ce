"""Writes the figures of runs into a section of docs/internals/chaos.md.

python -m proof.chaos.publish faults chaos-report/report.json    # with plots beside the page
python -m proof.chaos.publish checkpoints A/report.json B/report.json
python -m proof.chaos.publish releases A/report.json B/report.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bench.pages.publication import replace_between, table
from proof.chaos.chaos_page import plot_latency, plot_recoveries, plot_throughput
from proof.chaos.kinds import Way
from tools.dark import adapt

Figures = dict[str, Any]

_PAGE = Path(__file__).parents[2] / "docs" / "internals" / "chaos.md"
_WITH_PLOTS = "faults"
SECTIONS = (_WITH_PLOTS, "checkpoints", "releases")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.chaos.publish")
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("reports", nargs="+", type=Path)
    given = parser.parse_args()
    runs = [json.loads(report.read_text()) for report in given.reports]
    with_plots = given.section == _WITH_PLOTS
    every = chain.from_iterable(lines(run, with_plots=with_plots) for run in runs)
    _PAGE.write_text(replace_between(_PAGE.read_text(), *marks(given.section), every))
    for name, draw in PLOTS.items() if with_plots else ():
        if name == "recovery" and not runs[-1]["recovery_s"]["kills"]:
            continue
        (_PAGE.parent / f"chaos-{name}.svg").write_text(adapt(f"{draw(runs[-1])}\n"))
    return 0


def marks(section: str) -> tuple[str, str]:
    """The comments of the page between which the section's figures are."""
    return f"<!-- {section}: python -m proof.chaos.publish -->", f"<!-- end of {section} -->"


PLOTS = {
    "throughput": plot_throughput,
    "latency": plot_latency,
    "recovery": plot_recoveries,
}


def lines(figures: Figures, *, with_plots: bool) -> Iterator[str]:
    """The Markdown of a run."""
    yield _summary(figures)
    yield ""
    yield from _verdict(figures)
    if with_plots:
        yield "![Rows visible per second, with the faults above](chaos-throughput.svg)"
        yield ""
        yield "![Seconds from fed to visible, with the faults above](chaos-latency.svg)"
        yield ""
    yield from _kinds(figures)
    if with_plots:
        yield from _recovery(figures)
    yield from _stops(figures)


def _summary(figures: Figures) -> str:
    machine, versions = figures["machine"], figures["versions"]
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(figures["began"]))
    points = len(figures["by_point"])
    through = " through `foreachBatch`" if figures.get("way") == Way.FUNCTION.value else ""
    return (
        f"{began}, {figures['minutes']:.0f} minutes, seed {figures['seed']}: "
        f"**{figures['faults']} faults** of {len(figures['by_kind'])} kinds, at {points} points of "
        f"the protocol, {figures['drivers']} drivers. Kafka {versions['kafka']}, Spark "
        f"{versions['pyspark']}{through}, {machine['cores']} cores ({machine['processor']}) and "
        f"{machine['memory_gb']} GB for everything, other work on the machine included (load "
        f"{machine['load'][0]:.0f} at the end)."
        + (f" {figures['standbys']} drivers stood by." if figures.get("standbys") else "")
    )


def _verdict(figures: Figures) -> Iterator[str]:
    verdict = figures["verdict"]
    held_up = len(verdict["held_up"]) + len(verdict["readers_waiting"])
    rows = [
        ("Rows fed", verdict["fed"]),
        ("Rows lost", verdict["lost"]),
        ("Rows duplicated", verdict["doubled"]),
        ("Foreign records", verdict["foreign"]),
        ("Out of order", verdict["out_of_order"]),
        ("Aborted but visible", verdict["withdrawn"]),
        ("Readers blocked", held_up),
        ("Records aborted, hidden from readers", verdict["aborted"]),
    ]
    if on_disk := verdict["on_disk"]:
        rows += [
            ("Transactions committed, by partition", on_disk["committed"]),
            ("Transactions aborted, by partition", on_disk["aborted"]),
            ("Records that readers and the brokers' files disagree on", on_disk["wrong"]),
        ]
    yield from table(("", ""), [(name, f"{value:,}") for name, value in rows])


def _kinds(figures: Figures) -> Iterator[str]:
    def silence(row: Figures, part: str) -> str:
        return f"{row['silence_s'][part]:.1f}" if row["silence_s"] else ""

    yield from table(
        ("Fault", "injected", "survived", "silence, median s", "max s"),
        [
            (
                row["kind"],
                str(row["struck"]),
                str(row["survived"]),
                silence(row, "median"),
                silence(row, "max"),
            )
            for row in figures["by_kind"]
        ],
    )


def _recovery(figures: Figures) -> Iterator[str]:
    recovery = figures["recovery_s"]
    if not recovery["kills"]:
        return
    names = {
        "total": "from SIGKILL to the first newly visible row",
        "spark": "of it Spark",
        "ours": "of it the sink",
        "ours_plan": "its plan, with the recovery",
        "ours_tasks": "its tasks, rows included",
        "ours_commit": "vote, decision, settling",
    }
    yield from table(
        (f"{recovery['kills']} kills of a driver, seconds", "median", "p95", "max"),
        [
            (label, *(f"{recovery[name][part]:.2f}" for part in ("median", "p95", "max")))
            for name, label in names.items()
        ],
    )
    yield "![Share of kills by seconds to the first newly visible row](chaos-recovery.svg)"
    yield ""


def _stops(figures: Figures) -> Iterator[str]:
    stops = ", ".join(f"{why} {times}" for why, times in sorted(figures["stops"].items()))
    yield (
        f"Drivers that stopped by themselves, each recovered by a restart: {stops or 'none'}. "
        f"{_replaced(figures)}"
        f"Faults whose point was not reached in time: {figures['not_reached']}."
    )
    yield ""


def _replaced(figures: Figures) -> str:
    times = sum(figures["replaced"].values())
    return f"Of these, {times} with a new checkpoint, as the error says. " if times else ""


if __name__ == "__main__":
    sys.exit(main())
