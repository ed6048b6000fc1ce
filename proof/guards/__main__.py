"""Mutates the pure functions, removes the guards one at a time, and checks that a test fails each
time.

    python -m proof.guards [--jobs N] [--page] [PART OF A NAME...]

Exit code 1: one went unnoticed. `--page` writes docs/internals/guards.md and runs nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from eos_sink_lab.testing import start_kafka
from proof.guards import page
from proof.guards.forks import notice
from proof.guards.guard import Guard
from proof.guards.pure import FUNCTIONS, Function
from proof.guards.table import GUARDS
from proof.guards.trial import Outcome, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proof.guards",
        description="Mutates the pure functions, removes the guards one at a time, and checks that "
        "a test fails each time.",
        epilog="Exit code 1: one went unnoticed.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="Only functions and guards with NAME in theirs."
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="Guards at a time. Default: %(default)s."
    )
    parser.add_argument(
        "--page", action="store_true", help="Write docs/internals/guards.md; run nothing."
    )
    given = parser.parse_args()
    if given.page:
        page.write()
        return 0

    def is_chosen(one: Function | Guard) -> bool:
        return not given.names or any(name in one.name for name in given.names)

    unnoticed = sum(map(_mutate, filter(is_chosen, FUNCTIONS)))
    guards = list(filter(is_chosen, GUARDS))
    if guards:
        with start_kafka() as kafka:
            unnoticed += _take_away_each(guards, kafka.bootstrap_servers, given.jobs)
    _say(f"{unnoticed} went unnoticed")
    return 1 if unnoticed else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _mutate(function: Function) -> int:
    mutants, unnoticed = function.mutants(), 0
    for mutant, test in zip(mutants, notice(mutants, function.tests), strict=True):
        if not test:
            unnoticed += 1
            _say(f"    went unnoticed: {mutant.name}: {mutant.change}")
    _say(f"{function.name}: {len(mutants)} mutants, {unnoticed} went unnoticed")
    return unnoticed


def _take_away_each(guards: Sequence[Guard], bootstrap: str, jobs: int) -> int:
    wrong = list(dict.fromkeys(test for guard in guards for test in guard.tests))
    for _ in range(2):  # A busy machine may let one wait for too long.
        verdicts = run(wrong, [], bootstrap) if wrong else {}
        wrong = [test for test, v in verdicts.items() if v.outcome is not Outcome.PASSED]
    if wrong:
        raise SystemExit("\n    ".join(["fail on the whole code:", *wrong]))
    unnoticed = 0
    with ThreadPoolExecutor(jobs) as pool:
        trials = pool.map(lambda guard: run(guard.tests, [guard], bootstrap), guards)
        for guard, verdicts in zip(guards, trials, strict=True):
            _say(guard.name)
            for test, verdict in verdicts.items():
                said = "noticed" if verdict.outcome is Outcome.FAILED else "went unnoticed"
                _say(f"    {said}: {test}\n        {verdict.text.strip()[:120]!r}")
            unnoticed += any(v.outcome is not Outcome.FAILED for v in verdicts.values())
    return unnoticed


if __name__ == "__main__":
    sys.exit(main())
