"""Makes the changes that a migration certainly needs; everything else stays as it is."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable

from eos_sink.identity import SESSION_PREFIX
from eos_sink.kafka_config.properties_file import format_property, read_properties
from eos_sink_lab.migrate.queries import EOS, KAFKA, Finding, Source, Way

_LEFT_OUT = "# eos-sink migrate: "
_LINE_END = re.compile(r"\r\n|\n|\r")
_LINES = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


def edit_python(text: str, findings: Iterable[Finding]) -> str:
    """Rename the format and remove the superfluous options, where these are plain calls."""
    raw = text.encode()
    for edit in sorted({finding.edit for finding in findings if finding.edit}, reverse=True):
        raw = raw[: edit.start] + edit.new + raw[edit.end :]
    return raw.decode()


def edit_options_file(text: str, findings: Iterable[Finding]) -> str:
    """Turn the superfluous entries of a properties file into comments."""
    lines = {finding.place.line for finding in findings if finding.superfluous}
    out = _LINES.split(text)
    for entry in read_properties(text):
        if entry.line in lines:
            for number in range(entry.line - 1, entry.last_line):
                out[number] = _LEFT_OUT + out[number]
    return "".join(out)


def write_options_file(source: Source, findings: Iterable[Finding]) -> str:
    """Write the options of a command line as a properties file, without the superfluous ones."""
    left_out = {finding.name for finding in findings if finding.superfluous}
    entries = [
        (SESSION_PREFIX * (query.way is Way.DEFAULTS) + (given.name or ""), given.value or "")
        for query in source.queries
        for given in query.options
        if given.name not in left_out
    ]
    entries += [(given.name or "", given.value or "") for given in source.session]
    return "".join(f"{format_property(name, value)}\n" for name, value in entries)


def diff_python(old: str, new: str, file: str, findings: Iterable[Finding]) -> str:
    """A unified diff of a Python file; empty if a changed line has a text that may be secret."""
    known = {KAFKA, EOS} | {text for finding in findings for text in (finding.name, finding.value)}
    # Lines as Python's parser counts them; str.splitlines splits at more characters.
    before, after = _LINE_END.split(old), _LINE_END.split(new)
    diff = list(difflib.unified_diff(before, after, file, f"{file} (migrated)", n=0, lineterm=""))
    removed = {line[1:] for line in diff[2:] if line.startswith("-")}
    for node in ast.walk(ast.parse(old)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            lines = before[node.lineno - 1 : node.end_lineno]
            if node.value not in known and removed.intersection(lines):
                return ""
    return "\n".join(diff)
