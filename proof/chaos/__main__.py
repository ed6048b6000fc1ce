"""`make chaos`: see docs/internals/chaos.md."""

from __future__ import annotations

import argparse
import json
import logging
import random
import signal
import sys
import time
from pathlib import Path

from proof.chaos.chaos_page import render_chaos_page
from proof.chaos.figures import Figures, figures
from proof.chaos.kinds import Input, Master, Way
from proof.chaos.result import Settings
from proof.chaos.run import run

SHORT_S = 150.0
_TOLD = ("fed", "lost", "doubled", "foreign", "out_of_order", "withdrawn", "held_up", "flaws")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proof.chaos", description="See docs/internals/chaos.md."
    )
    parser.add_argument("--hours", type=float, help="Hours of faults. Default: a few minutes.")
    parser.add_argument("--seed", type=int, help="Seed of the schedule. Default: random.")
    parser.add_argument(
        "--rate", type=int, default=400, help="Rows per second. Default: %(default)s."
    )
    parser.add_argument("--most", type=int, help="Stop after this many faults.")
    parser.add_argument("--masters", nargs="+", default=[each.value for each in Master])
    parser.add_argument("--input", default="files", choices=[each.value for each in Input])
    parser.add_argument("--way", default="format", choices=[each.value for each in Way])
    parser.add_argument("--standbys", type=int, default=0, help="Drivers that wait with a session.")
    parser.add_argument("--out", type=Path, help="New directory. Default: in chaos-report.")
    given = parser.parse_args()
    if Way(given.way) is Way.FUNCTION and Input(given.input) is Input.TOPIC:
        parser.error("--input topic runs with --way format only")
    # A shell's background job ignores SIGINT, and a CI that runs out of patience sends SIGTERM.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    seed = random.randrange(10_000) if given.seed is None else given.seed
    home = (given.out or Path("chaos-report", f"{time.strftime('%m%d-%H%M%S')}-{seed}")).absolute()
    home.mkdir(parents=True)
    # What librdkafka has to say while brokers are down is not news here.
    logging.getLogger("eos_sink").addHandler(logging.NullHandler())
    settings = Settings(
        home=home,
        seed=seed,
        seconds=SHORT_S if given.hours is None else given.hours * 3600,
        rate=given.rate,
        masters=tuple(Master(each) for each in given.masters),
        most=given.most,
        source=Input(given.input),
        standbys=given.standbys,
        way=Way(given.way),
    )
    result = run(settings)
    write(home, figures(result))
    return 0 if result.good else 1


def write(home: Path, found: Figures) -> None:
    """The report: all figures as JSON, and the page."""
    (home / "report.json").write_text(json.dumps(found, indent=1) + "\n")
    (home / "report.html").write_text(render_chaos_page(found))
    verdict = {name: found["verdict"].get(name) for name in _TOLD}
    sys.stderr.write(
        f"{found['faults']} faults in {found['minutes']} minutes, {verdict}: "
        f"{'exactly once' if found['good'] else 'FAILED'}\n{home / 'report.html'}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
