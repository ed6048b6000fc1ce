"""Evaluates expressions of a Python file without running it.

A name counts if it is bound once in its scope, to something that is itself plain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from eos_sink_lab.migrate.python_names import Names, UnreadError

Plain: TypeAlias = "str | int | float | bool"


class Entry(NamedTuple):
    """One entry of a dictionary; if its name is an error, any number of entries."""

    name: str | UnreadError
    value: ast.expr
    line: int


class Values:
    """Evaluates expressions of one module."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._active: set[ast.expr] = set()

    def text(self, node: ast.expr) -> str:
        """The text that `DataStreamWriter.option` makes of a value.

        Raises:
            UnreadError: the value is known only when the program runs.
        """
        value = self._plain(node)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def entries(self, node: ast.expr) -> list[Entry]:
        """The entries of a dictionary, in order."""
        try:
            found = self._evaluate(node)
            return found if isinstance(found, list) else [Entry(_unknown(node), node, node.lineno)]
        except UnreadError as error:
            return [Entry(error, node, node.lineno)]

    def _plain(self, node: ast.expr) -> Plain:
        found = self._evaluate(node)
        if isinstance(found, list):
            raise _unknown(node)
        return found

    def _evaluate(self, node: ast.expr) -> Plain | list[Entry]:
        if node in self._active:
            raise UnreadError("it is defined by itself")
        self._active.add(node)
        try:
            return self._as_plain(node)
        finally:
            self._active.remove(node)

    def _as_plain(self, node: ast.expr) -> Plain | list[Entry]:  # noqa: PLR0911
        match node:
            case ast.Constant(value=None):
                raise UnreadError("None is no value of an option")
            case ast.Constant(value=str() | int() | float() as plain):
                return plain
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.JoinedStr(values=parts):
                return "".join(str(self._plain(part)) for part in parts)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._plain(value)
            case ast.Call(func=ast.Name(id="str"), args=[value], keywords=[]):
                return str(self._plain(value))
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                both = [self._plain(left), self._plain(right)]
                if all(isinstance(part, str) for part in both):
                    return "".join(map(str, both))
            case ast.Subscript(value=ast.Name() as name, slice=key):
                return self._item(name, self._plain(key))
            case ast.Name():
                found = self._evaluate(self._names.expression(node))
                return [*found, *self._changes(node)] if isinstance(found, list) else found
        return self._as_entries(node)

    def _as_entries(self, node: ast.expr) -> list[Entry]:
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return [entry for key, value in pairs for entry in self.of_pair(key, value)]
            case ast.Call(func=ast.Name(id="dict"), args=[] | [_]):
                given = [ast.keyword(None, argument) for argument in node.args] + node.keywords
                return [entry for each in given for entry in self.of_pair(each.arg, each.value)]
            case ast.Call(func=ast.Attribute(attr="copy", value=inner), args=[]):
                return self.entries(inner)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return [*self.entries(left), *self.entries(right)]
        raise _unknown(node)

    def of_pair(self, key: ast.expr | str | None, value: ast.expr) -> list[Entry]:
        """The entries of `key: value` or `key=value`; without a key, of `**value`."""
        if key is None:
            return self.entries(value)
        if isinstance(key, str):
            return [Entry(key, value, value.lineno)]
        try:
            return [Entry(str(self._plain(key)), value, key.lineno)]
        except UnreadError as error:
            return [Entry(error, value, key.lineno)]

    def _item(self, name: ast.Name, key: Plain) -> Plain:
        entries = self.entries(name)
        found = [entry.value for entry in entries if entry.name == key]
        if any(isinstance(entry.name, UnreadError) for entry in entries) or len(found) != 1:
            raise UnreadError(f"{name.id}[...] is known only when the program runs")
        return self._plain(found[0])

    def _changes(self, name: ast.Name) -> Iterator[Entry]:
        """The entries that a dictionary gets after it was made, or may get."""
        for use in self._names.uses(name):
            parent = self._names.parent(use)
            match parent, self._names.parent(parent) if parent else None:
                case (
                    ast.Subscript(value=changed, ctx=ast.Store(), slice=key),
                    ast.Assign(value=value),
                ) if changed is use:
                    yield from self.of_pair(key, value)
                case (
                    (ast.keyword(arg=None) | ast.Dict() | ast.BinOp() | ast.Compare(), _)
                    | (ast.FormattedValue() | ast.Subscript(ctx=ast.Load()), _)
                    | (ast.Attribute(attr="copy" | "get" | "items" | "keys" | "values"), ast.Call())
                    | (ast.Call(func=ast.Name(id="dict" | "len" | "list" | "print")), _)
                    | (ast.Call(func=ast.Name(id="repr" | "sorted" | "str")), _)
                ):
                    pass
                case _:
                    error = UnreadError(f"{name.id} may be changed in line {use.lineno}")
                    yield Entry(error, use, use.lineno)


def _unknown(node: ast.expr) -> UnreadError:
    return UnreadError(f"{_outline(node)} is known only when the program runs")


def _outline(node: ast.expr) -> str:
    """An expression without its literals, which may be secrets."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            return f"{_outline(value)}.{attribute}"
        case ast.Call(func=called):
            return f"{_outline(called)}(...)"
        case ast.Subscript(value=value):
            return f"{_outline(value)}[...]"
    return "an expression"
