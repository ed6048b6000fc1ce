"""A row is identified at the place that the user names; its text is safe to print."""

from __future__ import annotations

from typing import Any

import pytest

from eos_sink_lab.verify.row_identity import (
    PlaceError,
    Places,
    RowIdentifier,
    as_number,
    as_order,
    as_text,
    escape_text,
    headers_of,
)
from tests.lab.testing.fake_row import FakeRow
from tests.lab.verify.cases import question

RECORD = FakeRow(
    b"k", b'{"id": 7, "at": {"page": "x.y", "n": null}}', (("id", b"old"), ("id", b"new"))
)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("key", b"k"),
        ("value", RECORD.of_value),
        ("json:id", 7),
        ("json:at.page", "x.y"),
        ("json:at.n", None),
        ("json:at.page.deeper", None),
        ("json:nothing", None),
        ("header:id", b"new"),
        ("header:none", None),
        (r'regex:"id": (\d+)', b"7"),
        (r"regex:\d", b"7"),
        ("regex:nowhere", None),
    ],
)
def test_a_place_in_a_record(place: str, found: Any) -> None:
    assert Places().find(place)(RECORD) == found


@pytest.mark.parametrize("value", [None, b"", b"{", b"\xff", b"[" * 100_000, b"[1]", b"9" * 5000])
def test_a_value_that_is_no_such_json_has_nothing(value: bytes | None) -> None:
    assert Places().find("json:id")(FakeRow(of_value=value)) is None


def test_two_fields_of_two_records_are_not_mixed_up() -> None:
    places = Places()
    one, other = places.find("json:a"), places.find("json:b")
    first, second = FakeRow(of_value=b'{"a": 1, "b": 2}'), FakeRow(of_value=b'{"a": 3, "b": 4}')
    assert [one(first), other(first), one(second), other(second), one(first)] == [1, 2, 3, 4, 1]


@pytest.mark.parametrize("place", ["", "keys", "json:", "header:", "regex:", "regex:(", "json"])
def test_no_such_place(place: str) -> None:
    with pytest.raises(PlaceError):
        Places().find(place)


@pytest.mark.parametrize(
    ("found", "text", "number", "order"),
    [
        (None, None, None, None),
        (7, b"7", 7, 7),
        ("7", b"7", 7, 7),
        (b"-7", b"-7", -7, -7),
        (b"x", b"x", None, "x"),
        (True, b"true", None, None),
        (7.5, b"7.5", None, 7.5),
        (float("nan"), b"NaN", None, None),
        (2**63, b"9223372036854775808", None, 2**63),
        ("9" * 19, b"9" * 19, None, "9" * 19),
        (b"\xff\xfe", b"\xff\xfe", None, "��"),
        ("\ud800", b"\xed\xa0\x80", None, "\ud800"),
        ({"b": 1, "a": [2]}, b'{"a":[2],"b":1}', None, None),
        ("٣", "٣".encode(), None, "٣"),
    ],
)
def test_what_is_found_as_text_number_and_order(
    found: Any, text: bytes, number: int, order: Any
) -> None:
    assert as_text(found) == text
    assert as_number(found) == number
    assert as_order(found) == order


def test_nothing_that_is_shown_steers_a_terminal() -> None:
    said = escape_text(
        b"a\x1b[2J\r\n\x00\xff\xc2\x9b" + "\u202e\ud83d".encode("utf-8", "surrogatepass")
    )
    assert said.isprintable()
    assert said.startswith(r"a\x1b[2J\r\n\x00\xff\x9b")
    assert len(escape_text(b"x" * 5000)) == 60
    assert escape_text("\ud800").isprintable()
    assert escape_text(None) == "none"


def test_a_number_has_one_spelling() -> None:
    rows = [FakeRow(key) for key in (b"7", b"07", b"+7")]
    numbers, texts = (RowIdentifier(question(numbered=each)) for each in (True, False))
    assert {numbers.text(row) for row in rows} == {b"7"}
    assert {texts.text(row) for row in rows} == {b"7", b"07", b"+7"}


class UnreadableRow(FakeRow):
    """A record with a header whose name is not UTF-8."""

    cause: BaseException = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        raise SystemError from self.cause


def test_a_row_whose_headers_cannot_be_read_has_no_identity() -> None:
    identifier = RowIdentifier(question(identity="header:id"))
    assert identifier.number(UnreadableRow()) is None


def test_ctrl_c_while_headers_are_read_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnreadableRow, "cause", KeyboardInterrupt())
    with pytest.raises(SystemError):
        headers_of(UnreadableRow())
