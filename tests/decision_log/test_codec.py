"""The format of a decision: what is written is read, and nothing else is guessed at."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.decision_log.codec import FORMAT, decode, encode
from eos_sink.errors import OperatorNeededError
from eos_sink.identity import Origin
from eos_sink.protocol.model import (
    BatchId,
    DeadLetters,
    Decision,
    Inlined,
    LogRecord,
    Override,
    Prepared,
    Route,
    RowDigest,
    Run,
)
from eos_sink.protocol.rules import MAX_STREAMS
from eos_sink.protocol.values import Position, ProducerIdentity

numbers = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"))
digests = st.builds(RowDigest, numbers, numbers, st.integers(0, 2**64 - 1))
producers = st.builds(ProducerIdentity, numbers, numbers)
topics = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
prepared = st.builds(
    Prepared, numbers, numbers, numbers, digests, st.builds(Position, topics, numbers, numbers)
)
partitions = st.frozensets(numbers, max_size=3)


def with_topics(decision: Decision, ids: dict[str, str]) -> Decision:
    of_witnesses = {entry.witness.topic: "" for entry in decision.prepared}
    return replace(decision, topics={**of_witnesses, **ids})


without_topics = st.builds(
    Decision,
    st.builds(BatchId, st.text(st.characters(codec="utf-8")), numbers),
    st.sampled_from([0, 1]),
    numbers,
    digests,
    st.lists(prepared, max_size=5).map(tuple),
    st.builds(Override, partitions, partitions, st.booleans()),
    st.text(st.characters(codec="utf-8")),
)
plain_decisions = st.builds(with_topics, without_topics, st.dictionaries(topics, texts))
with_dead_letters = st.builds(
    replace,
    plain_decisions,
    dead_letters=st.lists(st.builds(DeadLetters, numbers, numbers), min_size=1).map(tuple),
)
decisions = plain_decisions | st.builds(
    replace,
    plain_decisions | with_dead_letters,
    inlined=st.lists(st.builds(Inlined, numbers, digests, producers), min_size=1).map(tuple),
    route=st.builds(Route, st.none() | topics, st.none() | topics, texts),
    digest=numbers,
)
names = st.none() | st.text(st.characters(codec="utf-8"), min_size=1)
origins = st.builds(Origin, names, names, names, st.booleans())
runs = st.builds(Run, texts, numbers, numbers, origins, texts, texts, texts, texts)
retired = st.builds(BatchId, st.text(st.characters(codec="utf-8")), numbers)
records = st.builds(
    LogRecord,
    numbers,
    st.none() | decisions,
    st.text(st.characters(codec="utf-8")),
    st.lists(retired, max_size=3).map(tuple),
    st.none() | runs,
    given_up=numbers,
    producer=st.none() | producers,
    dropped=st.none() | retired,
)

EXAMPLE = LogRecord(
    3,
    Decision(
        BatchId("s", 2),
        1,
        2,
        RowDigest(1, 10, 2**64 - 1),
        (Prepared(0, 4000, 1, RowDigest(1, 10, 2**64 - 1), Position("t", 5, 6)),),
        topics={"t": "i"},
    ),
    "w",
)


@given(records)
def test_a_record_is_read_as_it_was_written(record: LogRecord) -> None:
    assert decode(encode(record), "here") == record


def test_the_format_does_not_change_without_its_number() -> None:
    written = (
        b'{"format":4,"seq":3,"decision":{"batch":["s",2],"slot":1,"partitions":2,'
        b'"total":[1,10,18446744073709551615],'
        b'"prepared":[[0,4000,1,1,10,18446744073709551615,0,5,6]],"topics":{"t":"i"},"digest":1},'
        b'"writer":"w"}'
    )
    assert decode(written, "here") == EXAMPLE
    assert encode(EXAMPLE) == written


def test_a_decision_that_does_not_tell_has_the_digest_of_before_it_was_told() -> None:
    """So it does when a later version writes it again."""
    older = decode(encode(EXAMPLE).replace(b',"digest":1', b""), "here")
    assert older.decision is not None
    assert older.decision.digest == 0
    assert decode(encode(older), "here") == older


def test_a_thousand_streams_fit_into_a_record_that_has_room_for_the_decision() -> None:
    every = tuple(BatchId(f"foreach:{uuid.uuid4()}", 10**6) for _ in range(MAX_STREAMS))
    assert len(encode(replace(EXAMPLE, retired=every))) < 131_072


def test_ten_thousand_transactions_fit_into_a_megabyte() -> None:
    entries = tuple(
        Prepared(
            n, 4000 + n, 12, RowDigest(10**5, 10**7, 2**64 - n - 1), Position("orders", 7, 10**9)
        )
        for n in range(10_000)
    )
    topics = {"orders": "i"}
    decision = Decision(BatchId("s", 2), 1, 10_000, RowDigest(), entries, topics=topics)
    assert len(encode(LogRecord(1, decision, "w"))) < 1_048_576


@given(st.binary(max_size=60))
def test_bytes_of_no_record_are_an_error_that_names_the_place(value: bytes) -> None:
    with pytest.raises(OperatorNeededError, match=r"log\[3\]@17"):
        decode(value, "log[3]@17")


def broken(**changes: object) -> bytes:
    document = json.loads(encode(EXAMPLE))
    for path, value in changes.items():
        target, *keys = document, *path.split("__")
        for key in keys[:-1]:
            target = target[int(key) if key.isdigit() else key]
        target[int(keys[-1]) if keys[-1].isdigit() else keys[-1]] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"format": FORMAT - 1},
        {"format": FORMAT + 1},
        {"format": str(FORMAT)},
        {"seq": -1},
        {"seq": 1.0},
        {"seq": True},
        {"seq": "3"},
        {"seq": None},
        {"decision": []},
        {"decision": None},
        {"decision__slot": None},
        {"decision__batch": "2"},
        {"decision__total": [1, 2]},
        {"decision__prepared": [[1, 2, 3]]},
        {"decision__prepared__0__6": 1},
        {"decision__prepared__0__8": -1},
        {"decision__topics": []},
        {"retired": [["s"]]},
        {"retired": [[1, 1]]},
        {"retired": 7},
        {"dropped": ["s"]},
        {"dropped": None},
        {"run": 7},
        {"run": []},
        {"run": {"host": "h", "pid": 1}},
        {"run": {"host": "h", "pid": "1", "started_ms": 1}},
        {"run": {"host": "h", "pid": 1, "started_ms": 1, "origin": {"name": 7}}},
        {"decision__topics": {"t": 1}},
        {"decision__route": {"topic": 1}},
        {"decision__inlined": [[1, [1, 2, 3], None]]},
        {"decision__override": {"accepted": "false"}},
        {"decision__override": {"visible": [-1]}},
        {"decision__override": {"visible": 1}},
    ],
)
def test_a_record_with_one_wrong_part_is_an_error(changes: dict[str, object]) -> None:
    with pytest.raises(OperatorNeededError):
        decode(broken(**changes), "here")


def test_what_a_later_release_may_add_does_not_hurt() -> None:
    assert decode(broken(note="x"), "here") == EXAMPLE


def test_what_a_record_does_not_have_takes_no_room() -> None:
    assert EXAMPLE.decision is not None
    ruled = replace(EXAMPLE.decision, override=Override(frozenset({0})))
    later = replace(EXAMPLE, run=Run("h", 1, 2), decision=ruled)
    document = json.loads(encode(later))
    assert document.pop("run") == {"host": "h", "pid": 1, "started_ms": 2}
    assert document["decision"].pop("override") == {"visible": [0]}
    assert json.dumps(document, separators=(",", ":")).encode() == encode(EXAMPLE)
