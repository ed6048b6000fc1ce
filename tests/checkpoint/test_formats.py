"""The files of a checkpoint, whole and broken."""

from __future__ import annotations

import pytest

from eos_sink.checkpoint.formats import (
    parse_batch_time,
    parse_initial_offset,
    parse_offset_log,
    parse_stream_id,
    read_kafka_offsets,
)
from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka_config.source_topics import parse_source_topics

FILE = "checkpoint/offsets/7"
# As Spark 3.5 to 4.2 write it, shortened.
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000123,"conf":{"a":"b"}}'
ORDERS = '{"orders":{"0":5,"1":0}}'
AUDIT = '{"audit":{"0":7}}'
LOG_1 = f"v1\n{METADATA}\n{ORDERS}\n-\n42".encode()
LOG_2 = f"v2\n{METADATA}\nfirst:{ORDERS}\nsecond:-\n3:42".encode()
INITIAL = b"\0v1\n" + ORDERS.encode()
SOURCES = (ORDERS, "-", "42")


def read(*offsets: str, **options: str) -> object:
    topics = parse_source_topics(options)
    return read_kafka_offsets([(offset, FILE) for offset in offsets], topics)


def test_the_stream_id_is_read() -> None:
    assert parse_stream_id(b'{"id":"8f1c"}', FILE) == "8f1c"


@pytest.mark.parametrize("content", [b"", b'{"id":"8f', b"[]", b'{"id":7}', b"\xff"])
def test_a_damaged_stream_id_is_an_error(content: bytes) -> None:
    with pytest.raises(ClusterError) as error:
        parse_stream_id(content, FILE)
    assert error.value.data == {"file": FILE}


@pytest.mark.parametrize("content", [LOG_1, LOG_2])
def test_both_formats_of_the_offset_log_are_read(content: bytes) -> None:
    assert parse_offset_log(content, FILE) == SOURCES


@pytest.mark.parametrize("content", [LOG_1, LOG_2])
def test_a_file_of_a_batch_that_is_cut_short_is_an_error_or_lacks_whole_sources(
    content: bytes,
) -> None:
    for length in range(len(content)):
        try:
            sources = parse_offset_log(content[:length], FILE)
            found = read(*sources)
        except ClusterError as error:
            assert error.data == {"file": FILE}  # noqa: PT017
        else:
            assert sources[:1] == SOURCES[:1]
            assert found == {("orders", 0): 5, ("orders", 1): 0}


@pytest.mark.parametrize("content", [LOG_1, LOG_2])
def test_the_time_of_a_batch_is_read(content: bytes) -> None:
    assert parse_batch_time(content, FILE) == 1_700_000_000_123


@pytest.mark.parametrize(
    "metadata", ["", "-", "{", "[]", "{}", '{"batchTimestampMs":"1"}', '{"batchTimestampMs":true}']
)
def test_a_batch_without_its_time_is_an_error(metadata: str) -> None:
    with pytest.raises(ClusterError) as error:
        parse_batch_time(f"v1\n{metadata}\n{ORDERS}".encode(), FILE)
    assert error.value.data == {"file": FILE}


@pytest.mark.parametrize("version", ["v3", "v", "1", "v1x"])
def test_an_unknown_format_is_an_error(version: str) -> None:
    content = f"{version}\n{METADATA}\n{ORDERS}".encode()
    with pytest.raises(ConfigurationError):
        parse_offset_log(content, FILE)
    with pytest.raises(ConfigurationError):
        parse_initial_offset(b"\0" + content, FILE)


def test_the_initial_offset_of_a_kafka_source_is_read_and_those_of_others_are_not() -> None:
    assert parse_initial_offset(INITIAL, FILE) == ORDERS
    assert parse_initial_offset(INITIAL[1:], FILE) is None
    assert parse_initial_offset(b"v1\n0", FILE) is None


def test_an_initial_offset_that_is_cut_short_is_an_error() -> None:
    for length in range(len(INITIAL)):
        with pytest.raises(ClusterError):
            read(str(parse_initial_offset(INITIAL[:length], FILE)))


def test_all_kafka_sources_are_put_together() -> None:
    together = {("orders", 0): 5, ("orders", 1): 0, ("audit", 0): 7}
    assert read(ORDERS, AUDIT) == read(AUDIT, "-", "42", ORDERS) == together
    assert read(ORDERS, AUDIT, subscribe="orders,audit,new") == together


@pytest.mark.parametrize(
    "other",
    [
        "42",
        '"text"',
        "[1]",
        '{"offset":5,"timestamp":1700000000000}',
        '{"logOffset":3}',
        '{"0":{"value":4,"runTimeMs":5}}',
        '{"orders":{"0":"5"}}',
        '{"orders":{"0":-1}}',
        '{"orders":{"0":true}}',
        '{"orders":{"shardId-0":5}}',
        '{"orders":{"00":5}}',
        '{"orders":[5]}',
    ],
)
def test_an_offset_of_another_form_is_not_kafkas(other: str) -> None:
    assert read(other) is None
    assert read(other, AUDIT) == {("audit", 0): 7}


def test_a_source_that_looks_alike_is_told_by_its_topics() -> None:
    assert read(ORDERS, AUDIT, subscribe="audit") == {("audit", 0): 7}
    assert read(ORDERS, subscribe="audit") is None


def test_a_source_without_an_offset_or_a_partition_may_be_kafkas() -> None:
    assert read("-", "42") == {}
    assert read("{}", "42") == read("{}", subscribe="orders") == {}


def test_a_source_counts_with_the_topics_that_an_earlier_batch_has_read() -> None:
    both = '{"orders":{"0":5},"audit":{"0":7}}'
    assert read(both, subscribe="orders") == {("orders", 0): 5, ("audit", 0): 7}


def test_two_sources_that_read_one_partition_are_refused() -> None:
    with pytest.raises(ConfigurationError) as error:
        read(ORDERS, '{"orders":{"1":1}}')
    assert error.value.data == {"file": FILE, "topic": "orders", "partition": 1}
    with pytest.raises(ConfigurationError):
        read_kafka_offsets([(ORDERS, "sources/0/0"), (ORDERS, "sources/1/0")], None)


def test_a_source_that_is_on_two_lines_of_a_batch_counts_once() -> None:
    assert read(ORDERS, AUDIT, ORDERS) == read(ORDERS, AUDIT)
