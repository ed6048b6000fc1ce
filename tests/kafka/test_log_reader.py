"""How a partition of the decision log is read when its leader changes. Kafka is played."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka import log_reader
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.fetch import EARLIEST, LATEST, Fetched
from eos_sink.kafka.log_reader import PartitionReader
from eos_sink.kafka.wire import Leader
from eos_sink.kafka_config.acls import Permissions

LOG = "log"
FIRST, SECOND = Leader(1, 4), Leader(2, 5)


class Played:
    """A partition, as log_reader sees it.

    Attributes:
        asked: all requests, in their order.
        refusals: answers of the next requests, by the kind of request.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leader, self.start, self.stable, self.end = FIRST, 0, 10, 10
        self.asked: list[str] = []
        self.refusals: dict[str, list[KafkaError]] = {}
        monkeypatch.setattr(log_reader, "fetch", self._fetch)
        monkeypatch.setattr(log_reader, "find_offset", self._find_offset)

    def reader(self, start: int = 0, take: Callable[[Any], None] = lambda _: None) -> Any:
        wire = SimpleNamespace(run=self._run, find_newest_leader=self._find_newest)
        config = SimpleNamespace(log_topic=LOG)
        clients: Any = SimpleNamespace(
            control=lambda: SimpleNamespace(wire=wire),
            config=config,
            permissions=Permissions("eos-sink-", LOG),
        )
        return PartitionReader(clients, 3, take, start=start)

    @staticmethod
    def _run(step: Callable[..., Any], *given: Any) -> Any:
        running = step(*given)
        try:
            running.send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError

    async def _find_newest(self, *_: Any) -> None:
        self.asked.append("who leads")

    def _refused(self, kind: str) -> KafkaError | None:
        self.asked.append(kind)
        waiting = self.refusals.get(kind, [])
        return waiting.pop(0) if waiting else None

    async def _find_offset(self, _: Any, place: Any, which: int, deadline: Deadline) -> Any:
        assert place == (LOG, 3)
        kind = {EARLIEST: "start", LATEST: "end"}[which]
        refused = self._refused(kind)
        return refused or (self.leader, self.start if which == EARLIEST else self.end)

    async def _fetch(self, _: Any, __: Any, at: int, deadline: Deadline, **_kind: Any) -> Any:
        refused = self._refused("fetch")
        if refused:
            return refused
        if not self.start <= at <= self.end:
            return KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
        return Fetched(self.leader, self.stable, self.end, max(at, self.stable))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(monkeypatch)


def test_a_reader_asks_one_question_once_it_trusts_the_leader(played: Played) -> None:
    reader = played.reader()
    assert reader.read(Deadline(5)).end == 10
    played.asked.clear()
    played.end = played.stable = 12
    assert reader.read(Deadline(5)).end == 12
    assert reader.reached == 12
    assert played.asked == ["fetch"]


def test_a_new_leader_is_asked_for_the_end_before_its_answer_counts(played: Played) -> None:
    """It refuses while it does not know it; a Fetch response would contain one that is too low."""
    reader = played.reader()
    reader.read(Deadline(5))
    played.asked.clear()
    played.leader = SECOND
    played.refusals["end"] = [KafkaError(KafkaError.OFFSET_NOT_AVAILABLE)]
    reader.read(Deadline(5))
    assert played.asked == ["fetch", "end", "end", "fetch"]


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART]
)
def test_an_error_that_passes_is_waited_for(played: Played, code: int) -> None:
    played.refusals["fetch"] = [KafkaError(code)] * 2
    assert played.reader().read(Deadline(5)).end == 10


def test_a_missing_permission_is_named(played: Played) -> None:
    played.refusals["end"] = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(ClusterError) as refused:
        played.reader().read(Deadline(5))
    assert refused.value.data["missing"] == [str(Permissions("eos-sink-", LOG).log_read)]


def test_a_log_that_is_gone_is_said_to_be(played: Played) -> None:
    missing = [KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)] * 1_000
    played.refusals["end"] = missing
    with pytest.raises(ClusterError, match="gone"):
        played.reader().read(Deadline(0.1))


def test_a_start_that_was_deleted_is_passed_over(played: Played) -> None:
    played.start, played.stable = 6, 8
    reader = played.reader(start=2)
    assert reader.read(Deadline(5)).stable == 8
    assert reader.reached == 8


def test_a_reader_behind_the_end_stays_there(played: Played) -> None:
    """The log was created again, or lost records; the caller decides what to do."""
    reader = played.reader(start=20)
    assert reader.read(Deadline(5)).end == 10
    assert reader.reached == 20


def test_an_open_transaction_is_waited_for_until_the_deadline(played: Played) -> None:
    played.stable = 7
    with pytest.raises(OutcomeUnknownError):
        played.reader().read_to(10, Deadline(0.1))
    played.stable = 10
    played.reader().read_to(10, Deadline(5))


def test_all_brokers_are_asked_who_leads_while_nothing_comes(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "_ANSWERS_S", 0.02)
    played.stable = 7
    with pytest.raises(OutcomeUnknownError):
        played.reader().read_to(10, Deadline(0.2))
    assert "who leads" in played.asked
