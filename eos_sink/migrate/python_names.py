"""Resolves the names of a Python file to the expressions that they are bound to."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (ast.Module, ast.ClassDef, *FUNCTIONS, *_COMPREHENSIONS)

Variable: TypeAlias = "tuple[ast.AST, str]"
"""The scope that binds a name, and the name."""


class UnreadError(Exception):
    """A value is known only when the program runs; the message says why."""


class Names:
    """The names of one module, in Python's scopes."""

    def __init__(self, module: ast.Module) -> None:
        nodes = list(ast.walk(module))
        self._module = module
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self._loads = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        self._bindings: defaultdict[Variable, list[ast.AST]] = defaultdict(list)
        declared = {
            (self._scope(node), name): isinstance(node, ast.Global)
            for node in nodes
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._globals = {variable for variable, is_global in declared.items() if is_global}
        outer: list[tuple[str, ast.AST]] = []
        for node in nodes:
            for name in _names_bound_by(node):
                scope = self._scope(node)
                if isinstance(self.parent(node), ast.NamedExpr):
                    while isinstance(scope, _COMPREHENSIONS):
                        scope = self._scope(scope)
                if (scope, name) in declared:
                    outer.append((name, node))
                else:
                    self._bindings[scope, name].append(node)
        # Which scope a nonlocal name belongs to depends on all other bindings.
        for name, node in outer:
            self._bindings[self._find(name, node) or (module, name)].append(node)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while above := self._parents.get(node):
            yield (node := above)

    def variable(self, name: ast.Name) -> Variable | None:
        """The variable that a name refers to; None if the file does not bind it."""
        return self._find(name.id, name)

    def uses(self, variable: Variable) -> list[ast.Name]:
        """Every place that reads the variable, in order."""
        same = (n for n in self._loads if n.id == variable[1] and self.variable(n) == variable)
        return sorted(same, key=lambda name: name.lineno)

    def expression(self, name: ast.Name) -> ast.expr:
        """The only expression that a name can stand for.

        Raises:
            UnreadError: it may stand for another value when the program runs.
        """
        variable = self.variable(name)
        if variable is None:
            raise UnreadError(f"{name.id} is not set in this file")
        first, *more = nodes = self._bindings[variable]
        lines = ", ".join(map(str, sorted(map(_line_of, nodes))))
        if more:
            raise UnreadError(f"{name.id} is set more than once: lines {lines}")
        value = self._assigned(first)
        if value is None:
            raise UnreadError(f"{name.id} is known only when the program runs: line {lines}")
        if any(_line_of(star) > _line_of(first) for star in self._bindings[self._module, "*"]):
            raise UnreadError(f"{name.id} may come from an import of *")
        return value

    def _scope(self, node: ast.AST) -> ast.AST:
        above = self.ancestors(node)
        return next((each for each in above if isinstance(each, _SCOPES)), self._module)

    def _find(self, name: str, at: ast.AST) -> Variable | None:
        scope = nearest = self._scope(at)
        while True:
            if (scope, name) in self._globals:
                scope = self._module
            # Functions do not see the names of the class that contains them.
            visible = scope is nearest or not isinstance(scope, ast.ClassDef)
            if visible and self._bindings.get((scope, name)):
                return scope, name
            if scope is self._module:
                return None
            scope = self._scope(scope)

    def _assigned(self, node: ast.AST) -> ast.expr | None:
        match self.parent(node):
            case ast.Assign(targets=targets, value=value) if node in targets:
                return value
            case ast.AnnAssign(target=target, value=value) if target is node:
                return value
        return None


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
