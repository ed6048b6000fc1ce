"""Which open transactions of a topic hang: the leaders' answers against the coordinators'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, cast

import pytest

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka import hanging
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import silence
from eos_sink.kafka.hanging import OpenTransaction, find_hanging, find_open, probe_ids
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.values import HangingLook, Transaction, TransactionState, TransactionStatus
from eos_sink_lab.testing.cluster_admin import coordinator_partition

PLACE, OTHER = ("t", 0), ("t", 1)
OWN, FOREIGN, NEW = "own-0-0", "foreign", 9


def opened(producer_id: int) -> OpenTransaction:
    return OpenTransaction(PLACE, producer_id, 3, 100, 7)


class Cluster:
    """Partition leaders that always answer the same, and coordinators that know `ids`."""

    def __init__(self, ids: Mapping[int, str], status: TransactionStatus, now: int = 1) -> None:
        self.wire = None
        self.silent = False
        self.ids = ids
        self.state = TransactionState(Transaction(OWN, now, 3), status, 0, 1)

    def look(self) -> HangingLook:
        control = cast(KafkaPythonControl, self)
        return find_hanging(control, ["t"], (), OWN, Deadline(5))

    def name_producers(self, producers: Iterable[int], _: Deadline) -> Mapping[int, str]:
        return {each: self.ids[each] for each in producers if each in self.ids}

    def describe(self, ids: Iterable[str], _: Deadline) -> Mapping[str, TransactionState]:
        ids = list(ids)
        if self.silent and ids and OWN not in ids:
            raise OutcomeUnknownError("There was no answer.", remedy="")
        return dict.fromkeys(ids, self.state)


@pytest.fixture(autouse=True)
def leaders(monkeypatch: pytest.MonkeyPatch) -> list[OpenTransaction]:
    """What the leader of `PLACE` has open; `OTHER` has no leader."""
    found = [opened(1)]

    def find_open(*_: Any) -> tuple[set[OpenTransaction], frozenset[tuple[str, int]]]:
        return set(found), frozenset({OTHER})

    monkeypatch.setattr(hanging, "find_open", find_open)
    return found


@pytest.mark.parametrize(
    "status",
    [
        TransactionStatus.EMPTY,
        TransactionStatus.COMPLETE_COMMIT,
        TransactionStatus.COMPLETE_ABORT,
    ],
    ids=lambda status: status.name,
)
def test_what_has_ended_elsewhere_hangs(status: TransactionStatus) -> None:
    look = Cluster({1: OWN}, status).look()
    (found,) = look.hanging
    assert found.transaction == Transaction(OWN, 1, 3)
    assert (found.topic, found.partition, found.start, found.coordinator_epoch) == ("t", 0, 100, 7)
    assert look.unknown == {OTHER}


def test_what_is_open_or_belongs_to_another_producer_by_now_does_not_hang() -> None:
    assert Cluster({1: OWN}, TransactionStatus.ONGOING).look().hanging == []
    assert Cluster({1: OWN}, TransactionStatus.COMPLETE_ABORT, now=NEW).look().hanging == []


def test_another_programs_transaction_is_its_own(leaders: list[OpenTransaction]) -> None:
    leaders[:] = [opened(2)]
    look = Cluster({2: FOREIGN}, TransactionStatus.COMPLETE_ABORT).look()
    assert look.hanging == []
    assert look.unknown == {OTHER}


@pytest.mark.parametrize("silent", [True, False], ids=["no coordinator", "a coordinator"])
def test_a_producer_that_no_coordinator_names_may_be_the_querys_if_one_is_silent(
    leaders: list[OpenTransaction], silent: bool
) -> None:
    """Else it is hidden from this principal, so it is of another program."""
    leaders[:] = [opened(1), opened(2)]
    cluster = Cluster({1: OWN}, TransactionStatus.COMPLETE_ABORT)
    cluster.silent = silent
    look = cluster.look()
    assert [each.transaction.producer_id for each in look.hanging] == [1]
    assert look.unknown == {OTHER, *[PLACE] * silent}


class SilentLeaders:
    """Brokers that say who leads which partition, unless they say nothing; no leader answers."""

    silence = silence()

    def __init__(self, leaders: Mapping[tuple[str, int], int] | None) -> None:
        self.leaders = leaders

    def run(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(call())

    async def fetch_leaders(self, *_: Any) -> Mapping[tuple[str, int], int] | None:
        return self.leaders

    async def ask_each(self, requests: Mapping[int, Any], _: Deadline) -> Mapping[int, Any]:
        return dict.fromkeys(requests)


def test_a_partition_whose_leader_does_not_answer_is_unknown() -> None:
    wire = cast(Wire, SilentLeaders({PLACE: 1, OTHER: -1}))
    _, unknown = find_open(wire, ["t"], Deadline(0.1))
    assert unknown == {PLACE, OTHER}


def test_without_the_partitions_nothing_says_that_none_hangs() -> None:
    """Else rows of an aborted transaction could become visible with the next one's."""
    with pytest.raises(OutcomeUnknownError):
        find_open(cast(Wire, SilentLeaders(None)), ["t"], Deadline(0.1))


@pytest.mark.parametrize("partitions", [1, 6, 50, 200, 500])
def test_ids_of_a_query_have_all_coordinators(partitions: int) -> None:
    for number in range(40):
        ids = probe_ids(f"eos-sink-query-{number}-")
        assert {coordinator_partition(each, partitions) for each in ids} == {*range(partitions)}
