"""Changes code that is found by its function and a pattern, and leaves all other text as it is.

A pattern is Python: an expression, a statement, an argument (`settled=seen`), an item of a dict, or
the first line of a compound statement (`if places:`), which means all of it. `...` matches
anything: `abort_all(...)`. Line breaks and comments of the code do not matter. A pattern that does
not match, or matches more than once, is an error: the code has changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

_HELP = "Bring proof/guards to what the code is now."
_BLOCKS = {"body", "orelse", "handlers", "finalbody"}


class StaleRemovalError(Exception):
    """The code is no longer what the table says that it is."""


class Edit(NamedTuple):
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Address:
    """Which code of a file is meant.

    Attributes:
        function: its name, after that of its class (`Planner.plan`) if the file has two of the same
            name; empty: the whole file.
        pattern: what the code says.
        nth: the one that is meant, if the function has it `of` times.
    """

    function: str
    pattern: str
    nth: int = 1
    of: int = 1


class Source:
    """A file of the tree, parsed."""

    def __init__(self, file: str, content: bytes) -> None:
        self._file = file
        self._content = content
        self._tree = ast.parse(content)
        self._starts = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
        self._statements = {
            id(each.value) for each in ast.walk(self._tree) if isinstance(each, ast.Expr)
        }

    def drop(self, address: Address) -> Edit:
        """`pass` instead of a statement; nothing instead of an argument or an element."""
        found = self._find(address)
        start, end = self._span(found)
        if self._is_statement(found):
            return Edit(start, end, "pass")
        comma = re.compile(rb"\s*,?[ ]*").match(self._content, end)
        return Edit(start, comma.end() if comma else end, "")

    def swap(self, address: Address, new: str) -> Edit:
        """Other code instead; of `if places:` only the condition."""
        found = self._find(address)
        if isinstance(found, ast.If):
            found = found.test
        if isinstance(found, ast.expr) and _is_expression(new):
            new = f"({new})"
        start, end = self._span(found)
        return Edit(start, end, new.replace("\n", self._line_break(start)))

    def insert(self, new: str, address: Address, *, after: bool) -> Edit:
        """Statements before or after another one."""
        start, end = self._span(self._find(address))
        line_break = self._line_break(start)
        new = new.replace("\n", line_break)
        return Edit(end, end, line_break + new) if after else Edit(start, start, new + line_break)

    def move(self, moved: list[Address], address: Address, *, after: bool) -> list[Edit]:
        """Statements to before or after another one, in this order."""
        texts = []
        for each in moved:
            start, end = self._span(self._find(each))
            texts.append(self._content[start:end].decode().replace(self._line_break(start), "\n"))
        return [*map(self.drop, moved), self.insert("\n".join(texts), address, after=after)]

    def change(self, edits: list[Edit]) -> bytes:
        """The file with these changes."""
        content, kept = self._content, len(self._content)
        for edit in sorted(dict.fromkeys(edits), reverse=True):
            if edit.end > kept:
                line = content.count(b"\n", 0, edit.end) + 1
                raise StaleRemovalError(f"{self._file}, line {line}: two changes at once\n{_HELP}")
            content = content[: edit.start] + edit.new.encode() + content[edit.end :]
            kept = edit.start
        return content

    def _find(self, address: Address) -> ast.AST:
        patterns = _parse(address.pattern)
        found = [
            each
            for each in _walk(self._scope(address.function))
            if any(_is_like(each, pattern) for pattern in patterns)
        ]
        if len(found) != address.of:
            raise StaleRemovalError(
                f"{self._file}, {address.function or 'the whole file'}: found {len(found)} times "
                f"instead of {address.of}: {address.pattern}\n{_HELP}"
            )
        return found[address.nth - 1]

    def _scope(self, function: str) -> ast.AST:
        if not function:
            return self._tree
        found = [each for name, each in _named(self._tree) if f".{name}".endswith(f".{function}")]
        if len(found) != 1:
            raise StaleRemovalError(
                f"{self._file} has {len(found)} functions {function} instead of one\n{_HELP}"
            )
        return found[0]

    def _is_statement(self, node: ast.AST) -> bool:
        return isinstance(node, ast.stmt) or id(node) in self._statements

    def _span(self, node: ast.AST) -> tuple[int, int]:
        first, last = (node.keys[0], node.values[-1]) if isinstance(node, _Item) else (node, node)
        assert isinstance(first, _PLACED)
        assert isinstance(last, _PLACED)
        return (
            self._starts[first.lineno - 1] + first.col_offset,
            self._starts[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0),
        )

    def _line_break(self, start: int) -> str:
        """A new line, and the indentation of the statement that begins at `start`."""
        begin = self._content.rfind(b"\n", 0, start) + 1
        line = self._content[begin:start]
        return "\n" + " " * (len(line) - len(line.lstrip(b" ")))


class _Item(ast.Dict):
    """One item of a dict."""


_PLACED = (ast.expr, ast.stmt, ast.keyword)


def _named(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions and classes of a node, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from _named(child, f"{prefix}{child.name}.")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all inside it, except of an f-string: Python 3.11 has no positions there."""
    yield node
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield _Item(keys=[key], values=[value])
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _parse(pattern: str) -> list[ast.AST]:
    """What a pattern may stand for."""
    if pattern.endswith(":"):
        end = "\nfinally: ..." if pattern == "try:" else ""
        return list(ast.parse(f"{pattern} ...{end}").body)
    try:
        [statement] = ast.parse(pattern).body
    except SyntaxError:
        item = ast.parse("{" + pattern + "}", mode="eval").body
        assert isinstance(item, ast.Dict), pattern
        return [_Item(keys=item.keys, values=item.values)]
    assert not hasattr(statement, "body"), f"the first line is enough: {pattern}"
    if isinstance(statement, ast.Expr):
        return [statement.value]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return [statement, ast.keyword(arg=statement.targets[0].id, value=statement.value)]
    return [statement]


def _is_like(node: object, pattern: object) -> bool:
    if _is_anything(pattern):
        return True
    if isinstance(pattern, list) and isinstance(node, list):
        if pattern and _is_anything(pattern[-1]):
            pattern = pattern[:-1]
            node = node[: len(pattern)]
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


def _is_expression(code: str) -> bool:
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True
