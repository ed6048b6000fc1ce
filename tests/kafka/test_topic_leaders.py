"""Leaders of partitions: kept, forgotten, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka import topic_leaders as module
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.topic_leaders import TopicLeaders
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions

NO_LEADER = -1
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, DENIED, INVALID = 3, 5, 29, 17


def topic(name: str, *leaders: int, error: int = 0) -> Any:
    parts = [
        SimpleNamespace(partition_index=number, leader_id=leader)
        for number, leader in enumerate(leaders)
    ]
    return SimpleNamespace(name=name, error_code=error, partitions=parts)


class FakeWire:
    """Answers with the given topics in turn, the last ones again and again; None: no answer."""

    def __init__(self, *answers: list[Any] | None) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[set[str], bool]] = []
        self.down: set[int] = set()

    def run(self, step: Callable[..., Any], *given: Any) -> Any:
        return asyncio.run(step(*given))

    async def fetch_metadata(self, topics: Iterable[str], create: bool, _: Deadline) -> Any:
        self.asked.append((set(topics), create))
        answer = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        return answer and [each for each in answer if each.name in topics]

    def is_connected(self, node: int) -> bool:
        return node not in self.down

    async def connect(self, nodes: Collection[int], _: Deadline) -> bool:
        refused, self.down = self.down & set(nodes), set()
        return not refused


def find(
    leaders: TopicLeaders, wire: FakeWire, *topics: str, seconds: float = 10
) -> dict[str, dict[int, int]]:
    return dict(leaders.find(topics, cast(Wire, wire), Deadline(seconds)))  # type: ignore[arg-type]


@pytest.fixture
def leaders() -> TopicLeaders:
    return TopicLeaders(Permissions("eos-sink-", "log"), patience_s=5)


def test_leaders_are_kept_until_they_are_forgotten_or_old(
    leaders: TopicLeaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = FakeWire([topic("a", 1, 2)])
    for _ in range(2):
        assert find(leaders, wire, "a") == {"a": {0: 1, 1: 2}}
    assert len(wire.asked) == 1
    leaders.forget()
    monkeypatch.setattr(module, "_KEPT_S", 0.0)
    for _ in range(2):
        assert find(leaders, wire, "a") == {"a": {0: 1, 1: 2}}
    assert len(wire.asked) == 3


def test_topics_of_rows_may_be_created_and_the_log_not(leaders: TopicLeaders) -> None:
    wire = FakeWire([topic("a", 1), topic("log", 1)])
    find(leaders, wire, "a", "log")
    assert wire.asked == [({"log"}, False), ({"a"}, True)]


def test_a_topic_that_is_being_created_is_waited_for(leaders: TopicLeaders) -> None:
    wire = FakeWire(
        None,
        [topic("a", error=UNKNOWN_TOPIC)],
        [topic("a", error=LEADER_NOT_AVAILABLE)],
        [topic("a", 4)],
    )
    assert find(leaders, wire, "a") == {"a": {0: 4}}


def test_a_topic_that_stays_unknown_is_an_error() -> None:
    leaders = TopicLeaders(Permissions("eos-sink-", "log"), patience_s=0.1)
    with pytest.raises(ClusterError):
        find(leaders, FakeWire([topic("a", error=UNKNOWN_TOPIC)]), "a", seconds=60)


def test_a_missing_permission_names_the_topic_at_once(leaders: TopicLeaders) -> None:
    wire = FakeWire([topic("a", 1), topic("b", error=DENIED)])
    with pytest.raises(ClusterError) as error:
        find(leaders, wire, "a", "b")
    assert error.value.data == {"missing": ["Write on topic b"]}
    assert len(wire.asked) == 1


def test_brokers_that_do_not_answer_are_asked_until_the_deadline(leaders: TopicLeaders) -> None:
    with pytest.raises(OutcomeUnknownError):
        find(leaders, FakeWire(None), "a", seconds=0.1)


def test_a_leader_is_waited_for_and_connected_to(leaders: TopicLeaders) -> None:
    wire = FakeWire([topic("a", NO_LEADER, 2)], [topic("a", 3, 2)], [topic("a", 4, 2)])
    wire.down = {3}
    places = [("a", 0), ("a", 1)]
    found = leaders.connect(places, cast(Wire, wire), Deadline(10))
    assert found == {("a", 0): 4, ("a", 1): 2}
    assert len(wire.asked) == 3


def test_a_partition_that_gets_no_leader_is_given_up(leaders: TopicLeaders) -> None:
    wire = FakeWire([topic("a", NO_LEADER)])
    with pytest.raises(OutcomeUnknownError):
        leaders.connect([("a", 0)], cast(Wire, wire), Deadline(0.1))
