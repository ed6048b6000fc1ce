"""Spark's Kafka columns: which are allowed, and how Arrow batches turn into records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.task.columns import Row, check_columns, rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def read(topic: str | None = "t", /, **columns: Any) -> list[Row]:
    return list(rows(batch(**columns), topic))


def test_a_value_is_enough() -> None:
    assert read(value=pa.array([b"a", None])) == [
        (b"a", None, "t", None, None),
        (None, None, "t", None, None),
    ]


def test_every_column_reaches_its_place_whatever_their_order() -> None:
    assert read(
        None,
        partition=pa.array([3, None], pa.int32()),
        headers=pa.array(
            [[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None], HEADERS
        ),
        topic=pa.array(["one", "two"]),
        ignored=pa.array([1, 2]),
        key=pa.array(["k", None]),
        value=pa.array(["a", "b"]),
    ) == [
        (b"a", b"k", "one", [("h", b"x"), ("h", None)], 3),
        (b"b", None, "two", None, None),
    ]


def test_the_option_goes_before_the_column_topic() -> None:
    assert read("t", value=pa.array(["a"]), topic=pa.array([None], pa.string()))[0][2] == "t"


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()]
)
def test_text_and_bytes_of_every_width_are_the_same_bytes(kind: pa.DataType) -> None:
    text = ["grün", "", None]
    data = text if "string" in str(kind) else [None if t is None else t.encode() for t in text]
    values = [row[0] for row in read(value=pa.array(data, kind))]
    assert values == ["grün".encode(), b"", None]


def test_an_empty_batch_has_no_rows() -> None:
    assert read(value=pa.array([], pa.string())) == []


def test_headers_may_be_empty() -> None:
    assert read(value=pa.array(["a"]), headers=pa.array([[]], HEADERS))[0][3] in ([], None)


def test_a_row_without_a_topic_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="null in column 'topic'"):
        read(None, value=pa.array(["a"]), topic=pa.array([None], pa.string()))


@pytest.mark.parametrize("header", [{"key": None, "value": b"x"}, None])
def test_a_header_without_a_key_is_an_error(header: dict[str, object] | None) -> None:
    with pytest.raises(ConfigurationError, match="header without a key"):
        read(value=pa.array(["a"]), headers=pa.array([[header]], HEADERS))


ALLOWED = {
    "value": ["string", "binary", "varchar(10)", "char(3)", "string collate UTF8_LCASE"],
    "key": ["string", "binary"],
    "topic": ["string"],
    "headers": ["array<struct<key:string,value:binary>>"],
    "partition": ["int"],
}


def pairs(kinds: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, kind) for name, allowed in ALLOWED.items() for kind in kinds if kind in allowed]


@pytest.mark.parametrize(("name", "kind"), pairs({k for kinds in ALLOWED.values() for k in kinds}))
def test_an_allowed_type_passes(name: str, kind: str) -> None:
    check_columns({"value": "string", name: kind}, "t")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("value", "int"),
        ("value", "struct<a:int>"),
        ("key", "bigint"),
        ("topic", "binary"),
        ("headers", "map<string,binary>"),
        ("headers", "array<struct<key:string,value:string>>"),
        ("partition", "bigint"),
        ("partition", "string"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_column_and_type(name: str, kind: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_columns({"value": "string", name: kind}, "t")
    assert f"Column '{name}' has type {kind}" in str(error.value)
    assert "Nothing was written" in str(error.value)


def test_other_columns_are_nobodys_business() -> None:
    check_columns({"value": "string", "Value": "int", "price": "decimal(10,2)"}, "t")


def test_a_query_needs_a_value_and_a_topic_from_somewhere() -> None:
    with pytest.raises(ConfigurationError, match="'value' is missing"):
        check_columns({"key": "string"}, "t")
    with pytest.raises(ConfigurationError, match="neither option topic nor a column"):
        check_columns({"value": "string"}, None)
    check_columns({"value": "string", "topic": "string"}, None)
