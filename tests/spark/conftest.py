"""A world in which no process keeps anything of an earlier test."""

from __future__ import annotations

import time

import pytest

from eos_sink.spark import data_source, writers
from eos_sink.spark.client_cache import ClientCache
from tests.fakes.clock import FakeClock
from tests.fakes.cluster import FakeCluster
from tests.protocol.world import World
from tests.spark.fake_source import worlds


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(data_source, "_planners", ClientCache())
    monkeypatch.setattr(writers, "_committers", ClientCache())
    worlds.append(World([], cluster=FakeCluster(clock=FakeClock(time.time()))))
    return worlds[-1]
