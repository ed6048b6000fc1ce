"""The public C API (rdkafka.h) of the librdkafka that confluent-kafka has loaded."""

from __future__ import annotations

import ctypes
import sys
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from functools import cache
from typing import Any

import numpy as np

from eos_sink.kafka.error_codes import LOGGER

# The versions whose source was read and that are tested: see docs/design.md.
_SINCE, _BEFORE = 0x02100000, 0x03000000

PRODUCER = 0
UNASSIGNED = -1
"""RD_KAFKA_PARTITION_UA: the partitioner chooses."""
COPY = 0x2
"""RD_KAFKA_MSG_F_COPY: librdkafka copies the record's data before the call returns."""
PURGE = 0x1 | 0x2 | 0x4
"""RD_KAFKA_PURGE_F_QUEUE, _INFLIGHT and _NON_BLOCKING."""
EVENT_DELIVERY, EVENT_LOG, EVENT_ERROR, EVENT_STATISTICS = 0x1, 0x4, 0x8, 0x40
EVENTS = EVENT_DELIVERY | EVENT_LOG | EVENT_ERROR | EVENT_STATISTICS
EVENT_TOKEN = 0x100
"""RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH: librdkafka needs a token from `set_token`."""
ERROR_SIZE = 512


class Message(Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


class TopicMetadata(Structure):
    """rd_kafka_metadata_topic_t."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition_cnt", c_int),
        ("partitions", c_void_p),
        ("err", c_int),
    )


class Metadata(Structure):
    """rd_kafka_metadata_t, its first fields."""

    _fields_ = (
        ("broker_cnt", c_int),
        ("brokers", c_void_p),
        ("topic_cnt", c_int),
        ("topics", POINTER(TopicMetadata)),
    )


MESSAGE = np.dtype(Message)
"""rd_kafka_message_t for numpy."""

PART = np.dtype(
    {
        "names": ["kind", "pointer", "number", "second", "size", "third"],
        "formats": [np.int32, np.uintp, np.int64, np.uintp, np.uintp, np.int64],
        "offsets": [0, 8, 8, 16, 16, 24],
        "itemsize": 72,
    }
)
"""rd_kafka_vu_t, a part of a record. `pointer` and `number` are at the same offset, and so are
`second` and `size`. A little-endian machine may write a short number as a long one."""

PART_TOPIC, PART_PARTITION, PART_VALUE, PART_KEY = 2, 3, 4, 5
PART_PRIVATE, PART_FLAGS, PART_TIMESTAMP, PART_HEADER = 6, 7, 8, 9

_Text, _Size, _Pointer = c_char_p, c_size_t, c_void_p
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "abort_transaction": (_Pointer, (_Pointer, c_int)),
    "begin_transaction": (_Pointer, (_Pointer,)),
    "commit_transaction": (_Pointer, (_Pointer, c_int)),
    "conf_destroy": (None, (_Pointer,)),
    "conf_new": (_Pointer, ()),
    "conf_set": (c_int, (_Pointer, _Text, _Text, _Pointer, _Size)),
    "conf_set_events": (None, (_Pointer, c_int)),
    "consumer_group_metadata_destroy": (None, (_Pointer,)),
    "consumer_group_metadata_read": (_Pointer, (POINTER(c_void_p), _Text, _Size)),
    "destroy": (None, (_Pointer,)),
    "error_code": (c_int, (_Pointer,)),
    "error_destroy": (None, (_Pointer,)),
    "error_is_fatal": (c_int, (_Pointer,)),
    "error_is_retriable": (c_int, (_Pointer,)),
    "error_string": (_Text, (_Pointer,)),
    "error_txn_requires_abort": (c_int, (_Pointer,)),
    "event_destroy": (None, (_Pointer,)),
    "event_error": (c_int, (_Pointer,)),
    "event_error_string": (_Text, (_Pointer,)),
    "event_log": (c_int, (_Pointer, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int))),
    "event_message_next": (POINTER(Message), (_Pointer,)),
    "event_stats": (_Text, (_Pointer,)),
    "event_type": (c_int, (_Pointer,)),
    "fatal_error": (c_int, (_Pointer, _Pointer, _Size)),
    "flush": (c_int, (_Pointer, c_int)),
    "init_transactions": (_Pointer, (_Pointer, c_int)),
    "metadata": (c_int, (_Pointer, c_int, _Pointer, POINTER(POINTER(Metadata)), c_int)),
    "metadata_destroy": (None, (POINTER(Metadata),)),
    "name": (_Text, (_Pointer,)),
    "oauthbearer_set_token": (
        c_int,
        (_Pointer, _Text, c_int64, _Text, POINTER(c_char_p), _Size, _Pointer, _Size),
    ),
    "oauthbearer_set_token_failure": (c_int, (_Pointer, _Text)),
    "new": (_Pointer, (c_int, _Pointer, _Pointer, _Size)),
    "outq_len": (c_int, (_Pointer,)),
    "produce_batch": (c_int, (_Pointer, c_int32, c_int, _Pointer, c_int)),
    "produceva": (_Pointer, (_Pointer, _Pointer, _Size)),
    "purge": (c_int, (_Pointer, c_int)),
    "queue_destroy": (None, (_Pointer,)),
    "queue_get_main": (_Pointer, (_Pointer,)),
    "queue_poll": (_Pointer, (_Pointer, c_int)),
    "queue_yield": (None, (_Pointer,)),
    "send_offsets_to_transaction": (_Pointer, (_Pointer, _Pointer, _Pointer, c_int)),
    "set_log_queue": (c_int, (_Pointer, _Pointer)),
    "topic_destroy": (None, (_Pointer,)),
    "topic_name": (_Text, (_Pointer,)),
    "topic_new": (_Pointer, (_Pointer, _Text, _Pointer)),
    "topic_partition_list_add": (_Pointer, (_Pointer, _Text, c_int32)),
    "topic_partition_list_destroy": (None, (_Pointer,)),
    "topic_partition_list_new": (_Pointer, (c_int,)),
    "topic_partition_list_set_offset": (c_int, (_Pointer, _Text, c_int32, c_int64)),
    "version": (c_uint32, ()),
}


class UnfitError(Exception):
    """librdkafka's API cannot be used; says why."""


class Library:
    """The functions by their names without `rd_kafka_`; they release the GIL."""

    def __init__(self) -> None:
        """Raises:
        UnfitError: librdkafka cannot be called, or its version is not supported.
        """
        if sys.byteorder != "little" or ctypes.sizeof(c_void_p) != 8:
            raise UnfitError("this machine is not a little-endian one with 64 bits")
        try:
            from confluent_kafka import cimpl

            # Its symbols include those of the librdkafka that it is linked with.
            loaded = ctypes.CDLL(cimpl.__file__)
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(loaded, f"rd_kafka_{name}")
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (ImportError, OSError, AttributeError) as error:
            raise UnfitError(f"librdkafka's functions are not found ({error})") from error
        version = int(self.version())
        if not _SINCE <= version < _BEFORE:
            raise UnfitError(f"librdkafka's version is {version:08x}")

    def __getattr__(self, name: str) -> Any:
        """For the type checker: the functions of the table."""
        raise AttributeError(name)


@cache
def load_library() -> Library | None:
    """Return the library, or None, after a warning, if rows have to go through confluent-kafka."""
    try:
        return Library()
    except UnfitError as unfit:
        LOGGER.warning("Rows go to Kafka one by one, which is slower: %s.", unfit)
        return None
