"""A query some of whose rows the broker refuses, for the dead letter topic."""

from __future__ import annotations

from collections import Counter

from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.query import Query
from integration.topics import set_config


class Sorted:
    """A query some of whose rows are refused, and the place where each belongs."""

    def __init__(self, kafka: KafkaCluster, query: Query, refused: str) -> None:
        self.query, self._servers = query, kafka.bootstrap_servers
        self.letters = f"{query.topic}-dead"
        kafka.create_topic(self.letters, partitions=2)
        own = {"kafka.topic.metadata.propagation.max.ms": "200"}
        query.change({"eos.dead.letter.topic": self.letters, **own})
        self._by_topic = refused == "topic"
        if self._by_topic:
            # Each second row of a task.
            query.to_topics([query.topic, f"{query.topic}-missing"])
        else:
            set_config(kafka.bootstrap_servers, query.topic, "max.message.bytes", "2000")

    def rows(self, batch: int, counts: list[int]) -> list[list[str]]:
        width = 0 if self._by_topic else 3_000
        return [
            [f"{batch}-{p}-{i}".ljust(width if i % 2 else 0, "x") for i in range(count)]
            for p, count in enumerate(counts)
        ]

    def _sort(self, part: list[str]) -> list[tuple[str, bool]]:
        """Whether each row of a task is refused."""
        # Each Arrow batch begins with the first topic.
        length = -(-len(part) // self.query.pieces) if self._by_topic else len(part)
        return [(row, number % length % 2 == 1) for number, row in enumerate(part)]

    def check(self) -> tuple[int, int]:
        """The decision counts the dead letters too; how many rows are in each topic."""
        decision = self.query.log().decision
        assert decision is not None
        of_batch = self.query.batches[decision.batch.batch]
        assert decision.dead_letter_rows == sum(bad for p in of_batch for _, bad in self._sort(p))
        return self.check_rows()

    def check_rows(self) -> tuple[int, int]:
        """Each row is visible once, where it belongs; how many are in each topic."""
        parts = [part for batch in self.query.batches for part in batch]
        wanted = [
            Counter(row for part in parts for row, bad in self._sort(part) if bad is refused)
            for refused in (False, True)
        ]
        found = [
            Counter(read_topic(self._servers, topic).values())
            for topic in (self.query.topic, self.letters)
        ]
        assert found == wanted
        return found[0].total(), found[1].total()
