"""Rows of all kinds, good ones and others: as Hypothesis draws them, and many at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.protocol.world import TOPIC

T = TypeVar("T")

NAMES = (TOPIC.encode(), None, b"", b"a b", b"t\xff", b"__consumer_offsets", b"__eos_sink_log")
KEYS = (b"k", "ü".encode(), b"", None, b"a\0b", b"k\xff", b"\xed\xa0\x80")
NUMBERS = (None, 0, 1, -1)
PAIRS = st.lists(
    st.none() | st.tuples(st.sampled_from(KEYS), st.none() | st.just(b"h")), max_size=2
)
ROWS = st.lists(
    st.tuples(
        st.just(NAMES[0]) | st.sampled_from(NAMES), st.none() | PAIRS, st.sampled_from(NUMBERS)
    ),
    min_size=1,
    max_size=5,
)
Given = tuple[bytes | None, list[tuple[bytes | None, bytes | None] | None] | None, int | None]


def pick(random: Random, values: Sequence[T]) -> T:
    """Mostly the first one: a row with many columns is seldom good otherwise."""
    return values[0] if random.random() < 0.8 else random.choice(values)


def random_row(random: Random) -> Given:
    pairs = [
        pick(random, ((pick(random, KEYS), random.choice((None, b"", b"h"))), None))
        for _ in range(random.randrange(3))
    ]
    return pick(random, NAMES), pick(random, (pairs, None)), pick(random, NUMBERS)


def is_good(row: Given) -> bool:
    name, pairs, number = row
    keys = [b"\0" if each is None or each[0] is None else each[0] for each in pairs or ()]
    texts = all(key.decode(errors="replace").encode() == key and b"\0" not in key for key in keys)
    return name == TOPIC.encode() and texts and (number is None or number >= 0)


def columns(rows: list[Given], topic: str = TOPIC) -> pa.RecordBatch:
    """As Spark may make them: its strings need not be UTF-8.

    Args:
        topic: stands for TOPIC.
    """
    names, lists, numbers = zip(*rows, strict=True)
    names = tuple(topic.encode() if each == TOPIC.encode() else each for each in names)
    pairs = [pair for each in lists for pair in each or ()]
    text, content = ([pair and pair[n] for pair in pairs] for n in (0, 1))
    pair = pa.StructArray.from_arrays(
        [pa.array(text, pa.binary()).view(pa.string()), pa.array(content, pa.binary())],
        ["key", "value"],
        mask=pa.array([each is None for each in pairs], pa.bool_()),
    )
    ends = np.cumsum([0, *(len(each or ()) for each in lists)])
    starts = pa.array(ends, pa.int32(), mask=np.array([*(each is None for each in lists), False]))
    return pa.RecordBatch.from_pydict(
        {
            "value": [b"%d" % number for number in range(len(rows))],
            "topic": pa.array(names, pa.binary()).view(pa.string()),
            "headers": pa.ListArray.from_arrays(starts, pair),
            "partition": pa.array(numbers, pa.int32()),
        }
    )
