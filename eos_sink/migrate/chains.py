"""The chains of calls of a Python file that write, such as `df.writeStream.format(...).start()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from eos_sink.migrate.names import Names, line_of

_WRITERS = {"writeStream", "write"}
_READERS = {"readStream", "read"}


@dataclass(frozen=True)
class Link:
    """One name of a chain, with its call if it is called; where the name ends."""

    name: str
    line: int
    column: int
    call: ast.Call | None


@dataclass(frozen=True)
class Chain:
    """`root.link.link(...)...` as far as it goes."""

    node: ast.expr
    root: ast.expr
    links: tuple[Link, ...]

    def plain(self, names: set[str]) -> str | None:
        """The first of these names that the chain has without a call."""
        return next((x.name for x in self.links if x.call is None and x.name in names), None)


@dataclass
class Writer:
    """All that is done to one writer.

    Attributes:
        kind: `writeStream` or `write`; None where only a part of the chain is in the file.
        chain: where it begins.
        links: what follows, also through a variable.
    """

    kind: str | None
    chain: Chain
    links: list[Link] = field(default_factory=list)


def writers(module: ast.Module, names: Names) -> list[Writer]:
    """Every writer of the file, in order."""
    found: list[Writer] = []
    kept: dict[tuple[ast.AST, str], list[Writer]] = {}
    loose: list[Chain] = []
    for chain in sorted(_chains(module, names), key=lambda one: line_of(one.node)):
        kind = chain.plain(_WRITERS)
        if kind is None:
            loose.append(chain)
            continue
        begin = next(i for i, link in enumerate(chain.links) if link.name == kind)
        links = chain.links[begin:]
        writer = Writer(kind, chain, list(links))
        found.append(writer)
        variable = _assigned_to(chain, names)
        if variable is not None:
            kept.setdefault(variable, []).append(writer)
    for chain in loose:
        home = names.home(chain.root) if isinstance(chain.root, ast.Name) else None
        if home in kept:
            for writer in kept[home]:
                writer.links.extend(chain.links)
        elif not _reads(chain, names):
            found.append(Writer(None, chain, list(chain.links)))
    return sorted(found, key=lambda writer: writer.links[0].line)


def functions_of_foreach_batch(module: ast.Module) -> tuple[set[str], set[ast.AST]]:
    """The names and the lambdas that are handed to `foreachBatch`."""
    named: set[str] = set()
    lambdas: set[ast.AST] = set()
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "foreachBatch" and node.args:
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.Lambda):
                    lambdas.add(part)
                elif isinstance(part, ast.Name):
                    named.add(part.id)
                elif isinstance(part, ast.Attribute):
                    named.add(part.attr)
    return named, lambdas


def _chains(module: ast.Module, names: Names) -> Iterator[Chain]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call | ast.Attribute) and not _goes_on(node, names):
            links: list[Link] = []
            root: ast.expr = node
            while isinstance(root, ast.Call | ast.Attribute):
                call = root if isinstance(root, ast.Call) else None
                name = root.func if isinstance(root, ast.Call) else root
                if not isinstance(name, ast.Attribute):
                    break
                links.append(Link(name.attr, *end_of(name), call))
                root = name.value
            if links:
                yield Chain(node, root, tuple(reversed(links)))


def end_of(node: ast.expr) -> tuple[int, int]:
    """Line, from 1, and column, in bytes of UTF-8."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _goes_on(node: ast.expr, names: Names) -> bool:
    parent = names.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return isinstance(node, ast.Attribute) or _goes_on(parent, names)
    return isinstance(parent, ast.Attribute)


def _assigned_to(chain: Chain, names: Names) -> tuple[ast.AST, str] | None:
    parent = names.parent(chain.node)
    target: ast.expr | None = None
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        target = parent.target
    return names.home(target) if isinstance(target, ast.Name) else None


def _reads(chain: Chain, names: Names) -> bool:
    """The chain belongs to a reader, by what is seen of it here or where its root is bound."""
    if chain.plain(_READERS):
        return True
    if not isinstance(chain.root, ast.Name):
        return False
    return any(
        isinstance(part, ast.Attribute) and part.attr in _READERS
        for value in names.bindings(chain.root)
        if value is not None
        for part in ast.walk(value)
    )
