"""Java properties files, as `java.util.Properties` reads them.

spark-defaults.conf and the files of Kafka's tools have the same syntax.
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
        value: without its escapes and trailing blanks, as Spark reads it.
        line: its first line, from 1.
    """

    name: str
    value: str
    line: int


def read_properties(text: str) -> list[Property]:
    """The entries of a file, in order; if a name occurs twice, the last one counts."""
    return list(_read_entries(_LINE_END.split(text)))


def format_property(name: str, value: str) -> str:
    """A line of such a file, without its end."""
    return f"{_escape(name, _SPECIAL_IN_NAME)}={_escape(value, _SPECIAL_IN_VALUE)}"


def _escape(text: str, special: re.Pattern[str]) -> str:
    return special.sub(lambda found: _TO_NAMED.get(found[0], f"\\{found[0]}"), text)


def _read_entries(lines: list[str]) -> Iterator[Property]:
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
        yield Property(_unescape(match[1]), _unescape(match[2]).rstrip(), first + 1)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2] or ""),
        text,
    )
