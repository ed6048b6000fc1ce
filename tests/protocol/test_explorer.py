"""Stories with the seeds of this run: the report's header names them, `EOS_SEED` repeats them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from eos_sink.decision_log import opening
from eos_sink.decision_log.driver_id import describe_driver
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.values import ProducerIdentity
from tests.fakes.coordinator import Coordinator
from tests.fakes.process import Moment
from tests.protocol.explore_streams import StreamPlot, StreamStory
from tests.protocol.explorer import KINDS, play, show, smallest
from tests.protocol.scene import Fault, Gate, Strike

STORIES = 100
LATE = Fault.LATE_REQUEST
COMMITTED = Gate("log_producer.commit", Moment.AFTER)
RECORD = Gate("log_producer.send_offset", Moment.BEFORE)


# A hundred take a quarter of a minute: a busy machine may be some times slower.
@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_no_story_of_this_run_loses_or_doubles_a_row(kind: str, part: int) -> None:
    first = int(os.environ["EOS_SEED"]) + part * STORIES
    for seed in range(first, first + STORIES):
        story = play(KINDS[kind].story(KINDS[kind].plot(seed)))
        if story.violations:
            pytest.fail(f"{kind} {seed}: {show(smallest(story).plot)}: {story.violations}")


def test_an_epoch_that_outlives_its_transaction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late EndTxn commits rows of the next batch before its record."""
    init = Coordinator.init

    def keep(coordinator: Coordinator, name: str, timeout_ms: int) -> ProducerIdentity:
        known = coordinator._ids.get(name)
        if known is not None and known.txn is None and name.endswith("-driver"):
            return ProducerIdentity(known.producer_id, known.epoch)
        return init(coordinator, name, timeout_ms)

    plain = StreamPlot(inline=65_536)
    story = StreamStory(plain)
    story.play()
    ends = [at for at, gate in enumerate(story.gates) if gate == COMMITTED]
    plots = [replace(plain, strikes=(Strike(LATE, at, until=RECORD),)) for at in ends]
    assert [each.violations for each in map(play, map(StreamStory, plots)) if each.violations] == []

    def believe(kafka: Kafka, names: QueryNames, _: object, deadline: Deadline) -> ProducerIdentity:
        opened = describe_driver(kafka, names, deadline).transaction
        return ProducerIdentity(opened.producer_id, opened.epoch)

    monkeypatch.setattr(Coordinator, "init", keep)
    monkeypatch.setattr(opening, "describe_opened", believe)
    found = [each for each in map(play, map(StreamStory, plots)) if each.violations]
    assert "were committed before their decision" in found[0].violations[0]


def test_a_few_streams_lose_and_double_no_row() -> None:
    stories = [play(KINDS["streams"].story(KINDS["streams"].plot(seed))) for seed in range(24)]
    assert [(show(each.plot), each.violations) for each in stories if each.violations] == []
