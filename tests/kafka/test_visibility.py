"""What one Fetch response says about the record at its first offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka import read_back as module
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.fetch import Fetched
from eos_sink.kafka.wire import Leader
from eos_sink.protocol.values import Position, Transaction, Visibility
from tests.kafka.record_batches import ABORT, batch_bytes, batches, marker

AT = Position("t", 0, 5)
OWN = Transaction("id", 7, 0)


def answer(*data: bytearray, stable: int = 10, aborted: Iterable[tuple[int, int]] = ()) -> Fetched:
    rows = [SimpleNamespace(producer_id=p, first_offset=offset) for p, offset in aborted]
    return Fetched(Leader(1, 0), stable, stable, stable, batches(*data), rows)


def look(
    *answers: Fetched | KafkaError, seconds: float = 0.1, witness: Position = AT
) -> Visibility | None:
    """What is found with these answers, of which the last one comes again and again."""
    left = list(answers)

    def take() -> Fetched | KafkaError:
        return left.pop(0) if len(left) > 1 else left[0]

    return look_at([witness], take, Deadline(seconds)).get(witness)


def look_at(
    witnesses: list[Position], take: Callable[[], Fetched | KafkaError], deadline: Deadline
) -> Mapping[Position, Visibility]:
    wire = SimpleNamespace(run=lambda *_: {("t", 0): take()})
    clients: Any = SimpleNamespace(control=lambda: SimpleNamespace(wire=wire))
    return module.ReadBack(clients).visibility(dict.fromkeys(witnesses, OWN), deadline)


def test_a_committed_record_is_there() -> None:
    assert look(answer(batch_bytes(4, b"a", b"b", producer=7))) is Visibility.COMMITTED


def test_a_record_of_an_aborted_transaction_is_told_by_the_list() -> None:
    rows = batch_bytes(5, b"a", producer=7), marker(6, 7, ABORT)
    assert look(answer(*rows, aborted=[(7, 5)])) is Visibility.ABORTED


def test_a_later_transaction_of_the_same_producer_says_nothing_of_it() -> None:
    rows = batch_bytes(5, b"a", producer=7), batch_bytes(7, b"b", producer=7)
    assert look(answer(*rows, aborted=[(7, 7)])) is Visibility.COMMITTED


def test_a_record_that_is_gone_proves_nothing() -> None:
    for producer in (-1, 7):
        later = batch_bytes(7, b"later", producer=producer)
        assert look(answer(later)) is Visibility.UNREADABLE
    assert look(answer(marker(5, 7, ABORT), aborted=[(7, 3)])) is Visibility.UNREADABLE
    assert look(KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)) is Visibility.UNREADABLE


def test_a_record_of_another_producer_or_epoch_is_none_of_the_transaction() -> None:
    """The topic was deleted and made again."""
    assert look(answer(batch_bytes(5, b"a", producer=8))) is Visibility.UNREADABLE
    assert look(answer(batch_bytes(5, b"a", producer=7, epoch=1))) is Visibility.UNREADABLE


def test_a_record_behind_an_open_transaction_is_waited_for() -> None:
    rows = batch_bytes(5, b"a", producer=7)
    assert look(answer(stable=5)) is None
    assert look(answer(stable=5), answer(rows), seconds=5) is Visibility.COMMITTED


@pytest.mark.parametrize(
    "first", [answer(), KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)], ids=["empty", "unknown"]
)
def test_a_broker_may_have_to_learn_before_a_record_is_called_gone(
    first: Fetched | KafkaError, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(first, answer(batch_bytes(5, b"a", producer=7)), seconds=5) is Visibility.COMMITTED
    monkeypatch.setattr(module, "_LEARNS_S", 0.0)
    assert look(first, seconds=5) is Visibility.UNREADABLE


EMPTY, UNKNOWN = answer(), KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
OPEN, MOVED = answer(stable=5), KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
LATER = Position("t", 0, 9)


def look_slowly(
    monkeypatch: pytest.MonkeyPatch, *answers: Fetched | KafkaError, seconds: float = 60
) -> tuple[Visibility | None, Visibility | None]:
    """What is found of two witnesses of one partition. Each answer takes two seconds, and five are
    the time to learn."""
    now, one_by_one = [0.0], iter(answers)

    def take() -> Fetched | KafkaError:
        now[0] += 2
        return next(one_by_one)

    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(module, "Deadline", lambda given: Deadline(given, lambda: now[0]))
    seen = look_at([AT, LATER], take, Deadline(seconds, lambda: now[0]))
    assert next(one_by_one, None) is None
    return seen.get(AT), seen.get(LATER)


@pytest.mark.parametrize(
    "before",
    [
        [OPEN] * 5 + [EMPTY],
        [EMPTY, EMPTY, OPEN, EMPTY, EMPTY],
        [EMPTY, EMPTY, MOVED, EMPTY, EMPTY],
        [UNKNOWN, UNKNOWN, MOVED, UNKNOWN, UNKNOWN],
        [UNKNOWN, UNKNOWN, EMPTY, EMPTY, EMPTY],
    ],
    ids=["after a wait", "open", "moved", "unknown again", "known, then empty"],
)
def test_the_time_to_learn_begins_with_the_first_answer_that_says_nothing(
    before: list[Fetched | KafkaError], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = answer(batch_bytes(5, b"a", producer=7)), answer(batch_bytes(9, b"b", producer=7))
    assert look_slowly(monkeypatch, *before, *there) == (Visibility.COMMITTED,) * 2


def test_each_witness_has_its_time_to_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look_slowly(monkeypatch, *[EMPTY] * 4, EMPTY, answer(batch_bytes(9, b"b", producer=7)))
    assert found == (Visibility.UNREADABLE, Visibility.COMMITTED)


def test_a_partition_that_is_unknown_is_so_for_all_its_witnesses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert look_slowly(monkeypatch, *[UNKNOWN] * 5) == (Visibility.UNREADABLE,) * 2


def test_too_little_time_to_learn_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_slowly(monkeypatch, EMPTY, EMPTY, seconds=4) == (None, None)


def test_an_answer_that_may_change_is_asked_for_again() -> None:
    moved = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
    assert look(moved, answer(batch_bytes(5, b"a", producer=7)), seconds=5) is Visibility.COMMITTED
    assert look(moved) is None


def test_a_missing_permission_is_named() -> None:
    with pytest.raises(ClusterError) as caught:
        look(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert caught.value.data["missing"]


def test_a_login_that_is_refused_is_not_asked_again() -> None:
    with pytest.raises(ClusterError):
        look(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED))


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("stable", [4, 5])
def test_nothing_is_said_before_the_transactions_there_have_ended(
    stable: int, learned: bool
) -> None:
    assert module._judge(AT, OWN, answer(stable=stable), learned=learned) is None
