"""What faults act on: the cluster, the driver and its fault points, its transactions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka import KafkaAdminClient

from eos_sink.decision_log import DecisionRegister
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.values import TransactionStatus
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing import FaultPoint, Faults, KafkaCluster, KafkaNode, Strike
from proof.chaos.checkpoint import Checkpoint
from proof.chaos.journal import Journal
from proof.chaos.kinds import Prelude, prelude_of
from proof.chaos.supervisor import Supervisor
from proof.chaos.watch import Watch

_REACHED_WITHIN_S = 120.0
_ANSWERS_WITHIN_S = 60.0


class NotReached(Exception):
    """The driver did not reach a fault point in time, so nothing was injected there."""


def nothing() -> None:
    """The end of a fault that is over at once."""


@dataclass
class Injected:
    """An injected fault.

    Attributes:
        at: when it was injected, seconds since the epoch.
        heal: ends it.
        facts: facts for the report.
        lasts_s: its shortest duration, even if the schedule has a shorter one.
    """

    at: float
    heal: Callable[[], None] = nothing
    facts: dict[str, object] | None = None
    lasts_s: float = 0.0


@dataclass
class Scene:
    """The parts of a run.

    Attributes:
        kafka: with links between the sink and each broker.
        topic: what the query writes to.
        partitions: how many it has.
        sink: the options of the query, with direct connections to the brokers.
        faults: arms fault points.
        supervisor: runs the driver.
        watch: the reader.
        journal: records events.
        checkpoint: of the query.
    """

    kafka: KafkaCluster
    topic: str
    partitions: int
    sink: SinkOptions
    faults: Faults
    supervisor: Supervisor
    watch: Watch
    journal: Journal
    checkpoint: Checkpoint

    def broker(self, target: int) -> KafkaNode:
        return self.kafka.brokers[target % len(self.kafka.brokers)]

    def active_controller(self) -> KafkaNode:
        """The leader of the quorum."""
        admin = KafkaAdminClient(bootstrap_servers=self.kafka.direct_servers.split(","))
        try:
            quorum = admin.describe_metadata_quorum()
        finally:
            admin.close()
        return self.kafka.node(quorum["topics"][0]["partitions"][0]["leader_id"])

    def strike(self, point: FaultPoint, action: Strike) -> float:
        """Inject a fault at a fault point of the driver; return when it was injected.

        Raises:
            NotReached: the driver did not reach it in time.
        """
        prelude = prelude_of(point)
        if prelude is None:
            self._arm(point, action)
        elif prelude.point is None:
            self.supervisor.kill()
            self._arm(point, action)
        else:
            self._lead_to(point, action, prelude, prelude.point)
        return self._reached(point)

    def _lead_to(
        self, point: FaultPoint, action: Strike, prelude: Prelude, first: FaultPoint
    ) -> None:
        self._arm(first, prelude.action)
        if prelude.action is Strike.KILL_PROCESS:
            self._arm(point, action)
        try:
            self._reached(first)
        except NotReached:
            self.faults.disarm(point)
            raise
        if prelude.take_id:
            self.take_id(0)
            self.supervisor.kill()
        if prelude.action is not Strike.KILL_PROCESS:
            self._arm(point, action)

    def _arm(self, point: FaultPoint, action: Strike) -> None:
        (self.faults.directory / f"{point.value}.fired").unlink(missing_ok=True)
        self.faults.arm(point, action)

    def _reached(self, point: FaultPoint) -> float:
        if not self.supervisor.until(
            lambda: self.faults.fired(point) is not None, _REACHED_WITHIN_S
        ):
            self.faults.disarm(point)
            # The driver may have reached it in the last moment.
            if self.faults.fired(point) is None:
                raise NotReached(point.value)
        now = time.time()
        self.journal.note("struck", point=point.value)
        return now

    def take_id(self, target: int) -> int:
        """Do what a late attempt of a task does: initialize its id, which aborts its transaction.

        Returns:
            The partition whose decided transaction is lost.

        Raises:
            NotReached: the decision has no transaction.
        """
        deadline = Deadline(_ANSWERS_WITHIN_S)
        kafka = ConfluentKafka(self.sink.cluster)
        register = DecisionRegister(kafka, self.sink.names)
        try:
            decision = register.read(deadline).decision
            if decision is None or not decision.prepared:
                raise NotReached("a decided transaction")
            prepared = decision.prepared[target % len(decision.prepared)]
            name = self.sink.names.task(decision.slot, prepared.partition)
            producer = kafka.producer(name, self.sink.transaction_timeout_ms)
            producer.init(deadline)
            producer.close()
            return prepared.partition
        finally:
            register.close()
            kafka.close()

    def open_transactions(self) -> list[str]:
        """The transactional ids of the query that have an open transaction."""
        kafka = ConfluentKafka(self.sink.cluster)
        try:
            deadline = Deadline(_ANSWERS_WITHIN_S)
            prefix, is_open = f"{self.sink.names.group}-", TransactionStatus.ONGOING
            states = kafka.control().list_transactions(prefix, deadline, is_open)
            return [each.transaction.transactional_id for each in states]
        finally:
            kafka.close()
