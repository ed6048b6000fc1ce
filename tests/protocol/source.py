"""A query that reads one topic of the in-memory Kafka, and its checkpoint's files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eos_sink.kafka.deadline import Deadline
from eos_sink.options import SinkOptions
from eos_sink.protocol.model import SourcePosition, TaskReport
from eos_sink.protocol.values import Offsets
from tests.fakes.kafka import FakeKafka
from tests.protocol.driver import Driver
from tests.protocol.world import World, log, options

GROUP = "readers"
INPUT = "in"


def source_options(**extra: str) -> SinkOptions:
    """Of a query that commits the offsets of its source."""
    given = {"eos.source.group.id": GROUP, "checkpointLocation": "/checkpoint", **extra}
    return options(**given)


@dataclass
class Files:
    """Implements `eos_sink.driver.source.CheckpointFiles` in memory, as Spark writes them.

    Attributes:
        id: the query's, in `metadata`; None: there is none.
        began: the offsets of the first batch's start.
        ends: of each batch in the offset log.
        commits: of the batches in the commit log.
        state: whether the query has state.
        at_ms: when the latest batch was constructed.
    """

    id: str | None = "stream-1"
    began: dict[int, int] = field(default_factory=dict)
    ends: dict[int, dict[int, int]] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    state: bool = False
    at_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    def stream_id(self) -> str | None:
        return self.id

    def latest_batch(self) -> int | None:
        return max(self.ends, default=None)

    def latest_commit(self) -> int | None:
        return max(self.commits, default=None)

    def constructed_ms(self, batch: int) -> int | None:
        return self.at_ms if batch in self.ends else None

    def end_offsets(self, batch: int) -> Offsets | None:
        return _of_input(self.ends.get(batch))

    def initial_offsets(self) -> Offsets | None:
        return _of_input(self.began)

    def has_state(self) -> bool:
        return self.state


class Reader:
    """A query that copies the rows of its input, one batch after the other.

    Args:
        world: where it runs; it has the input topic.
        files: its checkpoint.
    """

    def __init__(self, world: World, files: Files) -> None:
        self.world, self.files = world, files
        self.driver = self.restart()

    def restart(self) -> Driver:
        """A new run, in new processes."""
        self.driver = Driver(self.world, self.files.id or "", files=self.files)
        return self.driver

    @property
    def number(self) -> int:
        """The batch that Spark runs next."""
        return max(self.files.commits, default=-1) + 1

    def begin(self, size: int = 1, *, until: Mapping[int, int] | None = None) -> int:
        """Let Spark construct its next batch, unless it is constructed; return its number.

        Args:
            size: rows of each partition.
            until: the offsets at which it ends instead.
        """
        number = self.number
        if number not in self.files.ends:
            before = self.files.ends[number - 1] if number else self.files.began
            logs = self.world.cluster.topics[INPUT].partitions
            ends = {each.partition: each.end for each in logs}
            asked = {p: before.get(p, 0) + size for p in ends} if until is None else until
            self.files.ends[number] = {p: min(ends[p], asked[p]) for p in ends}
        return number

    def rows(self, number: int) -> list[list[bytes]]:
        """The rows that the batch reads, by partition."""
        before = self.files.ends[number - 1] if number else self.files.began
        logs = self.world.cluster.topics[INPUT].partitions
        return [
            [
                entry.value or b""
                for entry in logs[p].all_from(before.get(p, 0))
                if entry.offset < end and not entry.marker
            ]
            for p, end in self.files.ends[number].items()
        ]

    def write(self, number: int) -> list[TaskReport]:
        return self.driver.write(self.driver.planner.plan(), number, *self.rows(number))

    def commit(self, number: int, reports: Sequence[TaskReport]) -> None:
        self.driver.committer.commit(reports)
        self.files.commits.add(number)

    def run(self, size: int = 1) -> None:
        """One batch."""
        number = self.begin(size)
        self.commit(number, self.write(number))

    def new_checkpoint(self, began: Mapping[int, int], stream: str = "stream-2") -> None:
        """The directory was deleted; the query starts again at these offsets."""
        self.files = Files(stream, dict(began))
        self.restart()


def reading_world(rows: int = 8, **extra: str) -> World:
    """A world whose input topic has two partitions with some rows each."""
    world = World([], options=source_options(**extra))
    topic = world.cluster.create_topic(INPUT, 2)
    producer = FakeKafka(world.cluster).producer("input", 60_000)
    producer.init(Deadline(30))
    producer.begin()
    for partition in range(len(topic.partitions)):
        for number in range(rows):
            producer.produce(INPUT, b"%d-%d" % (partition, number), partition=partition)
    producer.commit(Deadline(30))
    return world


def position(world: World) -> SourcePosition:
    source = log(world)[-1].source
    assert source is not None
    return source


def committed(world: World) -> dict[int, int]:
    """The offsets of the group, by partition of the input."""
    return {place[1]: at for place, at in world.cluster.groups.committed[GROUP].items()}


def _of_input(offsets: Mapping[int, int] | None) -> Offsets | None:
    return None if offsets is None else {(INPUT, p): at for p, at in offsets.items()}
