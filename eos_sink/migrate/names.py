"""Which expression a name of a Python file stands for."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

_SCOPES = (
    ast.Module,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
# These bind what their attribute `name` says.
_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)


@dataclass(frozen=True)
class Unread:
    """A value that cannot be read; why not."""

    why: str


@dataclass(frozen=True)
class _Binding:
    node: ast.AST
    value: ast.expr | None
    """What the name is bound to, where that is one expression."""


class Names:
    """The names of one module, by the scopes that Python gives them."""

    def __init__(self, module: ast.Module) -> None:
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(module):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        self._bindings: defaultdict[tuple[ast.AST, str], list[_Binding]] = defaultdict(list)
        self._loads: defaultdict[tuple[ast.AST, str], list[ast.Name]] = defaultdict(list)
        self._elsewhere: dict[tuple[ast.AST, str], ast.AST] = {}
        self._stars: list[int] = []
        self._module = module
        nodes = list(ast.walk(module))
        for node in nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                self._redirect(node)
        for node in nodes:
            self._collect(node)
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                scope = self._scope_of_name(node.id, node)
                if scope is not None:
                    self._loads[scope, node.id].append(node)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module that the node is in."""
        above = self._parents.get(node)
        while above is not None and not isinstance(above, _SCOPES):
            above = self._parents.get(above)
        return above or self._module

    def bindings(self, name: ast.Name) -> list[ast.expr | None]:
        """Everything that the name is bound to in its scope; None for what is no expression."""
        scope = self._scope_of_name(name.id, name)
        return [] if scope is None else [one.value for one in self._bindings[scope, name.id]]

    def home(self, name: ast.Name) -> tuple[ast.AST, str] | None:
        """One key for all the uses of one variable; None where it is bound outside the file."""
        scope = self._scope_of_name(name.id, name)
        return None if scope is None else (scope, name.id)

    def uses(self, name: ast.Name) -> list[ast.Name]:
        """Every place of the file that reads the variable, in order."""
        home = self.home(name)
        return sorted(self._loads[home], key=line_of) if home else []

    def _redirect(self, node: ast.Global | ast.Nonlocal) -> None:
        scope = self.scope(node)
        for name in node.names:
            target: ast.AST = self._module
            if isinstance(node, ast.Nonlocal):
                target = self.scope(scope)
                while not self._binds(target, name) and target is not self._module:
                    target = self.scope(target)
            self._elsewhere[scope, name] = target

    def _binds(self, scope: ast.AST, name: str) -> bool:
        return any(
            (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
            or (isinstance(node, ast.arg) and node.arg == name)
            for node in ast.walk(scope)
            if self.scope(node) is scope
        )

    def _collect(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            self._bind(node, node.id, self._assigned(node))
        elif isinstance(node, ast.arg):
            self._bind(node, node.arg, None)
        elif isinstance(node, _NAMED):
            if node.name:
                self._bind(node, node.name, None)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self._bind(node, node.rest, None)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    self._stars.append(node.lineno)
                else:
                    self._bind(node, (alias.asname or alias.name).partition(".")[0], None)

    def _bind(self, node: ast.AST, name: str, value: ast.expr | None) -> None:
        scope = self.scope(node)
        if isinstance(self._parents.get(node), ast.NamedExpr):
            while isinstance(scope, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                scope = self.scope(scope)
        scope = self._elsewhere.get((scope, name), scope)
        self._bindings[scope, name].append(_Binding(node, value))

    def _assigned(self, node: ast.Name) -> ast.expr | None:
        parent = self._parents[node]
        if isinstance(parent, ast.Assign) and node in parent.targets:
            return parent.value
        if isinstance(parent, ast.AnnAssign) and parent.target is node:
            return parent.value
        return None

    def _scope_of_name(self, name: str, at: ast.AST) -> ast.AST | None:
        nearest = scope = self.scope(at)
        while True:
            place = self._elsewhere.get((scope, name), scope)
            seen = not isinstance(scope, ast.ClassDef) or scope is nearest
            if seen and self._bindings.get((place, name)):
                return place
            if scope is self._module:
                return None
            scope = self.scope(scope)

    def bound(self, node: ast.Name) -> ast.expr | Unread:
        """The one expression that a name stands for, wherever the file is run from."""
        scope = self._scope_of_name(node.id, node)
        if scope is None:
            return Unread(f"{node.id} is not set in this file")
        found = self._bindings[scope, node.id]
        lines = ", ".join(str(line_of(one.node)) for one in found)
        if len(found) > 1:
            return Unread(f"{node.id} is set more than once: lines {lines}")
        if found[0].value is None:
            return Unread(f"{node.id} is known only when the program runs: line {lines}")
        if any(line > line_of(found[0].node) for line in self._stars):
            return Unread(f"{node.id} may come from an import of *")
        return found[0].value


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
