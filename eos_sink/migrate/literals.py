"""Which values of a Python file are plain to see, found without running it.

A name counts if it is bound once in its scope, to something that is itself plain. Everything else
is `Unread`, with the reason: nothing is guessed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from eos_sink.migrate.names import Names, Unread, line_of

Plain: TypeAlias = "str | int | float | bool"
_Seen: TypeAlias = "frozenset[ast.AST]"

# What a dictionary can be handed to, and which of its methods can be called, unchanged.
_READERS = {"dict", "len", "list", "print", "repr", "sorted", "str"}
_READING = {"copy", "get", "items", "keys", "values"}


@dataclass(frozen=True)
class Entry:
    """One entry of a dictionary; `name` None: more entries than can be seen, and why."""

    name: str | None
    value: Plain | Unread
    line: int


class Literals:
    """Looks values up."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def text(self, node: ast.expr) -> str | Unread:
        """A value as Spark's writer turns it into text."""
        return as_text(self._value(node, frozenset()))

    def entries(self, node: ast.expr) -> list[Entry]:
        """The entries of a dictionary, in order."""
        return list(self._entries(node, frozenset()))

    def _value(self, node: ast.expr, seen: _Seen) -> Plain | Unread:
        if node in seen:
            return Unread("it is defined by itself")
        seen |= {node}
        found: Plain | Unread = _later(node)
        match node:
            case ast.Constant(value=str() | bool() | int() | float() as plain):
                found = plain
            case ast.Constant(value=None):
                found = Unread("None is no value of an option")
            case ast.Name():
                bound = self._names.bound(node)
                found = bound if isinstance(bound, Unread) else self._value(bound, seen)
            case ast.JoinedStr(values=parts):
                found = _joined([self._part(part, seen) for part in parts])
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                both = [self._value(left, seen), self._value(right, seen)]
                if all(isinstance(part, str | Unread) for part in both):
                    found = _joined(both)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                found = -number
            case ast.Call(func=ast.Name(id="str"), args=[only], keywords=[]):
                inner = self._value(only, seen)
                found = inner if isinstance(inner, Unread) else str(inner)
            case ast.Subscript(value=ast.Name() as name, slice=key):
                found = self._item(name, self._value(key, seen), seen)
        return found

    def _part(self, part: ast.expr, seen: _Seen) -> Plain | Unread:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion != -1:
                return _later(part.value)
            return self._value(part.value, seen)
        return self._value(part, seen)

    def _item(self, name: ast.Name, key: Plain | Unread, seen: _Seen) -> Plain | Unread:
        entries = list(self._entries(name, seen))
        found = [entry.value for entry in entries if entry.name == key]
        if len(found) != 1 or any(entry.name is None for entry in entries):
            return Unread(f"{name.id}[...] is known only when the program runs")
        return found[0]

    def _entries(self, node: ast.expr, seen: _Seen) -> Iterator[Entry]:
        if node in seen:
            yield Entry(None, Unread("it is defined by itself"), line_of(node))
            return
        seen |= {node}
        match node:
            case ast.Dict():
                yield from self._of_display(node, seen)
            case ast.Call(func=ast.Name(id="dict"), args=[] | [_]):
                yield from self._of_call(node, seen)
            case ast.Call(func=ast.Attribute(attr="copy", value=inner), args=[]):
                yield from self._entries(inner, seen)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                yield from self._entries(left, seen)
                yield from self._entries(right, seen)
            case ast.Name():
                bound = self._names.bound(node)
                if isinstance(bound, Unread):
                    yield Entry(None, bound, node.lineno)
                else:
                    yield from self._entries(bound, seen)
                    yield from self._changes(node, seen)
            case _:
                yield Entry(None, _later(node), node.lineno)

    def _of_display(self, node: ast.Dict, seen: _Seen) -> Iterator[Entry]:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from self._entries(value, seen)
            else:
                yield self._entry(key, self._value(value, seen), seen)

    def _of_call(self, node: ast.Call, seen: _Seen) -> Iterator[Entry]:
        for argument in node.args:
            yield from self._entries(argument, seen)
        for keyword in node.keywords:
            if keyword.arg is None:
                yield from self._entries(keyword.value, seen)
            else:
                value = self._value(keyword.value, seen)
                yield Entry(keyword.arg, value, keyword.value.lineno)

    def _entry(self, key: ast.expr, value: Plain | Unread, seen: _Seen) -> Entry:
        name = self._value(key, seen)
        if isinstance(name, Unread):
            return Entry(None, name, key.lineno)
        return Entry(str(name), value, key.lineno)

    def _changes(self, name: ast.Name, seen: _Seen) -> Iterator[Entry]:
        """What is set in a dictionary after it was made, or may be."""
        for use in self._names.uses(name):
            parent = self._names.parent(use)
            above = self._names.parent(parent) if parent else None
            if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
                if isinstance(above, ast.Assign) and parent in above.targets:
                    yield self._entry(parent.slice, self._value(above.value, seen), seen)
                    continue
            elif _only_reads(use, parent, above):
                continue
            why = Unread(f"{name.id} may be changed in line {line_of(use)}")
            yield Entry(None, why, line_of(use))


def as_text(value: Plain | Unread) -> str | Unread:
    """What `DataStreamWriter.option` makes of a value."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, Unread) else str(value)


def _only_reads(use: ast.Name, parent: ast.AST | None, above: ast.AST | None) -> bool:
    match parent:
        case ast.keyword(arg=None) | ast.Dict() | ast.BinOp() | ast.Compare():
            return True
        case ast.FormattedValue() | ast.Subscript(ctx=ast.Load()):
            return True
        case ast.Attribute(attr=attribute):
            return attribute in _READING and isinstance(above, ast.Call)
        case ast.Call(func=ast.Name(id=called), args=arguments):
            return called in _READERS and use in arguments
    return False


def _joined(parts: list[Plain | Unread]) -> str | Unread:
    unread = [part for part in parts if isinstance(part, Unread)]
    return unread[0] if unread else "".join(str(part) for part in parts)


def _later(node: ast.expr) -> Unread:
    return Unread(f"{_shape(node)} is known only when the program runs")


def _shape(node: ast.expr) -> str:
    """An expression without any literal of it, which may be a secret."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            return f"{_shape(value)}.{attribute}"
        case ast.Call(func=called):
            return f"{_shape(called)}(...)"
        case ast.Subscript(value=value):
            return f"{_shape(value)}[...]"
    return "an expression"
