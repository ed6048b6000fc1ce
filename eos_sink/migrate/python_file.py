"""Reads the queries of a Python file with `ast`; nothing of the file is ever run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eos_sink.migrate.chains import Link, Writer, functions_of_foreach_batch, writers
from eos_sink.migrate.literals import Literals, as_text
from eos_sink.migrate.model import Given, Place, Query, Source, Way
from eos_sink.migrate.names import Names, Unread
from eos_sink.migrate.options_input import from_settings

KAFKA = "kafka"
EOS = "kafka-eos"

_WAYS = {"writeStream": Way.STREAM, "write": Way.BATCH, None: Way.OPTIONS}
_ONE_ARGUMENT = {"format", "outputMode", "mode", "queryName"}
# Where `start()` and `save()` take what there is a call for, too.
_BY_KEYWORD = {"format", "outputMode", "mode", "queryName"}
_SINK = ("name", "format", "options")
_NO_OPTIONS = {"path", "partitionBy"}
_SESSION = {"config", "set"}


def read_python(text: str, file: str) -> Source:
    """The queries of a file that write to Kafka, or may.

    Args:
        text: the file.
        file: its name, for places.

    Raises:
        SyntaxError: it is no Python.
    """
    module = ast.parse(text, filename=file)
    names = Names(module)
    reader = _Reader(file, names, *functions_of_foreach_batch(module))
    queries = [*(reader.query(writer) for writer in writers(module, names)), *reader.sinks(module)]
    settings = from_settings(file, reader.session(module))
    return Source(
        file,
        (*(query for query in queries if _concerns_kafka(query)), *settings.queries),
        settings.session,
    )


class _Reader:
    def __init__(self, file: str, names: Names, named: set[str], lambdas: set[ast.AST]) -> None:
        self._file = file
        self._names = names
        self._literals = Literals(names)
        self._named = named
        self._lambdas = lambdas

    def query(self, writer: Writer) -> Query:
        options: list[Given] = []
        calls: list[Given] = []
        for link in writer.links:
            if link.call is None:
                continue
            if link.name in ("option", "options"):
                options += self._options(link.call, link)
            elif link.name in ("start", "save"):
                for given in self._ending(link.call, link):
                    (calls if given.name in _BY_KEYWORD else options).append(given)
            elif link.name == "trigger":
                calls += self._trigger(link.call, link)
            elif link.name in _ONE_ARGUMENT:
                argument = [*link.call.args, *(k.value for k in link.call.keywords)][:1]
                calls += [self._given(link.name, value, self._at(link)) for value in argument]
        place = Place(self._file, writer.links[0].line)
        inside = self._inside(writer.chain.node)
        return Query(_WAYS[writer.kind], place, tuple(options), tuple(calls), inside)

    def sinks(self, module: ast.Module) -> Iterator[Query]:
        """Calls of `pyspark.pipelines.create_sink(name, format, options)`."""
        for node in ast.walk(module):
            match node:
                case ast.Call(func=ast.Name(id="create_sink") | ast.Attribute(attr="create_sink")):
                    by_name = {keyword.arg or "": keyword.value for keyword in node.keywords}
                    given = dict(zip(_SINK, node.args, strict=False)) | by_name
                    place = self._line(node.lineno)
                    written, options = given.get("format"), given.get("options")
                    calls = [self._given("format", written, place)] if written else []
                    found = self._keywords([ast.keyword(None, options)] if options else [])
                    yield Query(Way.PIPELINE, place, tuple(found), tuple(calls))

    def session(self, module: ast.Module) -> Iterator[Given]:
        """`spark....` settings that are set in calls of `config` or `set`."""
        for node in ast.walk(module):
            match node:
                case ast.Call(func=ast.Attribute(attr=attribute), args=[key, value]) if (
                    attribute in _SESSION
                ):
                    name = self._literals.text(key)
                    if isinstance(name, str) and name.startswith("spark."):
                        yield self._given(name, value, self._line(key.lineno))

    def _options(self, call: ast.Call, link: Link) -> Iterator[Given]:
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if link.name == "option":
            given = dict(zip(("key", "value"), call.args, strict=False)) | keywords
            if not {"key", "value"} <= given.keys():
                yield self._unread(Unread("the arguments are not written out"), self._at(link))
                return
            name = self._literals.text(given["key"])
            if isinstance(name, Unread):
                yield self._unread(name, self._at(link))
            else:
                yield self._given(name, given["value"], self._at(link))
            return
        for argument in call.args:
            why = Unread("options are given by keywords only")
            yield self._unread(why, self._line(argument.lineno))
        yield from self._keywords(call.keywords)

    def _keywords(self, keywords: list[ast.keyword]) -> Iterator[Given]:
        for keyword in keywords:
            if keyword.arg is not None:
                yield self._given(keyword.arg, keyword.value, self._line(keyword.value.lineno))
                continue
            for entry in self._literals.entries(keyword.value):
                value = as_text(entry.value)
                if entry.name is None or isinstance(value, Unread):
                    why = value if isinstance(value, Unread) else Unread("its name is not plain")
                    yield self._unread(why, self._line(entry.line), entry.name)
                else:
                    yield Given(entry.name, value, self._line(entry.line))

    def _ending(self, call: ast.Call, link: Link) -> Iterator[Given]:
        """`start(path, format, outputMode, partitionBy, queryName, **options)` and `save(path,
        format, mode, partitionBy, **options)`, as pyspark has them."""
        order = (
            ("path", "format", "outputMode", "partitionBy", "queryName")
            if link.name == "start"
            else ("path", "format", "mode", "partitionBy")
        )
        for name, value in zip(order, call.args, strict=False):
            if name not in _NO_OPTIONS and not _is_none(value):
                yield self._given(name, value, self._line(value.lineno))
        rest = [k for k in call.keywords if k.arg not in _NO_OPTIONS and not _is_none(k.value)]
        yield from self._keywords(rest)

    def _trigger(self, call: ast.Call, link: Link) -> Iterator[Given]:
        for keyword in call.keywords:
            if keyword.arg is None:
                why = Unread("the trigger is not written out")
                yield self._unread(why, self._at(link), "trigger")
            elif not _is_none(keyword.value):
                yield self._given(f"trigger.{keyword.arg}", keyword.value, self._at(link))

    def _given(self, name: str, node: ast.expr, place: Place) -> Given:
        value = self._literals.text(node)
        if isinstance(value, Unread):
            return self._unread(value, place, name)
        return Given(name, value, place)

    def _unread(self, why: Unread, place: Place, name: str | None = None) -> Given:
        return Given(name, None, place, why.why)

    def _line(self, number: int) -> Place:
        return Place(self._file, number)

    def _at(self, link: Link) -> Place:
        return Place(self._file, link.line, link.column)

    def _inside(self, node: ast.AST) -> str:
        """The function of a `foreachBatch` that the node is in."""
        above = self._names.parent(node)
        while above is not None:
            if above in self._lambdas:
                return "lambda"
            function = isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef)
            if function and above.name in self._named:  # type: ignore[attr-defined]
                return str(above.name)  # type: ignore[attr-defined]
            above = self._names.parent(above)
        return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _concerns_kafka(query: Query) -> bool:
    """It writes to Kafka; or it may, since its format cannot be read or is elsewhere."""
    written = query.call("format")
    # Without a writer to be seen, `format` may be that of any text.
    if written is not None and written.value is not None and query.way is not Way.OPTIONS:
        return written.value.lower() in (KAFKA, EOS)
    return any((given.name or "").lower().startswith("kafka.") for given in query.options)
