"""A load balancer drops idle connections without a word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eos_sink.decision_log import opening
from eos_sink.kafka import wire
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

# A client that hangs has a third of a step, 40 s.
SOON_S = 20.0


@pytest.fixture(scope="module")
def linked() -> Iterator[KafkaCluster]:
    with start_own_kafka(proxied=True) as cluster:
        yield cluster


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
        assert opened.wait(Deadline(SOON_S)) is not None
    # As after a pause.
    monkeypatch.setattr(wire, "_IDLE_S", 0.0)
    linked.nodes[0].link.forget()
    soon = Deadline(SOON_S)
    query.write(value=["b"])
    assert not soon.passed
    assert read_topic(linked.bootstrap_servers, topic).values() in (["a", "b"], ["b", "a"])
