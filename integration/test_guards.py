"""Guards that lie in how the real clients are set: each test fails when one line is taken away.

`make guards` takes the lines away, docs/internals/guards.md has the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from eos_sink.decision_log import DecisionRegister
from eos_sink.errors import CommitFailedError, ConfigurationError, SupersededError
from eos_sink.kafka import log_reader
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.fetch import Fetched, fetch
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.kafka.wire import Wire
from eos_sink.protocol.model import BatchId, Change, Decision, PlanToken, RowDigest
from eos_sink.protocol.values import Place
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.query import PATIENCE_S, Query


def deadline() -> Deadline:
    return Deadline(PATIENCE_S)


def test_a_batch_is_not_decided_when_an_id_was_taken_while_it_was_written(query: Query) -> None:
    """Decided, it would have to be repaired; undecided it is simply repeated."""
    writing = query.run_paused_at(FaultPoint.TASK_FLUSH_AFTER)
    query.take_id(1 - query.slot(), 1)
    writing.wake()
    writing.stopped(CommitFailedError)
    assert query.decided() == 0
    query.finish()
    query.check()


def test_a_decision_log_with_fewer_partitions_is_refused(query: Query, kafka: KafkaCluster) -> None:
    """A query's decision would be looked for where it is not."""
    topic, partitions = f"log-{query.topic}", LOG_PARTITIONS - 1
    kafka.create_topic(topic, partitions)
    other = ConfluentKafka(replace(query.options.cluster, log_topic=topic))
    try:
        with pytest.raises(ConfigurationError, match=f"{partitions} partitions"):
            other.log_reader(query.options.names, deadline())
    finally:
        other.close()


class DeposedLeader:
    """Answers that the log is empty, some times or until the brokers are asked who leads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int = -1) -> None:
        self.left = times
        monkeypatch.setattr(log_reader, "fetch", self.fetch)
        if times < 0:
            monkeypatch.setattr(Wire, "find_newest_leader", self.find_newest_leader)

    async def fetch(
        self, wire: Wire, place: Place, at: int, deadline: Deadline, **how: Any
    ) -> Fetched | KafkaError:
        answer = await fetch(wire, place, at, deadline, **how)
        if isinstance(answer, KafkaError) or not self.left:
            return answer
        self.left -= 1
        return Fetched(answer.leader, stable=0, end=0, next=at)

    async def find_newest_leader(self, place: Place, deadline: Deadline) -> None:
        self.left = 0


def test_a_record_behind_a_reported_end_that_is_too_low_is_not_overwritten(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deposed leader tells such an end; the producer finds the new leader."""
    names = query.options.names
    one, other = (DecisionRegister(query.kafka, names) for _ in range(2))
    place = one.read(deadline()).position
    member = query.kafka.member(names.group, names.driver, 30_000)
    token = PlanToken(names, 0, place, member.join(deadline()))
    decided = Decision(BatchId("stream", 7), 0, 0, RowDigest(), ())
    assert other.read(deadline()).seq == 0
    one.append(token, Change(decided), deadline())
    deposed = DeposedLeader(monkeypatch)
    assert other.read(deadline()).seq == 0
    with pytest.raises(SupersededError):
        other.append(token, Change(None), deadline())
    assert not deposed.left
    last = one.read(deadline())
    assert (last.seq, last.decision) == (1, decided)
    for register in (one, other):
        register.close()
    member.close()
