"""A query that reads one topic of the in-memory Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.start_notes import write_note
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import SourcePosition, StartNote, TaskReport
from eos_sink.sink_options import SinkOptions
from tests.fakes.kafka import FakeKafka
from tests.protocol.checkpoint import INPUT, Checkpoint, DataLoss, Ends
from tests.protocol.driver import Driver
from tests.protocol.world import Batch, World, log, options

GROUP = "readers"


def source_options(**extra: str) -> SinkOptions:
    """Of a query that commits the offsets of its source."""
    given = {"eos.source.group.id": GROUP, "checkpointLocation": "/checkpoint", **extra}
    return options(**given)


@dataclass
class ReadingWorld(World):
    """A world whose input is a topic of two partitions. The query drops rows that begin with a
    minus, and copies the others.

    Attributes:
        accepted: rows that an operator has given up, or lets be repeated.
        made: how many batches Spark has constructed.
        of_others: rows that other programs have written.
        former: rows of the input before it was made again, which are visible or lost.
        accept: adds to `accepted` what has become so while a batch was written.
    """

    accepted: set[bytes] = field(default_factory=set)
    made: int = 0
    of_others: list[bytes] = field(default_factory=list)
    former: set[bytes] = field(default_factory=set)
    accept: Callable[[], None] = lambda: None

    def next_ends(self, before: Ends, end: int | None) -> Ends:
        # One to three rows of each partition, and others if the batch is made again.
        self.made += 1
        return self.limit({p: before.get(p, 0) + 1 + (self.made + p) % 3 for p in (0, 1)})

    def check_input(self, before: Ends, ends: Ends) -> None:
        there = self.limit(ends)
        if there != ends or any(at > there.get(p, -1) for p, at in before.items()):
            raise DataLoss

    def read(self, before: Ends, ends: Ends) -> Batch:
        return [self._copied(p, before.get(p, 0), end) for p, end in ends.items()]

    def rows(self, ends: Ends | None = None) -> list[bytes]:
        ends = self.limit({0: 1_000, 1: 1_000}) if ends is None else ends
        read = [*self.of_others, *(row for part in self.read({}, ends) for row in part)]
        read += self.former & {*self.visible()}
        return sorted(row for row in read if row not in self.accepted | self.ignored)

    def judged(self, expected: list[bytes]) -> list[bytes]:
        self.accept()
        if any(decision.override.accepted for decision in self.judge.decisions()[-1:]):
            # An operator lets what is there stand, whatever Spark reads for it by now.
            return []
        return [row for row in expected if row not in self.accepted]

    def limit(self, asked: Mapping[int, int]) -> Ends:
        """These offsets, or where the partitions end."""
        logs = self.cluster.topics[INPUT].partitions
        there = {each.partition: each.end for each in logs}
        return {p: min(end, asked[p]) for p, end in there.items() if p in asked}

    def make_input_again(self) -> None:
        """With fewer partitions, or as many, and other rows. Groups lose their offsets there."""
        self.former |= {
            row for part in self.read({}, self.limit({0: 1_000, 1: 1_000})) for row in part
        }
        self.cluster.topics.pop(INPUT)
        for group, offsets in self.cluster.groups.committed.items():
            there = {place: at for place, at in offsets.items() if place[0] != INPUT}
            self.cluster.groups.committed[group] = there
        self.cluster.create_topic(INPUT, 1 + self.made % 2)
        known = len(self.former)
        produce_topic(self, INPUT, 20, lambda p, n: b"%d-%d behind %d" % (p, n, known))

    def _copied(self, partition: int, start: int, end: int) -> list[bytes]:
        entries = self.cluster.topics[INPUT].partitions[partition].all_from(start)
        values = [each.value or b"" for each in entries if each.offset < end and not each.marker]
        return [value for value in values if not value.startswith(b"-")]


class Reader:
    """A query that copies the rows of its input, one batch after the other.

    Args:
        world: where it runs; it has the input topic.
        files: its checkpoint.
    """

    def __init__(self, world: ReadingWorld, files: Checkpoint) -> None:
        self.world, self.files = world, files
        self.driver = self.restart()

    def restart(self) -> Driver:
        """A new run, in new processes."""
        self.driver = Driver(self.world, self.files.stream or "", files=self.files)
        return self.driver

    @property
    def number(self) -> int:
        """The batch that Spark runs next."""
        return self.files.number

    def begin(self, size: int = 1, *, until: Mapping[int, int] | None = None) -> int:
        """Let Spark construct its next batch, unless it is constructed; return its number.

        Args:
            size: rows of each partition.
            until: the offsets at which it ends instead.
        """
        number = self.number
        if number not in self.files.ends:
            note_start(self.world, self.files)
            before = self.files.start(number)
            asked = {p: before.get(p, 0) + size for p in range(2)} if until is None else until
            self.files.ends[number] = self.world.limit(asked)
        return number

    def rows(self, number: int) -> list[list[bytes]]:
        """The rows that the batch reads, by partition."""
        return self.world.read(self.files.start(number), self.files.ends[number])

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
        self.files = Checkpoint(stream, dict(began))
        self.restart()


def _name(partition: int, number: int) -> bytes:
    return b"%d-%d" % (partition, number)


def note_start(world: World, files: Checkpoint) -> None:
    """What `eos_sink.starting_offsets` notes of a checkpoint that has no unfinished batch."""
    kafka, names = FakeKafka(world.cluster), world.options.names
    DecisionRegister(kafka, names).connect(Deadline(30))
    ids = kafka.topic_ids({INPUT}, Deadline(30))
    note = StartNote(files.stream_id() or "", files.number, topics=ids)
    write_note(kafka, names, GROUP, note, Deadline(30))


def reading_world(
    rows: int = 8, value: Callable[[int, int], bytes] = _name, **extra: str
) -> ReadingWorld:
    """A world whose input topic has two partitions with some rows each.

    Args:
        value: of a row, by partition and number.
    """
    world = ReadingWorld([], options=source_options(**extra))
    produce_input(world, rows, value)
    return world


def produce_input(world: World, rows: int, value: Callable[[int, int], bytes]) -> None:
    """Add rows to each partition of the input."""
    world.cluster.create_topic(INPUT, 2)
    produce_topic(world, INPUT, rows, value)


def produce_topic(world: World, name: str, rows: int, value: Callable[[int, int], bytes]) -> None:
    """Add rows to each partition of a topic."""
    topic = world.cluster.topics[name]
    producer = FakeKafka(world.cluster).producer("input", 60_000)
    producer.init(Deadline(30))
    producer.begin()
    for partition in range(len(topic.partitions)):
        for number in range(rows):
            producer.produce(name, value(partition, number), partition=partition)
    producer.commit(Deadline(30))


def position(world: World) -> SourcePosition:
    source = log(world)[-1].source
    assert source is not None
    return source


def committed(world: World, group: str = GROUP) -> dict[int, int]:
    """The offsets of the group, by partition of the input."""
    return {place[1]: at for place, at in world.cluster.groups.committed.get(group, {}).items()}
