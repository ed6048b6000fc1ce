"""The row of a record is found the careful way and the quick way alike."""

from __future__ import annotations

import json

import pytest

from eos_sink.demo.reader import quick_row_of, row_of


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"row": 7, "carrier": "UA"}).encode(),
        b'{"row":7,"carrier":"UA"}',
        b'{"carrier":"UA","row":7}',
        b'{"row":7}',
    ],
)
def test_the_row_is_found(value: bytes) -> None:
    assert row_of(value) == quick_row_of(value) == 7


@pytest.mark.parametrize("value", [b"", b"not json", b"{}", b"[1]", b'{"row":"x",}', b'{"row":,}'])
def test_what_is_no_flight_has_no_row(value: bytes) -> None:
    assert row_of(value) == quick_row_of(value) == -1
