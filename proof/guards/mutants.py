"""Mutants of a function: each differs from it in one row, condition, term or argument.

Rows are the `if`s of a function and the items of a table. A function is mutated together with the
private functions and tables of its module that it uses, and with what they use.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

from proof.guards.code import ROOT, StaleRemovalError, named

_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
}
_NEGATED |= {other: one for one, other in _NEGATED.items()}
_AT_BOUND: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.Gt: ast.GtE}
_AT_BOUND |= {other: one for one, other in _AT_BOUND.items()}
_OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Mult: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.RShift: ast.LShift,
}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_Variant = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Mutant:
    """A function or a table with one change.

    Attributes:
        module: that has it.
        name: of the function, after that of its class if it has one; or of the table.
        change: in words.
        code: what defines it again.
    """

    module: str
    name: str
    change: str
    code: CodeType

    def apply(self) -> None:
        """Put it in the place of the function, also where that is imported; or of the table."""
        module = importlib.import_module(self.module)
        changed = dict(vars(module))
        exec(self.code, changed)  # noqa: S102 - it is the project's own
        *owner, name = self.name.split(".")
        old = inspect.getattr_static(getattr(module, *owner) if owner else module, name)
        new = changed[name]
        for inside in ("fget", "__func__", "__wrapped__"):
            old, new = getattr(old, inside, old), getattr(new, inside, new)
        if isinstance(old, FunctionType):
            old.__code__ = new.__code__
        else:
            setattr(module, name, new)


def mutants_of(file: str, name: str) -> list[Mutant]:
    """All mutants of a function, and of the tables and private functions of its module that it
    uses."""
    tree = ast.parse((ROOT / file).read_text())
    known = {name: node for name, node in named(tree) if not isinstance(node, ast.ClassDef)}
    if name not in known:
        raise StaleRemovalError(f"{file} has no function {name}")
    public = {one for one in known if not one.rpartition(".")[2].startswith("_")}
    known |= {table: node for node in tree.body if (table := _table_name(node))}
    module, wanted = file.removesuffix(".py").replace("/", "."), [name]
    for one in wanted:
        used = {_used(node, one.rpartition(".")[0]) for node in ast.walk(known[one])}
        wanted += sorted((used & known.keys()) - {*wanted} - public)
    return [mutant for one in wanted for mutant in _mutate(module, one, known[one])]


def _table_name(node: ast.AST) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() | ast.Dict()):
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Tuple() | ast.Dict()):
            return name
    return ""


def _used(node: ast.AST, owner: str) -> str:
    """The name that is used; of a method after that of its class."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name) if owner:
            return f"{owner}.{name}"
    return ""


def _mutate(module: str, name: str, node: ast.stmt) -> Iterator[Mutant]:
    for each, is_term in _nodes(node):
        for change, fields in [*_of_table(each), *_variants(each, is_term)]:
            before = dict(vars(each))
            vars(each).update(fields)
            whole = ast.fix_missing_locations(ast.Module([node], []))
            yield Mutant(module, name, change, compile(whole, f"<{name}: {change}>", "exec"))
            vars(each).update(before)


def _nodes(node: ast.AST, *, is_term: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All that runs of a node, without the facts of a stop, and whether it is a condition or one of
    its terms."""
    yield node, is_term
    for field, value in ast.iter_fields(node):
        if field in _left_out(node):
            continue
        has_terms = field == "test" or isinstance(node, ast.BoolOp)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child, is_term=has_terms)


def _left_out(node: ast.AST) -> set[str]:
    match node:
        case ast.Call(func=ast.Name(id="stop")):
            return {"keywords"}
        case ast.FunctionDef() | ast.Lambda() | ast.AnnAssign():
            return {"args", "decorator_list", "returns", "annotation"}
    return set()


def _variants(node: ast.AST, is_term: bool) -> Iterator[_Variant]:
    """The other values of a node's fields, one by one, and what each change says. One that any test
    would notice that notices another one is left out."""
    yield from _of_condition(node, is_term)
    match node:
        case ast.comprehension(ifs=ifs):
            yield from _without_each(ifs, lambda rest: {"ifs": rest})
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as args):
            # One that is left is there twice, since it may be no iterable.
            yield from _without_each(args, lambda rest: {"args": [*rest, rest[0]]})
        case ast.Call(func=ast.Name(id="any" | "all" | "reversed" as name)):
            other = {"any": "all", "all": "any", "reversed": "iter"}[name]
            yield f"{other} instead of {_text(node)}", {"func": ast.Name(other, ast.Load())}
        case ast.Call(keywords=keywords) if not _left_out(node):
            yield from _without_each(keywords, lambda rest: {"keywords": rest})
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _OPPOSITE:
            yield f"opposite {_text(node)}", {"op": _OPPOSITE[type(op)]()}
        case ast.Return(value=ast.Constant(value=bool(value))):
            yield f"return {not value}", {"value": ast.Constant(not value)}
        case ast.Tuple(elts=elts, ctx=ast.Load()) if any(isinstance(e, ast.Starred) for e in elts):
            yield from _without_each(elts, lambda rest: {"elts": rest})
        case ast.Match(cases=cases):
            yield from _without_each(cases, lambda rest: {"cases": rest})
    for field in ("body", "orelse"):
        rows = getattr(node, field, None)
        if isinstance(rows, list):
            yield from _of_block(field, rows)


def _of_condition(node: ast.AST, is_term: bool) -> Iterator[_Variant]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            # A conjunction without a term is always true where any test would notice that.
            if not _is_bool(test, ast.Or):
                yield f"never {_text(test)}", {"test": ast.Constant(False)}
            if not _is_bool(test, ast.And):
                yield f"always {_text(test)}", {"test": ast.Constant(True)}
        case ast.BoolOp(op=op, values=values):
            is_and = isinstance(op, ast.And)
            for at, term in enumerate(values):
                rest = [*values[:at], ast.Constant(is_and), *values[at + 1 :]]
                yield f"without {_text(term)} in {_text(node)}", {"values": rest}
            if not is_term:
                rest = [ast.Constant(not is_and), *values[1:]]
                yield f"{not is_and} instead of {_text(node)}", {"values": rest}
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not is_term:
            yield f"not {_text(node)}", {"operand": ast.UnaryOp(ast.Not(), operand)}
        case ast.Compare():
            yield from _of_comparison(node, is_term)


def _is_bool(node: ast.expr, op: type[ast.boolop]) -> bool:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, op)


def _of_comparison(node: ast.Compare, is_term: bool) -> Iterator[_Variant]:
    for at, op in enumerate(node.ops):
        for table in [_AT_BOUND] if is_term else [_AT_BOUND, _NEGATED]:
            if other := table.get(type(op)):
                ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
                changed = ast.Compare(node.left, ops, node.comparators)
                yield f"{_text(changed)} instead of {_text(node)}", {"ops": ops}
    match node:
        case ast.Compare(left=ast.Tuple(elts=mine), comparators=[ast.Tuple(elts=others)]):
            for at, one in enumerate(mine):
                left, right = (
                    ast.Tuple([*elts[:at], *elts[at + 1 :]], ast.Load()) for elts in (mine, others)
                )
                changes = {"left": left, "comparators": [right]}
                yield f"without {_text(one)} in {_text(node)}", changes
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple(elts=elts)]) if (
            not any(isinstance(each, ast.Starred) for each in elts)
        ):
            yield from _without_each(
                elts, lambda rest: {"comparators": [ast.Tuple(rest, ast.Load())]}
            )


def _of_block(field: str, rows: list[ast.stmt]) -> Iterator[_Variant]:
    for at, row in enumerate(rows):
        before, after = rows[:at], rows[at + 1 :]
        if isinstance(row, ast.Expr) and isinstance(row.value, ast.Call):
            yield f"without {_text(row)}", {field: [*before, ast.Pass(), *after]}
        if after and _is_row(row) and _is_row(after[0]):
            change = f"{_text(row)} after {_text(after[0])}"
            yield change, {field: [*before, after[0], row, *after[1:]]}


def _is_row(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(body=[*_, ast.Return() | ast.Raise() | ast.Continue()], orelse=[]):
            return True
    return False


def _of_table(definition: ast.AST) -> Iterator[_Variant]:
    if not _table_name(definition):
        return
    match definition.value:  # type: ignore[attr-defined]
        case ast.Dict(keys=keys, values=values):
            for at, key in enumerate(keys):
                rest = ast.Dict([*keys[:at], *keys[at + 1 :]], [*values[:at], *values[at + 1 :]])
                yield f"without {_text(key)}", {"value": rest}
        case ast.Tuple(elts=rows):
            yield from _without_each(rows, lambda rest: {"value": ast.Tuple(rest, ast.Load())})
            for at, (one, other) in enumerate(pairwise(rows)):
                changed = ast.Tuple([*rows[:at], other, one, *rows[at + 2 :]], ast.Load())
                yield f"{_text(one)} after {_text(other)}", {"value": changed}


def _without_each(
    nodes: Sequence[Any], fields: Callable[[list[Any]], dict[str, Any]]
) -> Iterator[_Variant]:
    for at, one in enumerate(nodes):
        yield f"without {_text(one)}", fields([*nodes[:at], *nodes[at + 1 :]])


def _text(node: ast.AST | None) -> str:
    """Of a compound statement or a case the first line."""
    return "" if node is None else ast.unparse(node).splitlines()[0].removesuffix(":")
