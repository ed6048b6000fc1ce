"""What one guard's removal has shown, in a tree without it, and in one that lacks its cover too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.guards.guard import Guard, Proof
from tools.guards.table import named
from tools.guards.trial import Outcome, Trial, Verdict


@dataclass(frozen=True)
class Shown:
    """How a proof went: `verdict` without the guard, and without the one that covers it, if any.

    Attributes:
        alone: how the test ended when only one of the two was taken away; none if nothing covers
            the guard.
    """

    proof: Proof
    verdict: Verdict
    alone: tuple[Verdict, ...] = ()

    @property
    def wrong(self) -> str:
        """Why it proves nothing; empty if it does."""
        if any(verdict.outcome is not Outcome.PASSED for verdict in self.alone):
            return "fails without one of the two already"
        if self.verdict.outcome is Outcome.PASSED:
            return "went unnoticed"
        if self.verdict.outcome is Outcome.BROKEN:
            return f"the code is broken: {self.verdict.text}"
        return ""


def show(guard: Guard, bootstrap: str) -> list[Shown]:
    """Take the guard away and run its proofs."""
    with Trial([guard], bootstrap) as trial:
        first = trial.run(guard.proofs)
    return [_shown(guard, proof, first, bootstrap) for proof in guard.proofs]


def _shown(guard: Guard, proof: Proof, first: Mapping[Proof, Verdict], bootstrap: str) -> Shown:
    if not proof.without:
        return Shown(proof, first[proof])
    cover = named(proof.without)
    with Trial([cover], bootstrap) as trial:
        other = trial.run([proof])[proof]
    with Trial([guard, cover], bootstrap) as trial:
        both = trial.run([proof])[proof]
    return Shown(proof, both, (first[proof], other))
