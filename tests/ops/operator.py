"""What an operator does and sees, on the in-memory Kafka."""

from __future__ import annotations

from collections.abc import Callable

from eos_sink.cli.query_name import find_history
from eos_sink.decision_log import LogEntry
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.activity import ActivityTracker, EventKind, QueryEvent, Throughput
from eos_sink.ops.batch_record import find_batch
from eos_sink.ops.evidence import BatchEvidence, gather_evidence
from eos_sink.ops.observer import Observer
from eos_sink.ops.resolve import Choice, apply_choice, end_open, write_choice
from eos_sink.ops.status import QueryStatus, Snapshot
from eos_sink.protocol.reconcile import View
from tests.fakes.admin import FakeAdmin
from tests.fakes.process import At, Moment, Process
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import TOPIC, World, late_attempt


def look(admin: FakeAdmin, names: QueryNames, most: int = 1000) -> BatchEvidence:
    """The evidence about the latest decision of a query."""
    _, history = find_history(admin, names.group, names.prefix, Deadline(30))
    return gather_evidence(admin, find_batch(names, history), most, Deadline(30))


class Operator:
    """Uses `eos-sink resolve`.

    Args:
        names: of the query; None: as the world's is.
    """

    def __init__(self, world: World, names: QueryNames | None = None) -> None:
        self._world, self._names = world, names
        self._admin = FakeAdmin(world.cluster)

    @property
    def process(self) -> Process:
        """The command's."""
        return self._admin.process

    def after_join(self, deed: Callable[[], object]) -> None:
        """Do something once the command has joined the query's group."""
        At(self.process, "member.join", Moment.AFTER, deed)

    def looks(self, most: int = 1000) -> BatchEvidence:
        return look(self._admin, self._names or self._world.options.names, most)

    def chooses(
        self,
        choice: Choice,
        *partitions: int,
        seen: BatchEvidence | None = None,
    ) -> LogEntry:
        evidence = seen or self.looks()
        decision = apply_choice(evidence, choice, partitions)
        return write_choice(self._admin, evidence, decision, Deadline(30))

    def ends(self, seen: BatchEvidence | None = None) -> View:
        return end_open(self._admin, seen or self.looks(), Deadline(30))


def bring_into_doubt(world: World, *, committed: bool = True) -> None:
    """A batch of two partitions, decided; then its ids are taken and its topic is emptied."""
    if committed:
        Driver(world).run(0, [b"a"], [b"b"])
    else:
        decide_and_die(world)
    for partition in range(2):
        late_attempt(world, 0, partition)
    for log_ in world.cluster.topics[TOPIC].partitions:
        log_.delete_before(log_.end)
    assert Driver(world).planner.plan().doubtful == {0, 1}


class Eye:
    """Takes snapshots of a world."""

    def __init__(self, world: World, prefix: str = "eos-sink-") -> None:
        self.admin = FakeAdmin(world.cluster)
        self._observer = Observer(self.admin, prefix, lambda: world.cluster.clock.ms)
        self._name = world.options.names.query

    def snapshot(self) -> Snapshot:
        return self._observer.look(Deadline(30))

    def sees(self) -> QueryStatus:
        found = self.snapshot().query(self._name)
        assert found is not None
        return found


class Watching:
    """Looks at a world as `eos-sink watch` does."""

    def __init__(self, world: World) -> None:
        self._eye = Eye(world)
        self._tracker = ActivityTracker(recent=3)

    def happened(self) -> list[QueryEvent]:
        self.look = self._eye.snapshot()
        return self._tracker.update(self.look)

    def kinds(self) -> list[EventKind]:
        return [each.kind for each in self.happened()]

    def throughput(self) -> Throughput:
        (found,) = self._tracker.measure(self.look)
        return found
