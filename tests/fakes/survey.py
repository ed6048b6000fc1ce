"""The fake cluster as the doctor looks at it; a test may take answers away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.cluster_facts import (
    Broker,
    MemberFacts,
    PartitionFacts,
    Quorum,
    Survey,
    TopicFacts,
    Unseen,
)
from eos_sink.kafka.deadline import Deadline
from tests.fakes.observation import FakeObservation

EVERYTHING = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})


class FakeSurvey(FakeObservation):
    """Implements `eos_sink.kafka.cluster_facts.Survey`.

    Attributes:
        asked: the questions that were put, in order, with what they were about.
        silent: questions that nobody answers.
    """

    def prepare(self, *silent: str) -> FakeSurvey:
        self.asked: list[tuple[str, str]] = []
        self.silent = frozenset(silent)
        return self

    def brokers(self, deadline: Deadline) -> Sequence[Broker]:
        self._note("brokers")
        return (Broker(1, "fake:9092"),)

    def features(self, deadline: Deadline) -> Mapping[str, int] | Unseen:
        self._note("features")
        return {}

    def quorum(self, deadline: Deadline) -> Quorum | Unseen:
        self._note("quorum")
        return Quorum(1)

    def topics(
        self, names: Sequence[str], deadline: Deadline
    ) -> Mapping[str, TopicFacts | Unseen | None]:
        self._note("topics", " ".join(names))
        return {name: self._topic(name) for name in names}

    def refusal_to_make(self, topic: str, copies: int, deadline: Deadline) -> str | Unseen:
        self._note("refusal_to_make", topic)
        return ""

    def may_write(self, transactional_id: str, deadline: Deadline) -> bool | Unseen:
        self._note("may_write", transactional_id)
        return True

    def may_join(self, group: str, deadline: Deadline) -> bool | Unseen:
        self._note("may_join", group)
        return True

    def groups(self, prefix: str, deadline: Deadline) -> Sequence[str] | Unseen:
        self._note("groups", prefix)
        return []

    def group_members(self, group: str, deadline: Deadline) -> Sequence[MemberFacts] | Unseen:
        self._note("group_members", group)
        return []

    def _topic(self, name: str) -> TopicFacts | None:
        found = self.cluster.topics.get(name)
        if found is None:
            return None
        parts = {log.partition: PartitionFacts(1, 1, 1) for log in found.partitions}
        return TopicFacts(name, parts, {}, EVERYTHING)

    def _note(self, question: str, about: str = "") -> None:
        self.asked.append((question, about))
        if question in self.silent:
            raise OutcomeUnknownError("Nobody answers.", remedy="Wait.")


if TYPE_CHECKING:

    def _implements(kafka: FakeSurvey) -> Survey:
        return kafka
