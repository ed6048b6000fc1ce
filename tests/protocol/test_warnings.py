"""A query warns about ignored settings when it starts, not at each batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.driver.planner import Planner
from tests.fakes.kafka import FakeKafka
from tests.protocol.world import World


def test_a_warning_is_logged_once_for_all_batches(caplog: pytest.LogCaptureFixture) -> None:
    world = World([])
    options = replace(world.options, warnings=("Option kafka.metric.reporters is ignored.",))
    planner = Planner(FakeKafka(world.cluster), options)
    planner.plan()
    planner.plan()
    told = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert told == ["Option kafka.metric.reporters is ignored."]
