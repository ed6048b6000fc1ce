"""The results of the tests without one guard, and without the guard that covers it as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proof.guards.guard import Guard, Proof
from proof.guards.table import named
from proof.guards.trial import Outcome, Trial, Verdict


@dataclass(frozen=True)
class Shown:
    """How a proof went: `verdict` without the guard, and without the one that covers it, if any.

    Attributes:
        whole: how the test ended on the whole code.
        alone: how the test ended when only one of the two was taken away; none if nothing covers
            the guard.
    """

    proof: Proof
    whole: Verdict
    verdict: Verdict
    alone: tuple[Verdict, ...] = ()

    @property
    def wrong(self) -> str:
        """Why it proves nothing; empty if it does."""
        if self.whole.outcome is not Outcome.PASSED:
            return "fails on the whole code too"
        if any(verdict.outcome is not Outcome.PASSED for verdict in self.alone):
            return "fails without one of the two already"
        if self.verdict.outcome is Outcome.PASSED:
            return "went unnoticed"
        if self.verdict.outcome is Outcome.BROKEN:
            return f"the code is broken: {self.verdict.text}"
        return ""


def show(guard: Guard, whole: Mapping[Proof, Verdict], bootstrap: str) -> list[Shown]:
    """Take the guard away and run its proofs, which went on the `whole` code as given."""
    with Trial([guard], bootstrap) as trial:
        first = trial.run(guard.proofs)
    return [_shown(guard, proof, whole[proof], first[proof], bootstrap) for proof in guard.proofs]


def _shown(guard: Guard, proof: Proof, whole: Verdict, first: Verdict, bootstrap: str) -> Shown:
    if not proof.without:
        return Shown(proof, whole, first)
    cover = named(proof.without)
    with Trial([cover], bootstrap) as trial:
        other = trial.run([proof])[proof]
    with Trial([guard, cover], bootstrap) as trial:
        both = trial.run([proof])[proof]
    return Shown(proof, whole, both, (first, other))
