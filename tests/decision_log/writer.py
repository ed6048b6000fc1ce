"""A process that writes to a decision log in memory."""

from __future__ import annotations

from dataclasses import replace

from eos_sink.decision_log import DecisionRegister, LogEntry
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId, Change, Decision, KnownClaims, PlanToken, RowDigest
from tests.fakes.cluster import FakeCluster
from tests.fakes.kafka import FakeKafka

NAMES = QueryNames("p-", "q-0123456789")
_KNOWN = NAMES, QueryNames("p-", "r-0123456789"), QueryNames("team-", NAMES.query)


class Writer:
    """One process with a register, and a token that is current until another member joins."""

    def __init__(self, cluster: FakeCluster, names: QueryNames = NAMES) -> None:
        self.names = names
        self.kafka = FakeKafka(cluster)
        self.register = DecisionRegister(self.kafka, names)
        self.deadline = Deadline(30)

    def join(self) -> bytes:
        return self.kafka.member(self.names.group, self.names.driver, 60_000).join(self.deadline)

    def write(self, member: bytes, seq: int, batch: int = 0) -> LogEntry:
        position = replace(self.register.read(self.deadline).position, offset=0)
        token = PlanToken(self.names, seq, position, member)
        known = KnownClaims("", _KNOWN)
        return self.register.append(token, Change(decision(batch)), self.deadline, known=known)


def decision(batch: int) -> Decision:
    return Decision(BatchId("s", batch), 0, 0, RowDigest(), ())


def append(writer: Writer, key: str, value: bytes) -> None:
    position = writer.register.connect(writer.deadline).home
    producer = writer.kafka.log_producer("stranger", 60_000)
    producer.init(writer.deadline)
    producer.begin()
    producer.produce(position.topic, value, key=key.encode(), partition=position.partition)
    producer.commit(writer.deadline)
