"""Figures in a record: all of them come back, and broken ones never cost a decision."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from eos_sink.decision_log.codec import decode, encode
from eos_sink.errors import OperatorNeededError
from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepTime
from eos_sink.protocol.model import BatchId, Change, Decision, LogRecord, Prepared, RowDigest
from eos_sink.protocol.values import Position
from tests.metrics.random_figures import figures

FULL = Stats(
    dict.fromkeys(Count, 10**9),
    {step: StepTime(10**12, 10**6, 10**8) for step in Step},
    1_800_000_000_000,
    900_000,
    900_000,
)
RECORD = LogRecord(3, None, "w", prefix="eos-sink-", stats=FULL)


@given(figures)
def test_figures_are_read_as_they_were_written(stats: Stats) -> None:
    record = LogRecord(1, None, "w", prefix="p-", stats=stats)
    back = decode(encode(record), "here")
    assert (back.stats, back.prefix) == (stats, "p-")


def test_a_record_without_figures_is_the_same_to_the_protocol() -> None:
    document = json.loads(encode(RECORD))
    assert document.pop("stats")["counts"]["rows"] == 10**9
    bare = decode(json.dumps(document).encode(), "here")
    assert bare.stats == Stats()
    assert bare == RECORD
    assert hash(bare) == hash(RECORD)


def test_the_next_record_of_a_query_carries_them_on() -> None:
    fence = RECORD.next(Change(None, Stats({Count.ABORTS: 1})), "v", prefix="eos-sink-")
    assert fence.stats == FULL + Stats({Count.ABORTS: 1})
    assert RECORD.next(Change(None), "v").stats == FULL


@pytest.mark.parametrize(
    "stats",
    [
        7,
        None,
        [],
        {"counts": []},
        {"counts": {"rows": -1}},
        {"counts": {"rows": "1"}},
        {"counts": {"rows": True}},
        {"steps": {"open": [1, 2]}},
        {"steps": {"open": [1, 2, -3]}},
        {"steps": {"open": 1}},
        {"decided": 1.5},
        {"decided": None},
        {"left": "soon"},
    ],
)
def test_broken_figures_are_no_figures_and_the_rest_of_the_record_counts(stats: object) -> None:
    document = {**json.loads(encode(RECORD)), "stats": stats}
    back = decode(json.dumps(document).encode(), "here")
    assert back == RECORD
    assert back.stats == Stats()


def test_a_prefix_that_is_no_text_is_an_error() -> None:
    document = {**json.loads(encode(RECORD)), "prefix": 7}
    with pytest.raises(OperatorNeededError):
        decode(json.dumps(document).encode(), "here")


def test_figures_of_a_later_version_are_passed_over() -> None:
    document = json.loads(encode(RECORD))
    document["stats"]["counts"]["sparks"] = -1
    document["stats"]["steps"]["think"] = "long"
    document["stats"]["note"] = [1]
    assert decode(json.dumps(document).encode(), "here").stats == FULL


def test_a_decision_of_ten_thousand_tasks_grows_by_less_than_a_kilobyte() -> None:
    entries = tuple(
        Prepared(
            n, 4000 + n, 12, RowDigest(10**5, 10**7, 2**64 - n - 1), Position("orders", 7, 10**9)
        )
        for n in range(10_000)
    )
    topics = {"orders": "i"}
    decision = Decision(BatchId("s", 2), 1, 10_000, RowDigest(), entries, topics=topics)
    bare = LogRecord(1, decision, "w")
    with_figures = replace(bare, prefix="eos-sink-", stats=FULL)
    assert 0 < len(encode(with_figures)) - len(encode(bare)) < 1_000
