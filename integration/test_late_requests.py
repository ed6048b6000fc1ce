"""Requests that arrive late: the client has sent them again by then, over another connection."""

from __future__ import annotations

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.conftest import MakeQuery
from integration.query import PATIENCE_S, Query, pause_at


@pytest.fixture
def query(linked: KafkaCluster, query_on: MakeQuery) -> Query:
    query = query_on(linked)
    query.inline()
    return query


def test_a_late_commit_of_a_batch_does_not_commit_a_part_of_the_next_one(
    linked: KafkaCluster, query: Query
) -> None:
    """Jepsen's report on Bufstream 0.1.0 has found it in Kafka's protocol."""
    committing, writing = FaultPoint.COMMITTER_WRITE_BEFORE, FaultPoint.COMMITTER_PRODUCE_AMID
    process = query.run(pause_at(committing, 0, 2), pause_at(writing, 1, 2))
    process.paused_at(committing)
    with linked.nodes[0].link.hold("EndTxn", query.options.names.driver) as held:
        process.wake()
        process.paused_at(writing)
        assert query.decided() == 0
        held.deliver(Deadline(PATIENCE_S))
        process.kill()
    query.finish()
    query.check()
