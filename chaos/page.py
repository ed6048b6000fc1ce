"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import time
from typing import Any

from chaos import plots
from eos_sink.pages.html import document, section, table, text, tile, zero

Figures = dict[str, Any]


def page(figures: Figures) -> str:
    """The whole page."""
    parts = [
        _head(figures),
        _tiles(figures),
        section("Throughput", plots.throughput(figures), "Dashed: the rate of the feeder."),
        section("From fed to visible", plots.latency(figures), ""),
        section("Faults by kind", _by_kind(figures), _KIND_NOTE),
        _recovery(figures),
        section("Faults by point of the protocol", _by_point(figures), ""),
        section("Drivers that stopped by themselves", _stops(figures), _STOPS_NOTE),
        section("Every step", f"<details><summary>show</summary>{_steps(figures)}</details>", ""),
        _machine(figures),
    ]
    return document(f"chaos, seed {figures['seed']}", parts)


_KIND_NOTE = (
    "Silence: the longest time without a newly visible row until the run has recovered, of faults "
    "that struck alone. Survived: every row fed before the fault was over is visible, and no "
    "reader waits at a transaction that was open then."
)
_STOPS_NOTE = "Each of these is an error that a supervisor answers with a restart."


def _head(figures: Figures) -> str:
    good = figures["good"]
    verdict = "exactly once" if good else "FAILED"
    mark = "good" if good else "bad"
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(figures["began"]))
    return (
        f'<h1>Chaos <span class="verdict {mark}">{verdict}</span></h1>'
        f'<p class="sub">{figures["faults"]} faults in {figures["minutes"]} minutes, seed '
        f"{figures['seed']}, {began}. Three brokers and three controllers, replication 3, "
        f"min.insync.replicas 2, Kafka {figures['versions']['kafka']}; "
        f"Spark {figures['versions']['pyspark']}.</p>"
        + "".join(f'<p class="note alarm">{text(flaw)}</p>' for flaw in _flaws(figures))
    )


def _flaws(figures: Figures) -> list[str]:
    return [*figures["verdict"]["flaws"], *figures["verdict"]["held_up"]]


def _tiles(figures: Figures) -> str:
    verdict, recovery = figures["verdict"], figures["recovery_s"]
    zeros = {
        "lost": "rows lost",
        "doubled": "rows doubled",
        "foreign": "foreign records",
        "out_of_order": "out of order",
        "withdrawn": "aborted but visible",
    }
    tiles = [
        tile(f"{verdict['fed']:,}", "rows fed"),
        *(zero(verdict.get(name), label) for name, label in zeros.items()),
        zero(len(verdict["held_up"]) + len(verdict.get("readers_waiting", {})), "readers held up"),
        tile(f"{figures['faults']:,}", "faults struck"),
        tile(f"{figures['drivers']:,}", "drivers started"),
        tile(f"{verdict.get('aborted', 0):,}", "records aborted, hidden"),
    ]
    if on_disk := verdict.get("on_disk"):
        tiles.append(tile(f"{on_disk['committed']:,}", "transactions committed"))
        tiles.append(tile(f"{on_disk['aborted']:,}", "transactions aborted"))
        tiles.append(zero(on_disk["wrong"], "differ from the brokers' files"))
    if recovery["kills"]:
        tiles.append(tile(f"{recovery['ours']['median']:.2f} s", "recovery, our part, median"))
        tiles.append(tile(f"{recovery['total']['median']:.1f} s", "recovery, all, median"))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _recovery(figures: Figures) -> str:
    recovery = figures["recovery_s"]
    if not recovery["kills"]:
        return ""
    names = {
        "total": "from SIGKILL to the first newly visible row",
        "spark": "Spark: JVM, session, Python processes, planning, scheduling",
        "ours": "the sink",
        "ours_plan": "&nbsp;&nbsp;its plan, with the recovery",
        "ours_tasks": "&nbsp;&nbsp;its tasks, rows included",
        "ours_commit": "&nbsp;&nbsp;vote, decision, settling",
    }
    rows = [
        [label, *(f"{recovery[name][part]:.2f}" for part in ("median", "p95", "max"))]
        for name, label in names.items()
    ]
    head = [f"{recovery['kills']} kills of a driver, seconds", "median", "p95", "max"]
    figures_of = table(head, rows, numbers=3)
    return (
        section("Recovery of a killed driver", plots.recoveries(figures), "")
        + f'<div class="card" style="margin-top:12px">{figures_of}</div>'
    )


def _by_kind(figures: Figures) -> str:
    def silence(row: Figures, part: str) -> str:
        return f"{row['silence_s'][part]:.1f}" if row["silence_s"] else ""

    rows = [
        [
            text(row["kind"]),
            str(row["struck"]),
            str(row["survived"]),
            *(silence(row, part) for part in ("median", "max")),
        ]
        for row in figures["by_kind"]
    ]
    head = ["kind", "struck", "survived", "silence, median s", "max s"]
    return table(head, rows, numbers=4)


def _by_point(figures: Figures) -> str:
    rows = [
        [
            f"<code>{row['point']}</code>",
            text(", ".join(f"{kind} {times}x" for kind, times in row["kinds"].items())),
            str(row["struck"]),
            str(row["survived"]),
        ]
        for row in figures["by_point"]
    ]
    return table(["point", "what", "struck", "survived"], rows, numbers=2)


def _stops(figures: Figures) -> str:
    rows = [[text(why), str(times)] for why, times in sorted(figures["stops"].items())]
    return table(["error", "times"], rows, numbers=1) if rows else "none"


def _steps(figures: Figures) -> str:
    rows = [
        [
            str(each["number"]),
            f"{each['at_s']:.0f}",
            each["master"],
            text(" + ".join(_told(fault) for fault in each["faults"])),
            "" if each["silence_s"] is None else f"{each['silence_s']:.1f}",
            text(each["held_up"] or _facts(each["facts"])),
        ]
        for each in figures["outcomes"]
    ]
    head = ["", "at, s", "master", "faults", "silence, s", ""]
    return table(head, rows, numbers=0)


def _told(fault: Figures) -> str:
    place = f" at {fault['point']}" if fault["point"] else ""
    return f"{fault['kind']}{place}" + ("" if fault["struck"] else " (not reached)")


def _facts(facts: Figures) -> str:
    return "; ".join(f"{name} {value}" for name, value in facts.items())


def _machine(figures: Figures) -> str:
    machine = figures["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    told = (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, shared by "
        f"Kafka, Spark, feeder and reader; load at the end {machine['load'][0]}. "
        f"Python {machine['python']}, {versions}. {machine['system']}."
    )
    return f'<h2>Measured on</h2><p class="note">{text(told)}</p>'
