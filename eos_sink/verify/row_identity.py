"""Which row a record is: found in its key, value or headers, as the user says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from eos_sink.testing.topic_scan import Row

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_SHOWN = 60


Find = Callable[[Row], Any]
"""What a record holds at a place; None: nothing."""


class PlaceError(ValueError):
    """There is no such place in a record; the message says which there are."""


class Places:
    """Makes the functions that look into records; they share the parsing of a value."""

    def __init__(self) -> None:
        self._row: Row | None = None
        self._object: Any = None

    def find(self, place: str) -> Find:
        """The function for `key`, `value`, `json:FIELD[.FIELD]`, `header:NAME` or `regex:PATTERN`.

        Raises:
            PlaceError: it is none of these.
        """
        kind, colon, rest = place.partition(":")
        if place == "key":
            return lambda row: row.key()
        if place == "value":
            return lambda row: row.value()
        if colon and rest:
            if kind == "json":
                return self._field(rest.split("."))
            if kind == "header":
                return lambda row: _header(row, rest)
            if kind == "regex":
                return _pattern(rest)
        raise PlaceError(
            f"{place!r} is no place in a record: key, value, json:FIELD[.FIELD], header:NAME or "
            "regex:PATTERN"
        )

    def _field(self, path: list[str]) -> Find:
        def find(row: Row) -> Any:
            found = self._parsed(row)
            for name in path:
                if not isinstance(found, dict):
                    return None
                found = found.get(name)
            return found

        return find

    def _parsed(self, row: Row) -> Any:
        if row is not self._row:
            self._row = row
            try:
                self._object = json.loads(row.value() or b"null")
            except (ValueError, RecursionError):
                self._object = None
        return self._object


def as_text(found: Any) -> bytes | None:
    """An identity: texts and bytes as they are, anything else of JSON in one spelling."""
    if found is None or isinstance(found, bytes):
        return found
    if isinstance(found, str):
        return found.encode("utf-8", "surrogatepass")
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()


def as_number(found: Any) -> int | None:
    """A whole number of 64 bits, also written out in digits; None: it is none."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    if isinstance(found, str) and _WHOLE.fullmatch(found):
        found = int(found)
    if type(found) is int and _LEAST <= found <= _GREATEST:
        return found
    return None


def as_order(found: Any) -> int | float | str | None:
    """What may be compared with another one of its kind; numbers written out are numbers."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    if isinstance(found, str):
        number = as_number(found)
        return found if number is None else number
    if isinstance(found, bool) or found != found:  # noqa: PLR0124 - NaN has no place in any order
        return None
    return found if isinstance(found, (int, float)) else None


def escape_text(found: bytes | str | None) -> str:
    """A text from the topic for people: nothing in it can steer a terminal."""
    if found is None:
        return "none"
    text = found.decode("utf-8", "backslashreplace") if isinstance(found, bytes) else found
    whole = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in whole
    )


def _header(row: Row, name: str) -> Any:
    found = [value for key, value in row.headers() or () if key == name]
    return found[-1] if found else None


def _pattern(pattern: str) -> Find:
    try:
        compiled = re.compile(pattern.encode())
    except re.error as error:
        raise PlaceError(f"regex:{pattern}: {error}") from error

    def find(row: Row) -> Any:
        value = row.value()
        if value is None:
            return None
        match = compiled.search(value)
        return match and match[1 if compiled.groups else 0]

    return find
