"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chaos import plots

Figures = dict[str, Any]

_STYLE = """
:root { --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb; --good: #047857; --bad: #b91c1c; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 Inter, "Segoe UI", Helvetica, Arial, sans-serif;
       color: var(--ink); background: #f9fafb; }
main { max-width: 1060px; margin: 0 auto; padding: 36px 24px 72px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 40px 0 10px; }
p.sub { color: var(--soft); margin: 0 0 22px; }
.verdict { display: inline-block; padding: 3px 12px; border-radius: 999px; color: #fff;
           font-size: 14px; font-weight: 600; vertical-align: 4px; margin-left: 10px; }
.good { background: var(--good); } .bad { background: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px; }
.tile, .card { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 12px 14px; } .card { padding: 14px; overflow-x: auto; }
.tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.25;
          font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.tile.alarm b { color: var(--bad); } .tile.zero b { color: var(--good); }
table { border-collapse: collapse; width: 100%; font-size: 14px;
        font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; } tr:last-child td { border-bottom: 0; }
td.alarm { color: var(--bad); font-weight: 600; } code { font-size: 13px; }
svg { width: 100%; height: auto; display: block; } .note { color: var(--soft); font-size: 13px; }
details summary { cursor: pointer; color: var(--soft); }
"""


def page(figures: Figures) -> str:
    """The whole page."""
    parts = [
        _head(figures),
        _tiles(figures),
        _section("Throughput", plots.throughput(figures), "Dashed: the rate of the feeder."),
        _section("From fed to visible", plots.latency(figures), ""),
        _section("Faults by kind", _by_kind(figures), _KIND_NOTE),
        _recovery(figures),
        _section("Faults by point of the protocol", _by_point(figures), ""),
        _section("Drivers that stopped by themselves", _stops(figures), _STOPS_NOTE),
        _section("Every step", f"<details><summary>show</summary>{_steps(figures)}</details>", ""),
        _machine(figures),
    ]
    title = f"chaos, seed {figures['seed']}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


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
        + "".join(f'<p class="note alarm">{_text(flaw)}</p>' for flaw in _flaws(figures))
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
        _tile(f"{verdict['fed']:,}", "rows fed"),
        *(_zero(verdict.get(name), label) for name, label in zeros.items()),
        _zero(len(verdict["held_up"]) + len(verdict.get("readers_waiting", {})), "readers held up"),
        _tile(f"{figures['faults']:,}", "faults struck"),
        _tile(f"{figures['drivers']:,}", "drivers started"),
        _tile(f"{verdict.get('aborted', 0):,}", "records aborted, hidden"),
    ]
    if on_disk := verdict.get("on_disk"):
        tiles.append(_tile(f"{on_disk['committed']:,}", "transactions committed"))
        tiles.append(_tile(f"{on_disk['aborted']:,}", "transactions aborted"))
        tiles.append(_zero(on_disk["wrong"], "differ from the brokers' files"))
    if recovery["kills"]:
        tiles.append(_tile(f"{recovery['ours']['median']:.2f} s", "recovery, our part, median"))
        tiles.append(_tile(f"{recovery['total']['median']:.1f} s", "recovery, all, median"))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _tile(value: str, label: str, mark: str = "") -> str:
    return f'<div class="tile {mark}"><b>{value}</b><span>{label}</span></div>'


def _zero(value: int | None, label: str) -> str:
    if value is None:
        return _tile("?", label, "alarm")
    return _tile(f"{value:,}", label, "alarm" if value else "zero")


def _section(title: str, content: str, note: str) -> str:
    told = f'<p class="note">{note}</p>' if note else ""
    return f'<h2>{title}</h2><div class="card">{content}</div>{told}'


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
    table = _table(head, rows, numbers=3)
    return (
        _section("Recovery of a killed driver", plots.recoveries(figures), "")
        + f'<div class="card" style="margin-top:12px">{table}</div>'
    )


def _by_kind(figures: Figures) -> str:
    def silence(row: Figures, part: str) -> str:
        return f"{row['silence_s'][part]:.1f}" if row["silence_s"] else ""

    rows = [
        [
            _text(row["kind"]),
            str(row["struck"]),
            str(row["survived"]),
            *(silence(row, part) for part in ("median", "max")),
        ]
        for row in figures["by_kind"]
    ]
    head = ["kind", "struck", "survived", "silence, median s", "max s"]
    return _table(head, rows, numbers=4)


def _by_point(figures: Figures) -> str:
    rows = [
        [
            f"<code>{row['point']}</code>",
            _text(", ".join(f"{kind} {times}x" for kind, times in row["kinds"].items())),
            str(row["struck"]),
            str(row["survived"]),
        ]
        for row in figures["by_point"]
    ]
    return _table(["point", "what", "struck", "survived"], rows, numbers=2)


def _stops(figures: Figures) -> str:
    rows = [[_text(why), str(times)] for why, times in sorted(figures["stops"].items())]
    return _table(["error", "times"], rows, numbers=1) if rows else "none"


def _steps(figures: Figures) -> str:
    rows = [
        [
            str(each["number"]),
            f"{each['at_s']:.0f}",
            each["master"],
            _text(" + ".join(_told(fault) for fault in each["faults"])),
            "" if each["silence_s"] is None else f"{each['silence_s']:.1f}",
            _text(each["held_up"] or _facts(each["facts"])),
        ]
        for each in figures["outcomes"]
    ]
    head = ["", "at, s", "master", "faults", "silence, s", ""]
    return _table(head, rows, numbers=0)


def _told(fault: Figures) -> str:
    place = f" at {fault['point']}" if fault["point"] else ""
    return f"{fault['kind']}{place}" + ("" if fault["struck"] else " (not reached)")


def _facts(facts: Figures) -> str:
    return "; ".join(f"{name} {value}" for name, value in facts.items())


def _machine(figures: Figures) -> str:
    machine = figures["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    text = (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, shared by "
        f"Kafka, Spark, feeder and reader; load at the end {machine['load'][0]}. "
        f"Python {machine['python']}, {versions}. {machine['system']}."
    )
    return f'<h2>Measured on</h2><p class="note">{_text(text)}</p>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    first = len(head) - numbers

    def row(cells: Sequence[str], tag: Callable[[int], str]) -> str:
        return f"<tr>{''.join(f'<{tag(i)}>{cell}' for i, cell in enumerate(cells))}</tr>"

    top = row(head, lambda i: 'th class="n"' if i >= first else "th")
    body = "".join(row(cells, lambda i: 'td class="n"' if i >= first else "td") for cells in rows)
    return f"<table>{top}{body}</table>"


def _text(text: str) -> str:
    return html.escape(text)
