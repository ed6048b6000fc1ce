"""Finds the expression that a name in a Python file stands for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (ast.Module, ast.ClassDef, *FUNCTIONS, *_COMPREHENSIONS)

_Variable: TypeAlias = "tuple[ast.AST, str]"  # The scope that binds a name, and the name.


class UnreadError(Exception):
    """A value is known only when the program runs; the message says why."""


class Names:
    """The names of one module, with Python's scoping rules."""

    def __init__(self, module: ast.Module) -> None:
        nodes = list(ast.walk(module))
        self._module = module
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self._loads = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        # The names that a scope declares: whether as global, else as nonlocal.
        self._declared = {
            (self._scope(node), name): isinstance(node, ast.Global)
            for node in nodes
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._binding: defaultdict[str, list[ast.AST]] = defaultdict(list)
        self._variables: set[_Variable] = set()
        for node in nodes:
            for name in _names_bound_by(node):
                scope = self._scope(node)
                if isinstance(self.parent(node), ast.NamedExpr):
                    while isinstance(scope, _COMPREHENSIONS):
                        scope = self._scope(scope)
                self._binding[name].append(node)
                if (scope, name) not in self._declared:
                    self._variables.add((scope, name))

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while above := self._parents.get(node):
            yield (node := above)

    def uses(self, name: ast.Name) -> list[ast.Name]:
        """Every place that reads the variable, in order."""
        variable = self._find(name.id, name)
        same = (n for n in self._loads if n.id == name.id and self._find(n.id, n) == variable)
        return sorted(same, key=lambda use: use.lineno) if variable else []

    def expression(self, name: ast.Name) -> ast.expr:
        """The only expression that a name can stand for.

        Raises:
            UnreadError: it may stand for another value when the program runs.
        """
        variable = self._find(name.id, name)
        if variable is None:
            raise UnreadError(f"{name.id} is not set in this file")
        nodes = [n for n in self._binding[name.id] if self._find(name.id, n) == variable]
        first, *more = nodes
        lines = ", ".join(map(str, sorted(map(_line_of, nodes))))
        if more:
            raise UnreadError(f"{name.id} is set more than once: lines {lines}")
        if any(_line_of(star) > _line_of(first) for star in self._binding["*"]):
            raise UnreadError(f"{name.id} may come from an import of *")
        match self.parent(first):
            case ast.Assign(targets=targets, value=value) if first in targets:
                return value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if target is first:
                return value
        raise UnreadError(f"{name.id} is known only when the program runs: line {lines}")

    def _scope(self, node: ast.AST) -> ast.AST:
        above = self.ancestors(node)
        return next((each for each in above if isinstance(each, _SCOPES)), self._module)

    def _find(self, name: str, at: ast.AST) -> _Variable | None:
        """The variable that a name refers to; None if the file does not bind it."""
        scope = nearest = self._scope(at)
        while True:
            if self._declared.get((scope, name)):
                return self._module, name
            # Functions do not see the names of the class that contains them.
            visible = scope is nearest or not isinstance(scope, ast.ClassDef)
            if visible and (scope, name) in self._variables:
                return scope, name
            if scope is self._module:
                return None
            scope = self._scope(scope)


def _names_bound_by(node: ast.AST) -> list[str]:
    match node:
        case (
            ast.Name(id=name, ctx=ast.Store() | ast.Del())
            | ast.arg(arg=name)
            | ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [(alias.asname or alias.name).partition(".")[0] for alias in aliases]
    return []


def _line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
