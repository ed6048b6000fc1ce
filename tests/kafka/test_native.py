"""Where librdkafka's own API cannot be used, rows go through confluent-kafka."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.connection.token_cache import Token, TokenCache
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.native import library as module
from eos_sink.kafka.native.client import NativeClient
from eos_sink.kafka.native.library import Library, UnfitError, load_library
from eos_sink.kafka.native.vectors import can_group, group_rows, place_by_key
from eos_sink.kafka.producer_events import ProducerEvents
from eos_sink.options import parse_options
from eos_sink.rows.partitioner import hash_key
from eos_sink.rows.rows import Rows
from eos_sink_lab.testing.waiting import wait_until

GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"}


@pytest.fixture(autouse=True)
def load_again() -> Iterator[None]:
    load_library.cache_clear()
    yield
    load_library.cache_clear()


def made_client(**options: str) -> type:
    given = {**GIVEN, **{name.replace("_", "."): value for name, value in options.items()}}
    producer = ConfluentKafka(parse_options(given).cluster).producer("id", 60_000)
    client = type(producer._client)
    producer.close()
    return client


def test_rows_go_straight_to_the_librdkafka_of_confluent_kafka() -> None:
    found = load_library()
    assert found is not None
    assert found.version() == confluent_kafka.libversion()[1]
    assert made_client() is NativeClient


@pytest.mark.parametrize("timeout_ms", [1_000, 900_000, 3_000_001, 14_400_000, 2_147_483_647])
@pytest.mark.parametrize("given", [{}, {"kafka.delivery.timeout.ms": "1000"}])
def test_a_producer_can_be_made_for_transactions_of_any_length(
    timeout_ms: int, given: dict[str, str]
) -> None:
    ConfluentKafka(parse_options({**GIVEN, **given}).cluster).producer("id", timeout_ms).close()


def test_the_option_turns_it_off() -> None:
    assert made_client(eos_native="false") is ConfluentClient


@pytest.mark.parametrize(
    ("what", "name", "value"),
    [
        ("is not found", "_FUNCTIONS", {"no_such_function": (None, ())}),
        ("version is", "_SINCE", 0x02FF0000),
        ("version is", "_BEFORE", 0x02000000),
    ],
)
def test_a_library_that_is_not_known_is_left_alone_with_one_line_in_the_log(
    what: str,
    name: str,
    value: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    functions = {**module._FUNCTIONS, **value} if name == "_FUNCTIONS" else value
    monkeypatch.setattr(module, name, functions)
    with pytest.raises(UnfitError):
        Library()
    with caplog.at_level(logging.WARNING):
        assert made_client() is ConfluentClient
        assert made_client() is ConfluentClient
    assert len([each for each in caplog.records if "one by one" in each.message]) == 1


def test_a_machine_with_another_order_of_bytes_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    assert made_client() is ConfluentClient


def test_rows_are_grouped_by_where_they_go_and_keep_their_order() -> None:
    rows = Rows(
        pa.array([b"0", b"1", b"2", b"3", b"4"]),
        topic=pa.array(["a", "b", "a", "b", "a"]),
        partition=pa.array([1, 0, 0, 0, 1], pa.int32()),
    )
    assert can_group(rows)
    found = {
        (group.topic, group.partition): [
            ctypes.string_at(int(each["payload"]), int(each["len"])) for each in group.messages
        ]
        for group in group_rows(rows, 0)
    }
    assert found == {("a", 0): [b"2"], ("a", 1): [b"0", b"4"], ("b", 0): [b"1", b"3"]}


KEYS = [b"a", b"b", b"c", b"", b"a"]


def test_rows_with_keys_are_placed_as_by_the_java_client() -> None:
    values = pa.array([b"v"] * len(KEYS))
    counts = {"few": 3, "many": 50}
    rows = Rows(values, pa.array(KEYS), topic=pa.array(["few", "many", "few", "few", "many"]))
    placed = place_by_key(rows, counts.__getitem__)
    expected = [hash_key(key or b"") % counts[topic] for _, key, topic, *_ in rows]
    assert placed.partition.to_pylist() == expected
    nameless = Rows(values, pa.array(KEYS), "few", partition=pa.nulls(len(KEYS), pa.int32()))
    assert place_by_key(nameless, counts.__getitem__).partition.null_count == 0


def test_rows_are_left_to_librdkafka_if_one_has_no_key_or_names_a_partition() -> None:
    values = pa.array([b"v"] * len(KEYS))
    keys = pa.array(KEYS)
    named = pa.array([None, None, 0, None, None], pa.int32())
    for rows in (
        Rows(values, topic="t"),
        Rows(values, pa.array([*KEYS[:-1], None]), "t"),
        Rows(values, keys, "t", partition=named),
    ):
        assert place_by_key(rows, lambda _: 3) is rows


def test_rows_are_left_to_librdkafka_if_the_partitions_of_a_topic_are_not_known() -> None:
    """And no further topic is asked for: the cluster may not answer."""
    rows = Rows(pa.array([b"v"] * 3), pa.array(KEYS[:3]), pa.array(["a", "b", "c"]))
    asked = []

    def count(topic: str) -> int:
        asked.append(topic)
        return 0 if topic == "b" else 3

    assert place_by_key(rows, count) is rows
    assert asked == ["a", "b"]


def test_rows_that_name_a_partition_beside_others_that_do_not_cannot_be_grouped() -> None:
    """Those without may go to the same partition, and would then change places."""
    values = pa.array([b"0", b"1"])
    assert not can_group(Rows(values, partition=pa.array([0, None], pa.int32())))
    assert can_group(Rows(values, partition=pa.nulls(2, pa.int32())))


def test_rows_with_headers_or_times_cannot_be_grouped() -> None:
    values = pa.array([b"0", b"1"])
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    assert not can_group(
        Rows(values, headers=pa.array([None, [{"key": "h", "value": None}]], pa.list_(pair)))
    )
    assert can_group(Rows(values, headers=pa.array([None, []], pa.list_(pair))))
    assert not can_group(Rows(values, timestamp=pa.array([None, 1], pa.int64())))
    assert can_group(Rows(values, timestamp=pa.nulls(2, pa.int64())))


def test_a_client_whose_last_reference_its_own_thread_drops_is_destroyed() -> None:
    """As the garbage collector may, which runs in any thread, for what an error's frames hold."""
    kept = list[NativeClient]()
    dropped = threading.Event()

    class Dropping(ProducerEvents):
        def on_error(self, error: KafkaError) -> None:
            kept.clear()
            dropped.set()

    before = len(os.listdir("/proc/self/task"))
    kept.append(NativeClient({"bootstrap.servers": "127.0.0.1:1"}, Dropping()))
    assert dropped.wait(10)
    deadline = Deadline(10)
    while len(os.listdir("/proc/self/task")) > before:
        assert not deadline.passed
        time.sleep(0.05)


class Errors(ProducerEvents):
    """Keeps all errors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def on_error(self, error: KafkaError) -> None:
        self.seen.append(error.str())


def no_token() -> Token:
    raise ClusterError("there is none", remedy="Log in.")


def refused_token() -> Token:
    return Token("canary", time.time() + 60, {"not-letters": "canary"})


@pytest.mark.parametrize("fetch", [no_token, refused_token])
def test_without_a_usable_token_librdkafka_is_not_left_waiting(
    fetch: Callable[[], Token], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    errors, tokens = Errors(), TokenCache(fetch)
    configuration = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "debug": "all",
        "oauth_cb": tokens,
    }
    client = NativeClient(configuration, errors)
    deadline = Deadline(10)
    wait_until(
        lambda: any("no usable token" in text for text in errors.seen), deadline, "it is told"
    )
    assert configuration["oauth_cb"] is tokens
    del client
    assert "canary" not in caplog.text + str(errors.seen)


def test_a_machine_that_starts_no_more_threads_is_the_only_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", later.append)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            NativeClient({"bootstrap.servers": "127.0.0.1:1"}, ProducerEvents())
    gc.collect()
    assert later == []
