"""A guard: a rule of the protocol, the code that enforces it, and the tests that need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from proof.guards.source import Address, Edit, Source


@dataclass(frozen=True)
class Removal:
    """A change of the code that removes a rule.

    Attributes:
        file: of the tree.
        edits: what changes in it.
    """

    file: str
    edits: Callable[[Source], list[Edit]]


Removals: TypeAlias = tuple[Removal, ...]


@dataclass(frozen=True)
class Proof:
    """A test that fails without the guard.

    Attributes:
        test: pytest's id of it.
        without: the name of another guard that covers this one: the test fails when both are taken
            away, and passes when only one of the two is.
    """

    test: str
    without: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Class name and name of the test in pytest's XML report."""
        file, *inside = self.test.split("[", 1)[0].split("::")
        name = self.test.removeprefix("::".join([file, *inside[:-1]]) + "::")
        return ".".join([file.removesuffix(".py").replace("/", "."), *inside[:-1]]), name


@dataclass(frozen=True)
class Guard:
    """One rule.

    Attributes:
        name: in a few words.
        rule: what it says, as a sentence.
        removals: what takes it out of the code.
        proofs: the tests that fail then.
        rows: of `proof/spec/run.sh`, which take the same rule out of the model.
        outside: what the model does not have, where no row takes the rule back.
    """

    name: str
    rule: str
    removals: Removals
    proofs: tuple[Proof, ...]
    rows: tuple[str, ...] = ()
    outside: str = ""


def guard(
    name: str,
    rule: str,
    removals: Removals,
    *tests: str | Proof,
    rows: tuple[str, ...] = (),
    outside: str = "",
) -> Guard:
    """A guard with tests as its proofs: those that need no `Proof` as they are."""
    proofs = tuple(Proof(each) if isinstance(each, str) else each for each in tests)
    return Guard(name, rule, removals, proofs, rows, outside)


# The kinds of removals: of code in a function of a file that a pattern describes. For patterns see
# `proof.guards.source`.


def drop(file: str, function: str, *patterns: str, nth: int = 1, of: int = 1) -> Removals:
    """Take out statements or arguments. Of those that are there `of` times, the `nth`."""
    dropped = [Address(function, pattern, nth, of) for pattern in patterns]
    return (Removal(file, lambda source: [source.drop(each) for each in dropped]),)


def swap(file: str, function: str, pattern: str, new: str) -> Removals:
    """Put other code in place of an expression, a statement or an argument."""
    return (Removal(file, lambda source: [source.swap(Address(function, pattern), new)]),)


def never(file: str, function: str, condition: str) -> Removals:
    """Take a condition for false."""
    return swap(file, function, condition, "False")


def always(file: str, function: str, condition: str) -> Removals:
    """Take a condition for true."""
    return swap(file, function, condition, "True")


def insert(file: str, function: str, new: str, *, before: str = "", after: str = "") -> Removals:
    """Add statements before or after one."""
    place = Address(function, before or after)
    return (Removal(file, lambda source: [source.insert(new, place, after=bool(after))]),)


def move(file: str, function: str, *patterns: str, before: str = "", after: str = "") -> Removals:
    """Move statements to before or after another one."""
    moved = [Address(function, each) for each in patterns]
    place = Address(function, before or after)
    return (Removal(file, lambda source: source.move(moved, place, after=bool(after))),)


def take_away(guards: Iterable[Guard], root: Path) -> None:
    """Take all of these out of the tree at `root`.

    Raises:
        StaleRemovalError: the code is no longer what the table says that it is.
    """
    removals = [removal for guard in guards for removal in guard.removals]
    for file in {removal.file for removal in removals}:
        source = Source(file, (root / file).read_bytes())
        edits = [edit for each in removals if each.file == file for edit in each.edits(source)]
        (root / file).write_bytes(source.change(edits))
