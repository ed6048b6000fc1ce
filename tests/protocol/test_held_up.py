"""Another program's open transaction is in front of the rows of a decided batch."""

from __future__ import annotations

import pytest

from eos_sink.errors import UnfinishedError
from eos_sink.kafka.deadline import Deadline
from tests.fakes.kafka import FakeKafka, FakeReadBack
from tests.fakes.process import At, Killed, Moment
from tests.protocol.driver import Driver
from tests.protocol.world import TOPIC, World, options


def test_an_error_names_the_transaction_that_keeps_readers_from_seeing_what_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World([], options=options(**{"eos.step.timeout.ms": "2000"}), partitions=1)
    foreign = FakeKafka(world.cluster).producer("app", 300_000)
    foreign.init(Deadline(1))
    foreign.begin()
    foreign.produce(TOPIC, b"foreign", partition=0)
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a", b"b"])

    def die() -> None:
        raise Killed("the decision is written")

    At(driver.commits.process, "log_producer.commit", Moment.AFTER, die)
    with pytest.raises(Killed):
        driver.committer.commit(reports)
    world.cluster.coordinator.time_out(world.options.names.task(0, 0))
    assert Driver(world).planner.plan().lost == {0}
    # Its marker is too far behind the rows.
    monkeypatch.setattr(FakeReadBack, "markers", lambda *_: {})
    with pytest.raises(UnfinishedError) as raised:
        Driver(world).planner.plan()
    ((place, waits_for),) = raised.value.data["waits_for"].items()
    assert place == f"{TOPIC}[0]"
    assert "app" in waits_for
    assert "become visible" not in raised.value.message
    foreign.abort(Deadline(1))
    Driver(world).run(0, [b"a", b"b"])
    assert world.visible() == [b"a", b"b"]
