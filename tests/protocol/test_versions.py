"""Plans and reports of another version of the sink: no batch is written with both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.protocol.model import PlanToken, TaskReport
from eos_sink.protocol.values import Package
from eos_sink.version import VERSION
from tests.protocol.driver import Driver
from tests.protocol.world import World

OLD = Package("0.1.9", "host-b")


@pytest.fixture
def world() -> World:
    return World([[[b"a"]]])


def unversioned(value: PlanToken | TaskReport) -> None:
    """As it comes from a version that has no such field."""
    del value.__dict__["package"]


def test_a_task_of_another_version_writes_nothing(world: World) -> None:
    driver = Driver(world)
    plan = driver.planner.plan()
    with pytest.raises(ConfigurationError) as stop:
        driver.write(replace(plan, token=replace(plan.token, package=OLD)), 0, [b"a"])
    assert "eos-sink 0.1.9 on host-b" in stop.value.message
    assert f"eos-sink {VERSION} on " in stop.value.message
    assert "Install eos-sink 0.1.9" in stop.value.remedy
    unversioned(plan.token)
    with pytest.raises(ConfigurationError, match="an older eos-sink"):
        driver.write(plan, 0, [b"a"])
    assert world.cluster.coordinator.list_open(world.options.names.group) == []


@pytest.mark.parametrize("inline", [0, 1000], ids=["by its task", "by the driver"])
@pytest.mark.parametrize("older", [True, False], ids=["unversioned", "another"])
def test_a_report_of_another_version_is_not_decided(world: World, inline: int, older: bool) -> None:
    world.options = replace(world.options, inline_bytes=inline)
    driver = Driver(world)
    reports = driver.write(driver.planner.plan(), 0, [b"a"], [b"b"])
    if older:
        unversioned(reports[1])
    else:
        reports[1] = replace(reports[1], package=OLD)
    with pytest.raises(ConfigurationError) as stop:
        driver.committer.commit(reports)
    assert ("an older eos-sink" if older else f"{OLD}") in stop.value.message
    driver.committer.abort(reports)
    assert world.visible() == []
