"""Finds code by its function and a pattern, and puts other code in its place.

A pattern is Python: an expression, a statement, an argument (`settled=seen`), or the first line of
a compound statement (`if places:`), which means all of it. `...` matches anything:
`abort_all(...)`. A pattern that does not match, or matches more than once, is an error: the code
has changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCKS = {"body", "orelse", "handlers", "finalbody"}


class StaleRemovalError(Exception):
    """The code is no longer what the table says that it is."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}\nBring proof/guards to what the code is now.")


@dataclass(frozen=True)
class Place:
    """A node of the code, and the field of its parent that has it."""

    node: ast.AST
    parent: ast.AST
    field: str

    def put(self, *new: ast.AST) -> None:
        """Put these nodes in its place. A block that gets empty has a `pass`."""
        value = getattr(self.parent, self.field)
        if not isinstance(value, list):
            setattr(self.parent, self.field, new[0])
            return
        at = next(n for n, each in enumerate(value) if each is self.node)
        value[at : at + 1] = new
        if not value and self.field in _BLOCKS:
            value.append(ast.Pass())


@dataclass(frozen=True)
class Source:
    """A file of the tree, parsed."""

    file: str
    tree: ast.Module

    def find(self, function: str, pattern: str, nth: int = 1, of: int = 1) -> Place:
        """Find what a pattern describes in a function, whose name is after that of its class if the
        file has two of the same name; "": in the file. Of those that are there `of` times, the
        `nth`."""
        scope: list[ast.AST] = [
            node
            for name, node in named(self.tree)
            if not function or f".{name}".endswith(f".{function}")
        ]
        if not function:
            scope = [self.tree]
        if len(scope) != 1:
            raise StaleRemovalError(
                f"{self.file} has {len(scope)} functions {function} instead of one"
            )
        patterns = _parse(pattern)
        found = [p for p in _places(scope[0]) if any(_is_like(p.node, each) for each in patterns)]
        if len(found) != of:
            raise StaleRemovalError(
                f"{self.file}, {function or 'the whole file'}: found {len(found)} times instead of "
                f"{of}: {pattern}"
            )
        return found[nth - 1]


def named(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The functions and classes of a node, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from named(child, f"{prefix}{child.name}.")


def _places(node: ast.AST) -> Iterator[Place]:
    """All inside of a node. An expression that is a statement is there as the latter only."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield Place(child, node, field)
                yield from _places(child.value if isinstance(child, ast.Expr) else child)


def _parse(pattern: str) -> list[ast.AST]:
    """What a pattern may stand for."""
    if pattern.endswith(":"):
        end = "\nfinally: ..." if pattern == "try:" else ""
        return list(ast.parse(f"{pattern} ...{end}").body)
    [statement] = ast.parse(pattern).body
    assert not hasattr(statement, "body"), f"the first line is enough: {pattern}"
    if isinstance(statement, ast.Expr):
        return [statement, statement.value]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return [statement, ast.keyword(arg=statement.targets[0].id, value=statement.value)]
    return [statement]


def _is_like(node: object, pattern: object) -> bool:
    if _is_anything(pattern):
        return True
    if isinstance(pattern, list) and isinstance(node, list):
        if pattern and _is_anything(pattern[-1]):
            pattern, node = pattern[:-1], node[: len(pattern) - 1]
        return len(node) == len(pattern) and all(map(_is_like, node, pattern))
    if isinstance(pattern, ast.AST):
        ignored = _BLOCKS if isinstance(pattern, ast.stmt) else set()
        if isinstance(pattern, ast.Call) and pattern.args and _is_anything(pattern.args[-1]):
            ignored = {"keywords"}
        return type(node) is type(pattern) and all(
            _is_like(getattr(node, name), value)
            for name, value in ast.iter_fields(pattern)
            if name not in ignored
        )
    return node == pattern


def _is_anything(pattern: object) -> bool:
    return isinstance(pattern, ast.Constant) and pattern.value is ...
