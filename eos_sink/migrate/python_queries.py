"""Reads the queries of a Python file; no code of the file is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from eos_sink.migrate.option_inputs import sort_settings
from eos_sink.migrate.python_names import Names, UnreadError, Variable
from eos_sink.migrate.python_values import Values, as_text
from eos_sink.migrate.queries import EOS, KAFKA, Edit, Given, Place, Query, Source, Way

_WAYS = {"writeStream": Way.STREAM, "write": Way.BATCH}
_READERS = {"readStream", "read"}
_OPTIONS = {"option", "options"}
_CALLS = {"format", "outputMode", "mode", "queryName"}
# The positional parameters of pyspark's methods.
_PARAMETERS = {
    "option": ("key", "value"),
    "start": ("path", "format", "outputMode", "partitionBy", "queryName"),
    "save": ("path", "format", "mode", "partitionBy"),
    "create_sink": ("name", "format", "options"),
}
# The text between an expression and the end of its `.option(...)`: no bracket and no comment.
_REMOVABLE = re.compile(rb"[\s\\]*\.[^#]*")


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
        self._raw = text.encode()
        lengths = (len(line) for line in self._raw.splitlines(keepends=True))
        self._line_starts = list(accumulate(lengths, initial=0))
        module = ast.parse(text, filename=file)
        self._nodes = list(ast.walk(module))
        self._names = Names(module)
        self._values = Values(self._names)
        # Functions and lambdas that are passed to foreachBatch.
        handlers = [
            part
            for call in self._method_calls({"foreachBatch"})
            for argument in call.args[:1]
            for part in ast.walk(argument)
        ]
        self._lambdas = {part for part in handlers if isinstance(part, ast.Lambda)}
        self._functions = {part.id for part in handlers if isinstance(part, ast.Name)} | {
            part.attr for part in handlers if isinstance(part, ast.Attribute)
        }

    def read_queries(self) -> Iterator[Query]:
        followed: set[ast.Call] = set()
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and node.attr in _WAYS and not self._called(node):
                calls = list(self._calls_on(node, set()))
                followed.update(calls)
                yield self._query(_WAYS[node.attr], node, calls)
        for call in self._method_calls(_OPTIONS):
            chain = list(_descend(call))
            if call not in followed and not self._reads(chain):
                calls = list(self._calls_on(chain[-1], set()))
                followed.update(calls)
                yield self._query(Way.OPTIONS, calls[0].func, calls)
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Name(id="create_sink") | ast.Attribute(attr="create_sink")):
                    yield self._sink(node)

    def read_session(self) -> Iterator[Given]:
        """Read calls of `config` and `set` with a name that starts with `spark.`."""
        for call in self._method_calls({"config", "set"}):
            if len(call.args) == 2:
                place = self._at(call.args[0])
                name = self._given(None, call.args[0], place).value
                if name is not None and name.startswith("spark."):
                    yield self._given(name, call.args[1], place)

    def _method_calls(self, methods: set[str]) -> list[ast.Call]:
        """Calls of these methods, in order."""
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        found = [call for call in calls if _method(call) in methods]
        return sorted(found, key=lambda call: (call.func.end_lineno, call.func.end_col_offset))

    def _called(self, node: ast.AST) -> bool:
        parent = self._names.parent(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _calls_on(self, node: ast.expr, seen: set[Variable]) -> Iterator[ast.Call]:
        """The method calls that follow an expression, also through the variables that hold it."""
        while isinstance(parent := self._names.parent(node), ast.Attribute) or self._called(node):
            assert isinstance(parent, ast.Attribute | ast.Call)
            node = parent
            if isinstance(node, ast.Call) and _method(node):
                yield node
        match parent:
            case (
                ast.Assign(targets=[ast.Name() as target])
                | ast.AnnAssign(target=ast.Name() as target)
                | ast.NamedExpr(target=target)
            ):
                variable = self._names.variable(target)
                if variable is not None and variable not in seen:
                    seen.add(variable)
                    for use in self._names.uses(variable):
                        yield from self._calls_on(use, seen)

    def _reads(self, chain: list[ast.expr]) -> bool:
        """The chain, or what its first name is assigned, belongs to a reader."""
        root = chain[-1]
        values = self._names.values(root) if isinstance(root, ast.Name) else []
        parts = [*chain, *(part for value in values for part in ast.walk(value))]
        return any(isinstance(part, ast.Attribute) and part.attr in _READERS for part in parts)

    def _query(self, way: Way, start: ast.expr, calls: Iterable[ast.Call]) -> Query:
        options: list[Given] = []
        others: list[Given] = []
        for call in calls:
            match method := _method(call):
                case "option":
                    options.append(self._option(call))
                case "options":
                    why = "options are given by keywords only"
                    options += (Given(None, None, self._at(each), why) for each in call.args)
                    options += self._keywords(call.keywords)
                case "trigger":
                    others += self._trigger(call)
                case "start" | "save":
                    for given in self._keywords(_settings(call)):
                        (others if given.name in _CALLS else options).append(given)
                case _ if method in _CALLS:
                    for keyword in _arguments(call)[:1]:
                        edit = self._renaming(call) if method == "format" else None
                        others.append(self._given(method, keyword.value, self._at(call.func), edit))
        place = Place(self._file, start.end_lineno or start.lineno)
        return Query(way, place, tuple(options), tuple(others), self._handler(start))

    def _sink(self, call: ast.Call) -> Query:
        """A call of `pyspark.pipelines.create_sink(name, format, options)`."""
        given = {keyword.arg: keyword.value for keyword in _arguments(call)}
        place = self._at(call)
        calls = [self._given("format", given["format"], place)] if "format" in given else []
        options = [ast.keyword(None, given["options"])] if "options" in given else []
        return Query(Way.PIPELINE, place, tuple(self._keywords(options)), tuple(calls))

    def _option(self, call: ast.Call) -> Given:
        given = {keyword.arg: keyword.value for keyword in _arguments(call)}
        place = self._at(call.func)
        if not {"key", "value"} <= given.keys():
            return Given(None, None, place, "the arguments are not written out")
        name = self._given(None, given["key"], place)
        if name.value is None:
            return name
        return self._given(name.value, given["value"], place, self._removal(call))

    def _keywords(self, keywords: Iterable[ast.keyword]) -> Iterator[Given]:
        for keyword in keywords:
            if keyword.arg is not None:
                yield self._given(keyword.arg, keyword.value, self._at(keyword.value))
                continue
            for entry in self._values.entries(keyword.value):
                place = Place(self._file, entry.line)
                if isinstance(entry.value, UnreadError):
                    yield Given(entry.name, None, place, str(entry.value))
                else:
                    yield Given(entry.name, as_text(entry.value), place)

    def _trigger(self, call: ast.Call) -> Iterator[Given]:
        for keyword in _settings(call):
            place = self._at(call.func)
            if keyword.arg is None:
                yield Given("trigger", None, place, "the trigger is not written out")
            else:
                yield self._given(f"trigger.{keyword.arg}", keyword.value, place)

    def _given(
        self, name: str | None, node: ast.expr, place: Place, edit: Edit | None = None
    ) -> Given:
        try:
            return Given(name, self._values.text(node), place, edit=edit)
        except UnreadError as error:
            return Given(name, None, place, str(error))

    def _renaming(self, call: ast.Call) -> Edit | None:
        match call:
            case ast.Call(args=[ast.Constant(value=str() as written) as word], keywords=[]):
                start, end = self._span(word)
                if self._raw[start + 1 : end - 1] == written.encode():
                    return Edit(start + 1, end - 1, EOS.encode())
        return None

    def _removal(self, call: ast.Call) -> Edit | None:
        match call:
            case ast.Call(
                func=ast.Attribute(value=before), args=[ast.Constant(), ast.Constant()], keywords=[]
            ):
                start, end = self._span(before)[1], self._span(call)[1]
                if _REMOVABLE.fullmatch(self._raw[start:end]):
                    return Edit(start, end, b"")
        return None

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def _at(self, node: ast.expr) -> Place:
        """A method is where its name is, not where its chain begins."""
        line = node.end_lineno if isinstance(node, ast.Attribute) else node.lineno
        return Place(self._file, line or node.lineno)

    def _handler(self, node: ast.AST) -> str:
        """The function passed to `foreachBatch` that contains the node, or empty."""
        above = self._names.parent(node)
        while above is not None:
            if above in self._lambdas:
                return "lambda"
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) and (
                above.name in self._functions
            ):
                return above.name
            above = self._names.parent(above)
        return ""


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _descend(node: ast.expr) -> Iterator[ast.expr]:
    """The node, and each expression that it is an attribute or a call of."""
    yield node
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
        yield node


def _arguments(call: ast.Call) -> list[ast.keyword]:
    """All arguments by name."""
    called = call.func.id if isinstance(call.func, ast.Name) else _method(call)
    named = zip(_PARAMETERS.get(called, ("value",)), call.args, strict=False)
    return [*(ast.keyword(name, value) for name, value in named), *call.keywords]


def _settings(call: ast.Call) -> list[ast.keyword]:
    """The arguments of a call, without defaults and without those that are not for the sink."""
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
