"""The same input with what is sure to be needed changed: nothing else of it is touched."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from eos_sink.defaults import PREFIX
from eos_sink.migrate.chains import end_of
from eos_sink.migrate.model import Finding, Query, Source, Verdict, Way
from eos_sink.migrate.python_file import EOS, KAFKA, read_python
from eos_sink.properties import line_of_properties, read_properties

_LEFT_OUT = "# eos-sink migrate: "
_LINES = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


def edited_options(text: str, findings: Iterable[Finding]) -> str:
    """A properties file whose superfluous entries are comments now."""
    lines = {finding.place.line for finding in findings if finding.superfluous}
    out = _LINES.split(text)
    for entry in read_properties(text):
        if entry.line in lines:
            for number in range(entry.line - 1, entry.last_line):
                out[number] = _LEFT_OUT + out[number]
    return "".join(out)


def options_as_file(source: Source, findings: Iterable[Finding]) -> str:
    """Pairs of a command line as a properties file, without the superfluous ones."""
    left_out = {finding.name for finding in findings if finding.superfluous}
    lines = [
        line_of_properties(_prefix(query) + (given.name or ""), given.value or "")
        for query in source.queries
        for given in query.options
        if given.name not in left_out
    ]
    lines += [line_of_properties(given.name or "", given.value or "") for given in source.session]
    return "".join(f"{line}\n" for line in lines)


def _prefix(query: Query) -> str:
    return PREFIX if query.way is Way.DEFAULTS else ""


@dataclass(frozen=True)
class _Cut:
    """Bytes of the file that give way to others, and the option or call that they were."""

    start: int
    end: int
    new: bytes
    line: int
    column: int


def edited_python(text: str, file: str, findings: Sequence[Finding]) -> str:
    """A Python file with `format("kafka-eos")`, and without the superfluous options, as far as
    both stand there plainly as calls of their own."""
    raw = text.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    cuts = sorted(_cuts(ast.parse(text), raw, starts, findings), key=lambda cut: -cut.start)
    new = raw
    for cut in cuts:
        new = new[: cut.start] + cut.new + new[cut.end :]
    return new.decode() if _as_meant(text, new.decode(), file, cuts) else text


def diff_of(old: str, new: str, file: str, findings: Iterable[Finding]) -> str:
    """A unified diff of a Python file; empty if its lines hold texts that may be secret."""
    known = {KAFKA, EOS, *(f.name for f in findings), *(f.value for f in findings)}
    lines = list(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), file, f"{file} (migrated)", n=0, lineterm=""
        )
    )
    changed = {
        number
        for tag, first, last, _, _ in difflib.SequenceMatcher(
            None, old.splitlines(), new.splitlines()
        ).get_opcodes()
        if tag != "equal"
        for number in range(first + 1, last + 1)
    }
    for node in ast.walk(ast.parse(old)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            here = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if changed.intersection(here) and node.value not in known:
                return ""
    return "\n".join(lines)


def _cuts(
    module: ast.Module, raw: bytes, starts: list[int], findings: Sequence[Finding]
) -> Iterator[_Cut]:
    renamed = [f for f in findings if f.name == "format" and f.verdict is Verdict.TRANSLATED]
    formats = {_end(finding) for finding in renamed}
    dropped = {_end(finding) for finding in findings if finding.superfluous}
    for node in ast.walk(module):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="format") as called,
                args=[ast.Constant(value=str() as written) as word],
                keywords=[],
            ) if end_of(called) in formats:
                start, end = _span(word, starts)
                literal = raw[start:end]
                if literal[1:-1] == written.encode():
                    new = literal[:1] + EOS.encode() + literal[-1:]
                    yield _Cut(start, end, new, *end_of(called))
            case ast.Call(
                func=ast.Attribute(attr="option", value=before) as called,
                args=[ast.Constant(), ast.Constant()],
                keywords=[],
            ) if end_of(called) in dropped:
                start, end = _span(before, starts)[1], _span(node, starts)[1]
                if b"#" not in raw[start:end]:
                    yield _Cut(start, end, b"", *end_of(called))


def _end(finding: Finding) -> tuple[int, int]:
    return finding.place.line, finding.place.column


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    line, column = end_of(node)
    return starts[node.lineno - 1] + node.col_offset, starts[line - 1] + column


def _as_meant(old: str, new: str, file: str, cuts: Sequence[_Cut]) -> bool:
    """Read again, the file has the same queries, but for what was cut."""
    made = {(cut.line, cut.column) for cut in cuts}
    try:
        after = read_python(new, file)
    except SyntaxError:
        return False
    before = read_python(old, file)
    return [_content(query, made) for query in before.queries] == [
        _content(query, set()) for query in after.queries
    ]


def _content(query: Query, made: Collection[tuple[int, int]]) -> object:
    """All of a query but its places, as it is once the cuts are made."""
    options = [
        (given.name, given.value)
        for given in query.options
        if (given.place.line, given.place.column) not in made
    ]
    calls = [
        (given.name, EOS if (given.place.line, given.place.column) in made else given.value)
        for given in query.calls
    ]
    return query.way, query.inside, options, calls
