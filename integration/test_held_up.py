"""Another program's open transaction holds readers up, in front of rows of a decided batch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.protocol.values import Transaction
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.in_process import Died, Run, die
from integration.query_state import open_transaction
from integration.topics import new_topic, unique

SOON_S = 20.0


@contextlib.contextmanager
def held_up(query: Run, topic: str) -> Iterator[str]:
    """By another program; its transactional id."""
    name = unique("app")
    producer = open_transaction(query.kafka, name, topic)
    yield name
    producer.abort(Deadline(SOON_S))
    producer.close()


def decide(query: Run, monkeypatch: pytest.MonkeyPatch) -> Transaction:
    """Decide a batch, and die; its transaction."""
    (report,) = query.prepare(query.plan(), 0, [ROWS])
    with monkeypatch.context() as patched:
        patched.setattr(KafkaPythonControl, "end", die)
        with pytest.raises(Died):
            query.committer.commit([report])
    assert report.prepared is not None
    query.start()
    return report.prepared.transaction(query.options.names, report.slot)


ROWS = {"value": [b"a", b"b"], "partition": pa.array([0, 0], pa.int32())}


@pytest.mark.parametrize("how", ["aborted", "committed"])
def test_a_start_learns_from_the_marker_how_what_readers_cannot_see_yet_has_ended(
    kafka: KafkaCluster, run: MakeRun, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    topic = new_topic(kafka, "held", partitions=1)
    query = run(kafka, topic=topic, eos_step_timeout_ms="30000")
    with held_up(query, topic) as foreign:
        transaction = decide(query, monkeypatch)
        if how == "committed":
            query.kafka.control().end([transaction], commit=True, deadline=Deadline(SOON_S))
        # A late attempt of the task takes the id.
        late = query.kafka.producer(transaction.transactional_id, 60_000)
        late.init(Deadline(SOON_S))
        late.close()
        waits = Deadline(SOON_S)
        place = topic, 0
        first = query.kafka.control().find_holders([place], Deadline(SOON_S))[place]
        assert first is not None
        assert str(first.transaction) == foreign
        plan = query.plan()
        assert not waits.passed
        assert plan.lost == ({0} if how == "aborted" else set())
        query.committer.commit(list(query.prepare(plan, 0, [ROWS])))
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == [b"a", b"b"]
