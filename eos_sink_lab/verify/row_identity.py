"""Finds the identity, group and order of a row in its record, at the places that the user names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from eos_sink_lab.testing.topic_scan import Row
from eos_sink_lab.verify.verify_model import VerifyOptions

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_SHOWN = 60

Find = Callable[[Row], Any]
"""Returns what a record has at a place; None: nothing."""


class PlaceError(ValueError):
    """There is no such place in a record; the message lists the possible ones."""


class Places:
    """Makes functions that look into records; they share the parsed JSON of a value."""

    def __init__(self) -> None:
        self._row: Row | None = None
        self._object: Any = None

    def find(self, place: str) -> Find:
        """The function for `key`, `value`, `json:FIELD[.FIELD]`, `header:NAME` or `regex:PATTERN`.

        Raises:
            PlaceError: it is none of these.
        """
        match place.partition(":"):
            case ["key", "", ""]:
                return lambda row: row.key()
            case ["value", "", ""]:
                return lambda row: row.value()
            case ["json", _, fields] if fields:
                return self._find_field(fields.split("."))
            case ["header", _, name] if name:
                return lambda row: next(
                    (value for key, value in reversed(headers_of(row)) if key == name), None
                )
            case ["regex", _, pattern] if pattern:
                return _find_pattern(pattern)
        raise PlaceError(
            f"{place!r} is not a place in a record: key, value, json:FIELD[.FIELD], header:NAME or "
            "regex:PATTERN"
        )

    def _find_field(self, path: list[str]) -> Find:
        def find(row: Row) -> Any:
            if row is not self._row:
                self._row = row
                try:
                    self._object = json.loads(row.value() or b"null")
                except (ValueError, RecursionError):
                    self._object = None
            found = self._object
            for name in path:
                if not isinstance(found, dict):
                    return None
                found = found.get(name)
            return found

        return find


def headers_of(row: Row) -> Sequence[tuple[str, bytes | None]]:
    """The row's headers; empty if a name is not UTF-8, which confluent-kafka cannot return."""
    try:
        return row.headers() or ()
    except (SystemError, UnicodeDecodeError) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return ()


def _find_pattern(pattern: str) -> Find:
    try:
        compiled = re.compile(pattern.encode())
    except re.error as error:
        raise PlaceError(f"regex:{pattern}: {error}") from error

    def find(row: Row) -> Any:
        value = row.value()
        match = None if value is None else compiled.search(value)
        return match and match[1 if compiled.groups else 0]

    return find


class RowIdentifier:
    """Identifies rows as the options say.

    Attributes:
        number: returns a row's number, or a 64-bit hash of its identity, and the hash of its group;
            None if the row has no identity.

    Raises:
        PlaceError: an option names no place in a record.
    """

    def __init__(self, options: VerifyOptions) -> None:
        places = Places()
        self._numbered = options.numbered
        self._identity = places.find(options.identity)
        self._group = places.find(options.group) if options.group else None
        self._order = places.find(options.order) if options.order else None
        self.number: Callable[[Row], tuple[int, int] | None] = (
            self._number if options.numbered else self._hash
        )

    def text(self, row: Row) -> bytes:
        """The identity as the record has it; a number in its usual spelling."""
        found = self._identity(row)
        return as_text(as_number(found) if self._numbered else found) or b""

    def group(self, row: Row) -> bytes:
        return as_text(self._group(row) if self._group else None) or b""

    def order(self, row: Row) -> int | float | str | None:
        return as_order(self._order(row) if self._order else None)

    def _number(self, row: Row) -> tuple[int, int] | None:
        number = as_number(self._identity(row))
        if number is None or self._group is None:
            return None if number is None else (number, 0)
        group = as_text(self._group(row))
        return None if group is None else (number, hash(group))

    def _hash(self, row: Row) -> tuple[int, int] | None:
        text = as_text(self._identity(row))
        return None if text is None else (hash(text), 0)


def as_text(found: Any) -> bytes | None:
    """An identity as bytes: text and bytes as they are, other JSON values in one spelling."""
    if found is None or isinstance(found, bytes):
        return found
    if isinstance(found, str):
        return found.encode("utf-8", "surrogatepass")
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()


def as_number(found: Any) -> int | None:
    """A whole number of 64 bits, also from its digits; None: it is not one."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    if isinstance(found, str) and _WHOLE.fullmatch(found):
        found = int(found)
    if type(found) is int and _LEAST <= found <= _GREATEST:
        return found
    return None


def as_order(found: Any) -> int | float | str | None:
    """A value that can be compared with others of its kind; digits are a number."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    if isinstance(found, str):
        number = as_number(found)
        return found if number is None else number
    if isinstance(found, bool) or found != found:  # noqa: PLR0124 - NaN has no place in any order
        return None
    return found if isinstance(found, (int, float)) else None


def escape_text(found: bytes | str | None) -> str:
    """Text of a topic for people, with control characters escaped and shortened."""
    if found is None:
        return "none"
    text = found.decode("utf-8", "backslashreplace") if isinstance(found, bytes) else found
    whole = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in whole
    )
