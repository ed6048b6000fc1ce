"""A load balancer drops idle connections without a word, so the sink keeps none that is idle."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

from eos_sink.decision_log import opening
from eos_sink.kafka.connection import settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.protocol.model import BatchId
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic

# A control request that has no answer has 10 s, and a client that hangs a third of a step, 40 s.
SOON_S = 8.0
PATIENCE_S = 20.0


def test_a_batch_after_a_pause_does_not_wait_for_connections_that_are_gone(
    linked: KafkaCluster, run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(linked, "readings")
    query = run(linked, topic=topic, eos_inline_bytes="4096")
    query.write(value=["a"])
    with monkeypatch.context() as patched:
        patched.setattr(opening, "_IDLE_S", 0.0)
        query.committer.prepare()
        opened = query.committer._register._opening
        assert opened is not None
        assert opened.wait(Deadline(PATIENCE_S)) is not None
    control = query.kafka.control().wire._manager
    wait_until(
        lambda: not control.least_used_connections(),
        Deadline(PATIENCE_S),
        "no control connection is kept",
    )
    linked.nodes[0].link.forget()
    soon = Deadline(SOON_S)
    query.write(value=["b"])
    assert not soon.passed
    assert read_topic(linked.bootstrap_servers, topic).values() in (["a", "b"], ["b", "a"])


@pytest.mark.long
def test_a_connection_that_waits_for_an_answer_is_not_idle(
    linked: KafkaCluster, run: MakeRun
) -> None:
    control = run(linked, topic="any").kafka.control()
    try:
        linked.nodes[0].link.delay(1.8)
        assert control.list_transactions("no such prefix", Deadline(2 * PATIENCE_S)) == []
    finally:
        linked.nodes[0].link.heal()


@pytest.mark.long
def test_a_task_whose_rows_come_slowly_renews_its_connections(
    linked: KafkaCluster, run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings._DEFAULTS, "connections.max.idle.ms", "1000")
    topic = new_topic(linked, "readings")
    query = run(linked, topic=topic)
    query.write(value=["a"])
    plan = query.plan()
    before = local_ports(linked)

    def rows() -> Iterator[pa.RecordBatch]:
        for value in ("b", "c"):
            yield pa.RecordBatch.from_pydict({"value": [value]})
        own = local_ports(linked) - before
        assert own
        wait_until(lambda: not own & local_ports(linked), Deadline(PATIENCE_S), "they are renewed")
        yield pa.RecordBatch.from_pydict({"value": ["d"]})

    task = TaskWriter(query.kafka, query.options, plan)
    report = task.write(BatchId(query.stream, query.next), 0, rows())
    query.committer.commit([report])
    assert sorted(read_topic(linked.bootstrap_servers, topic).values()) == ["a", "b", "c", "d"]


def local_ports(cluster: KafkaCluster) -> set[int]:
    """Of this process's connections to the broker."""
    port = cluster.nodes[0].link.port
    found = psutil.Process().net_connections("tcp")
    return {each.laddr.port for each in found if getattr(each.raddr, "port", 0) == port}
