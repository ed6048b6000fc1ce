"""Java properties files, as `java.util.Properties` reads them.

That is also the syntax of spark-defaults.conf and of the files that Kafka's tools take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK = " \t\f"
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_ENTRY = re.compile(rf"((?:\\.|[^\\=:{_BLANK}])*)[{_BLANK}]*(?:[=:][{_BLANK}]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_NAMED = {char: f"\\{letter}" for letter, char in _NAMED.items()}
_SPECIAL_IN_NAME = re.compile(r"[\\=:#! \t\n\r\f]")
_SPECIAL_IN_VALUE = re.compile(r"[\\\t\n\r\f]|^ ")


@dataclass(frozen=True)
class Property:
    """One entry of a file.

    Attributes:
        name: without its escapes.
        value: without its escapes and without blanks at its end, as Spark reads it.
        line: its first line, from 1.
        last_line: its last line; another one where it is continued.
    """

    name: str
    value: str
    line: int
    last_line: int


def read_properties(text: str) -> list[Property]:
    """The entries of a file, in order; a name may be there twice, and then the last one holds."""
    return list(_entries(_LINE_END.split(text)))


def line_of_properties(name: str, value: str) -> str:
    """An entry as a line of such a file, without the line's end."""
    return f"{_escaped(name, _SPECIAL_IN_NAME)}={_escaped(value, _SPECIAL_IN_VALUE)}"


def _escaped(text: str, special: re.Pattern[str]) -> str:
    return special.sub(lambda found: _TO_NAMED.get(found[0], f"\\{found[0]}"), text)


def _entries(lines: list[str]) -> Iterator[Property]:
    number = 0
    while number < len(lines):
        first, logical = number, lines[number].lstrip(_BLANK)
        number += 1
        if not logical or logical[0] in "#!":
            continue
        while _CONTINUED.search(logical) and number < len(lines):
            logical = logical[:-1] + lines[number].lstrip(_BLANK)
            number += 1
        match = _ENTRY.fullmatch(logical)
        assert match is not None
        yield Property(_unescaped(match[1]), _unescaped(match[2]).rstrip(), first + 1, number)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2] or ""),
        text,
    )
