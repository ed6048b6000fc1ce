"""Spark's Kafka columns: which are allowed, and how Arrow batches turn into records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.rows.rows import Row
from eos_sink.task.columns import to_rows
from eos_sink.task.schema import check_columns, used_columns

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(**parts: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(parts)


def read(topic: str | None = "t", /, **parts: Any) -> list[Row]:
    return list(to_rows(batch(**parts), topic))


def test_a_value_is_enough() -> None:
    assert read(value=pa.array([b"a", None])) == [
        (b"a", None, "t", None, None, None),
        (None, None, "t", None, None, None),
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
        (b"a", b"k", "one", [("h", b"x"), ("h", None)], 3, None),
        (b"b", None, "two", None, None, None),
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


def test_a_row_without_a_topic_is_an_error_with_sparks_name() -> None:
    with pytest.raises(ConfigurationError) as error:
        read(None, value=pa.array(["a"]), topic=pa.array([None], pa.string()))
    assert error.value.data == {"condition": "KAFKA_NULL_TOPIC_IN_DATA"}
    assert "[KAFKA_NULL_TOPIC_IN_DATA]" in str(error.value)


def test_the_fields_of_a_header_may_be_written_in_any_case() -> None:
    """Spark compares names inside a type without their case."""
    kind = pa.list_(pa.struct([("Key", pa.string()), ("VALUE", pa.binary())]))
    headers = pa.array([[{"Key": "h", "VALUE": b"x"}]], kind)
    check_columns({"value": "string", "headers": "array<struct<Key:string,VALUE:binary>>"}, "t")
    assert read(value=pa.array(["a"]), headers=headers)[0][3] == [("h", b"x")]


def test_a_negative_partition_is_an_error_and_not_no_partition() -> None:
    with pytest.raises(ConfigurationError) as error:
        read(value=pa.array(["a", "b"]), partition=pa.array([None, -1], pa.int32()))
    assert error.value.data == {"partition": -1}


@pytest.mark.parametrize("header", [{"key": None, "value": b"x"}, None])
def test_a_header_without_a_key_is_an_error(header: dict[str, object] | None) -> None:
    with pytest.raises(ConfigurationError, match="header"):
        read(value=pa.array(["a"]), headers=pa.array([[header]], HEADERS))


def test_a_key_of_a_header_is_not_cut_off_in_silence() -> None:
    with pytest.raises(ConfigurationError, match="zero"):
        read(value=pa.array(["a"]), headers=pa.array([[{"key": "a\0b", "value": None}]], HEADERS))


ALLOWED = {
    "value": ["string", "binary", "varchar(10)", "char(3)", "string collate UTF8_LCASE"],
    "key": ["string", "binary"],
    "topic": ["string", "string collate UTF8_LCASE"],
    "headers": ["array<struct<key:string,value:binary>>"],
    "partition": ["int"],
}
WRONG = {
    "value": ["int", "void", "struct<a:int>", "variant", "array<string>"],
    "key": ["bigint", "void"],
    "topic": ["binary", "int"],
    "headers": [
        "map<string,binary>",
        "array<struct<key:string,value:string>>",
        "array<struct<key:binary,value:binary>>",
        "array<struct<value:binary,key:string>>",
        "array<struct<k:string,v:binary>>",
        "array<struct<key:string,value:binary,more:int>>",
        "array<struct<key:string>>",
        "struct<key:string,value:binary>",
    ],
    "partition": ["bigint", "smallint", "string"],
}


def each(kinds: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, kind) for name, some in kinds.items() for kind in some]


@pytest.mark.parametrize(("name", "kind"), each(ALLOWED))
def test_an_allowed_type_passes(name: str, kind: str) -> None:
    check_columns({"value": "string", "topic": "string", name: kind}, None)


@pytest.mark.parametrize(("name", "kind"), each(WRONG))
def test_a_wrong_type_is_an_error_that_names_column_type_and_what_is_allowed(
    name: str, kind: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_columns({"value": "string", "topic": "string", name: kind}, None)
    assert f"Column '{name}' has type {kind}; allowed: {ALLOWED[name][0]}" in str(error.value)
    assert "Nothing was written" in str(error.value)
    assert error.value.data == {"condition": "_LEGACY_ERROR_TEMP_3080"}


def test_other_columns_are_ignored() -> None:
    check_columns({"value": "string", "Value": "int", "KEY": "int", "timestamp": "date"}, "t")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("Value", "Value AS value"), ("vlaue", "vlaue AS value"), ("id", "to_json(struct(*)) AS")],
)
def test_a_missing_value_is_an_error_with_the_column_that_was_meant(name: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_columns({"other": "string", name: "string"}, "t")
    assert remedy in error.value.remedy


def test_names_of_columns_are_case_sensitive() -> None:
    with pytest.raises(ConfigurationError, match="topic"):
        check_columns({"value": "string", "Topic": "string"}, None)


def test_with_the_option_a_column_topic_is_any_other_column() -> None:
    check_columns({"value": "string", "topic": "int"}, "t")


@pytest.mark.parametrize("types", [{"key": "string"}, {"value": "string"}])
def test_a_query_needs_a_value_and_a_topic_from_somewhere(types: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_columns(types, None)
    assert error.value.data == {"condition": "_LEGACY_ERROR_TEMP_3080"}
    check_columns({"value": "string", "topic": "string"}, None)


# The times of records.

SECOND = 1_000_000
TIMES = pa.timestamp("us", "Europe/Berlin")


def times(*microseconds: int | None) -> list[int | None]:
    column = pa.array(list(microseconds), TIMES)
    data = batch(value=pa.array(["a"] * len(column)), when=column)
    return [row[5] for row in to_rows(data, "t", "when")]


def test_times_are_milliseconds_the_rest_cut_off_and_null_is_now() -> None:
    assert times(1_700_000_000 * SECOND + 1_999, None, 1_000) == [1_700_000_000_001, None, 1]


def test_without_the_option_a_column_of_times_is_any_other_column() -> None:
    column = pa.array([SECOND], TIMES)
    assert read(value=pa.array(["a"]), timestamp=column)[0][5] is None


def test_a_column_of_times_is_read_whatever_its_name() -> None:
    assert used_columns(["value", "topic", "other"], "t", "topic") == ["value", "topic"]
    data = batch(value=pa.array(["a"]), topic=pa.array([SECOND], TIMES))
    assert [row[2:] for row in to_rows(data, "t", "topic")] == [("t", None, None, 1_000)]


def test_without_the_option_a_column_topic_is_not_read() -> None:
    assert used_columns(["value", "topic"], "t", None) == ["value"]
    assert used_columns(["value", "topic"], None, None) == ["value", "topic"]


def test_a_column_of_times_that_is_lost_on_the_way_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"eos\.timestamp\.column"):
        to_rows(batch(value=pa.array(["a"])), "t", "when")


@pytest.mark.parametrize("early", [999, 0, -SECOND])
def test_a_time_that_a_record_cannot_have_is_an_error(early: int) -> None:
    """Kafka has no negative ones, and to the client 0 means now."""
    with pytest.raises(ConfigurationError) as error:
        times(SECOND, early)
    assert error.value.data == {"milliseconds": early // 1_000}


def test_a_named_column_of_times_must_be_there_and_an_instant() -> None:
    check_columns({"value": "string", "at": "timestamp"}, "t", "at")
    with pytest.raises(ConfigurationError, match=r"eos\.timestamp\.column"):
        check_columns({"value": "string", "At": "timestamp"}, "t", "at")
    for kind in ("timestamp_ntz", "bigint", "date", "string"):
        with pytest.raises(ConfigurationError, match=kind):
            check_columns({"value": "string", "at": kind}, "t", "at")
