"""A guard: a rule of the protocol, the code that enforces it, and the tests that need it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from proof.guards.code import Place, Source


@dataclass(frozen=True)
class Removal:
    """A change of the code that removes a rule.

    Attributes:
        file: of the tree.
        find: finds the code, and returns what changes it. All that is removed together is found
            before any of it is changed.
    """

    file: str
    find: Callable[[Source], Callable[[], None]]


Removals: TypeAlias = tuple[Removal, ...]


@dataclass(frozen=True)
class Guard:
    """One rule.

    Attributes:
        name: in a few words.
        rule: what it says, as a sentence.
        removals: what takes it out of the code.
        tests: pytest's ids of those that fail then.
        rows: of `proof/spec/run.sh`, which take the same rule out of the model.
        outside: what the model does not have, where no row takes the rule back.
    """

    name: str
    rule: str
    removals: Removals
    tests: tuple[str, ...]
    rows: tuple[str, ...] = ()
    outside: str = ""


def guard(
    name: str,
    rule: str,
    removals: Removals,
    *tests: str,
    rows: tuple[str, ...] = (),
    outside: str = "",
) -> Guard:
    return Guard(name, rule, removals, tests, rows, outside)


# The kinds of removals: of code in a function of a file that a pattern describes. For patterns see
# `proof.guards.code`.


def drop(file: str, function: str, pattern: str, nth: int = 1, of: int = 1) -> Removals:
    """Take out a statement or an argument. Of those that are there `of` times, the `nth`."""
    return (Removal(file, lambda source: source.find(function, pattern, nth, of).put),)


def swap(file: str, function: str, pattern: str, new: str) -> Removals:
    """Put other code in place of an expression, a statement, the condition of an `if`, or the value
    of an argument."""

    def find(source: Source) -> Callable[[], None]:
        place = source.find(function, pattern)
        if isinstance(place.node, ast.If):
            place = Place(place.node.test, place.node, "test")
        if isinstance(place.node, ast.keyword):
            place = Place(place.node.value, place.node, "value")
        is_statement = isinstance(place.node, ast.stmt)
        nodes = _parse(new)
        return lambda: place.put(*(nodes if is_statement else [nodes[0].value]))  # type: ignore[attr-defined]

    return (Removal(file, find),)


def insert(file: str, function: str, new: str, *, before: str = "", after: str = "") -> Removals:
    """Add statements before or after one."""

    def find(source: Source) -> Callable[[], None]:
        place = source.find(function, before or after)
        nodes = [*_parse(new), place.node] if before else [place.node, *_parse(new)]
        return lambda: place.put(*nodes)

    return (Removal(file, find),)


def move(file: str, function: str, *patterns: str, before: str = "", after: str = "") -> Removals:
    """Move statements to before or after another one."""

    def find(source: Source) -> Callable[[], None]:
        moved = [source.find(function, each) for each in patterns]
        place = source.find(function, before or after)
        nodes = [each.node for each in moved]

        def change() -> None:
            for each in moved:
                each.put()
            place.put(*([*nodes, place.node] if before else [place.node, *nodes]))

        return change

    return (Removal(file, find),)


def _parse(code: str) -> list[ast.stmt]:
    return ast.parse(code).body


def never(file: str, function: str, condition: str) -> Removals:
    """Take a condition for false."""
    return swap(file, function, condition, "False")


def always(file: str, function: str, condition: str) -> Removals:
    """Take a condition for true."""
    return swap(file, function, condition, "True")


def take_away(guards: Iterable[Guard], root: Path) -> None:
    """Take all of these out of the tree at `root`.

    Raises:
        StaleRemovalError: the code is no longer what the table says that it is.
    """
    removals = [removal for guard in guards for removal in guard.removals]
    for file in {removal.file for removal in removals}:
        source = Source(file, ast.parse((root / file).read_text()))
        for change in [each.find(source) for each in removals if each.file == file]:
            change()
        (root / file).write_text(ast.unparse(source.tree))
