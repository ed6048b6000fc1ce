"""Reads the queries of a Python file; no code of the file is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from eos_sink_lab.migrate.python_names import FUNCTIONS, Names, UnreadError
from eos_sink_lab.migrate.python_values import Values
from eos_sink_lab.migrate.queries import (
    EOS,
    KAFKA,
    Given,
    Place,
    Query,
    Source,
    Way,
    sort_settings,
)

_WAYS = {"writeStream": Way.STREAM, "write": Way.BATCH, "readStream": None, "read": None}
_CALLS = {"format", "outputMode", "mode", "queryName", "trigger"}
# The positional parameters of pyspark's functions.
_PARAMETERS = {
    "option": ("key", "value"),
    "start": ("path", "format", "outputMode", "partitionBy", "queryName"),
    "save": ("path", "format", "mode", "partitionBy"),
    "create_sink": ("name", "format", "options"),
}


def read_python(text: str, file: str) -> Source:
    """Read the queries that write to Kafka, or may, and the settings of the session.

    Raises:
        SyntaxError: the text is not Python.
    """
    reader = _Reader(text, file)
    queries = sorted(reader.read_queries(), key=lambda query: query.place.line)
    settings = sort_settings(file, reader.read_session())
    written = [query for query in queries if _may_write_to_kafka(query)]
    return Source(file, (*written, *settings.queries), settings.session)


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        module = ast.parse(text, filename=file)
        self._nodes = list(ast.walk(module))
        self._calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        self._calls.sort(key=lambda call: _end_of(call.func))
        self._names = Names(module)
        self._values = Values(self._names)
        self._handlers = {
            getattr(part, "id", None) or getattr(part, "attr", part)
            for call in self._calls
            if _name_of(call) == "foreachBatch" and call.args
            for part in ast.walk(call.args[0])
        }

    def read_queries(self) -> Iterator[Query]:
        followed: set[ast.Call] = set()
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and node.attr in _WAYS and not self._called(node):
                calls = list(self._calls_on(node, set()))
                followed.update(calls)
                if way := _WAYS[node.attr]:
                    yield self._query(way, node, calls)
        for call in self._calls:
            if _name_of(call) == "create_sink":
                yield self._query(Way.PIPELINE, call.func, [call])
            elif _name_of(call) in ("option", "options") and call not in followed:
                root: ast.expr = call
                while isinstance(root, ast.Attribute | ast.Call):
                    root = root.value if isinstance(root, ast.Attribute) else root.func
                if calls := list(self._calls_on(root, set())):
                    followed.update(calls)
                    yield self._query(Way.OPTIONS, calls[0].func, calls)

    def read_session(self) -> Iterator[Given]:
        """Read calls of `config` and `set` with a name that starts with `spark.`."""
        for call in self._calls:
            if _name_of(call) in ("config", "set") and len(call.args) == 2:
                name = self._given(None, call.args[0], call.args[0].lineno)
                if name.value is not None and name.value.startswith("spark."):
                    yield self._given(name.value, call.args[1], name.place.line)

    def _called(self, node: ast.AST) -> bool:
        parent = self._names.parent(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _calls_on(self, node: ast.expr, seen: set[ast.Name]) -> Iterator[ast.Call]:
        """The method calls that follow an expression, also through the variables that hold it."""
        while isinstance(parent := self._names.parent(node), ast.Attribute) or self._called(node):
            assert isinstance(parent, ast.Attribute | ast.Call)
            node = parent
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node
        match parent:
            case (
                ast.Assign(targets=[ast.Name() as target])
                | ast.AnnAssign(target=ast.Name() as target)
                | ast.NamedExpr(target=target)
            ):
                for use in self._names.uses(target):
                    if use not in seen:
                        seen.add(use)
                        yield from self._calls_on(use, seen)

    def _query(self, way: Way, start: ast.expr, calls: Iterable[ast.Call]) -> Query:
        options: list[Given] = []
        others: list[Given] = []
        for call in calls:
            explicit = _name_of(call) in ("option", "options")
            for given in self._givens(call):
                is_call = not explicit and (given.name or "").partition(".")[0] in _CALLS
                (others if is_call else options).append(given)
        above = (each for each in self._names.ancestors(start) if isinstance(each, FUNCTIONS))
        named = ((each, getattr(each, "name", "lambda")) for each in above)
        inside = next((name for each, name in named if {each, name} & self._handlers), "")
        place = Place(self._file, _end_of(start)[0])
        return Query(way, place, tuple(options), tuple(others), inside)

    def _givens(self, call: ast.Call) -> Iterator[Given]:
        line = _end_of(call.func)[0]
        match _name_of(call):
            case "option":
                yield self._option(call, line)
            case "options":
                for argument in call.args:
                    place = Place(self._file, argument.lineno)
                    yield Given(None, None, place, "options are given by keywords only")
                yield from self._keywords(call.keywords)
            case "trigger":
                for given in self._keywords(_without_defaults(call)):
                    yield replace(given, name=f"trigger.{given.name}" if given.name else "trigger")
            case "start" | "save":
                yield from self._keywords(_without_defaults(call))
            case "create_sink":
                names = {"format": "format", "options": None}
                for each in _arguments(call):
                    if each.arg in names:
                        yield from self._keywords([ast.keyword(names[each.arg], each.value)])
            case "format" | "outputMode" | "mode" | "queryName" as name:
                for keyword in _arguments(call)[:1]:
                    yield self._given(name, keyword.value, line)

    def _option(self, call: ast.Call, line: int) -> Given:
        given = {keyword.arg: keyword.value for keyword in _arguments(call)}
        if not {"key", "value"} <= given.keys():
            return Given(None, None, Place(self._file, line), "the arguments are not written out")
        name = self._given(None, given["key"], line)
        if name.value is None:
            return name
        return self._given(name.value, given["value"], line)

    def _keywords(self, keywords: list[ast.keyword]) -> Iterator[Given]:
        for keyword in keywords:
            for name, value, line in self._values.of_pair(keyword.arg, keyword.value):
                if isinstance(name, UnreadError):
                    yield Given(None, None, Place(self._file, line), str(name))
                else:
                    yield self._given(name, value, line)

    def _given(self, name: str | None, value: ast.expr, line: int) -> Given:
        place = Place(self._file, line)
        try:
            return Given(name, self._values.text(value), place)
        except UnreadError as error:
            return Given(name, None, place, str(error))


def _end_of(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _name_of(call: ast.Call) -> str | None:
    """The name of the function or method that is called."""
    return getattr(call.func, "id", None) or getattr(call.func, "attr", None)


def _arguments(call: ast.Call) -> list[ast.keyword]:
    """All arguments by name."""
    named = zip(_PARAMETERS.get(_name_of(call) or "", ("value",)), call.args, strict=False)
    return [*(ast.keyword(name, value) for name, value in named), *call.keywords]


def _without_defaults(call: ast.Call) -> list[ast.keyword]:
    """The arguments that matter to the sink."""
    return [
        keyword
        for keyword in _arguments(call)
        if keyword.arg not in ("path", "partitionBy")
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
    ]


def _may_write_to_kafka(query: Query) -> bool:
    written = query.call("format")
    # Without a visible writer, `format` may be the method of any text.
    if written is not None and written.value is not None and query.way is not Way.OPTIONS:
        return written.value.lower() in (KAFKA, EOS)
    return any(given.key.startswith("kafka.") for given in query.options)
