"""Removes the guards one at a time and checks that a test fails each time.

    python -m proof.guards [--jobs N] [--page] [PART OF A NAME...]

Without a name all of them, and the results go to docs/internals/guards.md. Exit code 1: one went
unnoticed.
`--page` makes that page from the last results, for instance after `make spec`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from eos_sink_lab.testing import start_kafka
from proof.guards import page
from proof.guards.guard import Guard, Proof
from proof.guards.judge import Shown, show
from proof.guards.table import GUARDS
from proof.guards.trial import Outcome, Trial, Verdict


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proof.guards",
        description="Removes the guards one at a time and checks that a test fails each time. "
        "Without a name all of them, and the results go to docs/internals/guards.md.",
        epilog="Exit code 1: one went unnoticed.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="Only guards whose name contains NAME."
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="Guards at a time. Default: %(default)s."
    )
    parser.add_argument(
        "--page", action="store_true", help="Write the page from the last results; run nothing."
    )
    given = parser.parse_args()
    if given.page:
        results = page.kept()
        missing = [guard.name for guard in GUARDS if guard.name not in results]
        if missing:
            raise SystemExit(
                f"{page.KEPT} has no results of {len(missing)} guards, {missing[0]!r} first: run "
                "these before."
            )
        page.write(results)
        return 0
    guards = [g for g in GUARDS if not given.names or any(n in g.name for n in given.names)]
    with start_kafka() as kafka:
        whole = _on_the_whole_tree(guards, kafka.bootstrap_servers)
        results = _take_away_each(guards, whole, kafka.bootstrap_servers, given.jobs)
    unnoticed = [name for name, shown in results.items() if any(each.wrong for each in shown)]
    page.keep(results)
    if not given.names:
        page.write(results)
    say(f"{len(results) - len(unnoticed)} of {len(results)} guards are missed by a test")
    return 1 if unnoticed else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _on_the_whole_tree(guards: Sequence[Guard], bootstrap: str) -> dict[Proof, Verdict]:
    """The same tests on the unchanged code, in a copy that does not import from elsewhere."""
    proofs = [proof for guard in guards for proof in guard.proofs]
    with Trial(bootstrap=bootstrap) as trial:
        elsewhere = {place for place in trial.imports() if trial.tree not in place.parents}
        if elsewhere:
            raise SystemExit(f"a copy of the tree imports eos_sink from {elsewhere}")
        began = time.monotonic()
        verdicts = trial.run(proofs)
        # A busy machine may let one wait for too long.
        again = [proof for proof, v in verdicts.items() if v.outcome is not Outcome.PASSED]
        verdicts.update(trial.run(again) if again else {})
    say(f"{len(verdicts)} tests on the whole code: {time.monotonic() - began:.0f} s")
    for proof, verdict in verdicts.items():
        if verdict.outcome is not Outcome.PASSED:
            say(f"    {proof.test}: {verdict.outcome.value}: {verdict.text}")
    return verdicts


def _take_away_each(
    guards: Sequence[Guard], whole: Mapping[Proof, Verdict], bootstrap: str, jobs: int
) -> dict[str, list[Shown]]:
    results: dict[str, list[Shown]] = {}
    take_away = partial(show, whole=whole, bootstrap=bootstrap)
    with ThreadPoolExecutor(jobs) as pool:
        for guard, shown in zip(guards, pool.map(take_away, guards), strict=True):
            results[guard.name] = shown
            say(f"{guard.name}")
            for each in shown:
                text = (each.verdict.text.strip().splitlines() or [""])[0][:120]
                say(f"    {each.wrong or 'noticed'}: {each.proof.test}\n        {text}")
    return results


if __name__ == "__main__":
    sys.exit(main())
