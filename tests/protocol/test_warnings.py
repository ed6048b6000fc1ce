"""A query warns about its settings and Spark's when it starts, not at each batch."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec

import pytest
from pyspark import accumulators

from eos_sink.driver import planner as planner_module
from eos_sink.driver.planner import Planner
from eos_sink.driver.processes import uses_tcp_to_spark
from eos_sink.kafka_config.cluster_config import Translation
from eos_sink.protocol.model import Run
from tests.fakes.kafka import FakeKafka
from tests.protocol.world import World


def test_a_warning_is_logged_once_for_all_batches(caplog: pytest.LogCaptureFixture) -> None:
    world = World([])
    warnings = ("Option kafka.metric.reporters is ignored.",)
    config = replace(world.options.cluster, client=Translation({}, warnings=warnings))
    options = replace(world.options, cluster=config)
    planner = Planner(FakeKafka(world.cluster), options)
    planner.plan()
    planner.plan()
    told = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert told == ["Option kafka.metric.reporters is ignored."]


def test_a_run_warns_once_that_spark_reaches_python_over_tcp(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_module, "uses_tcp_to_spark", lambda: True)
    world = World([])

    def planner(pid: int, session: str) -> Planner:
        run = Run("host", pid, pid, world.options.origin, session=session)
        return Planner(FakeKafka(world.cluster), world.options, run)

    first, second = planner(1, "7@1"), planner(2, "7@1")
    for each in (first, first, second, first):
        each.plan()
    assert len(caplog.messages) == 1
    assert "spark.python.unix.domain.socket.enabled=true" in caplog.messages[0]
    planner(3, "8@1").plan()
    assert len(caplog.messages) == 2
    monkeypatch.setattr(planner_module, "uses_tcp_to_spark", lambda: False)
    planner(4, "9@1").plan()
    assert len(caplog.messages) == 2


def test_only_a_process_of_spark_uses_tcp_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON_UNIX_DOMAIN_ENABLED", raising=False)
    assert not uses_tcp_to_spark()
    spec = ModuleSpec("pyspark.daemon", None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    assert uses_tcp_to_spark()
    with monkeypatch.context() as enabled:
        enabled.setenv("PYTHON_UNIX_DOMAIN_ENABLED", "True")
        assert not uses_tcp_to_spark()
    with monkeypatch.context() as spark_40:
        spark_40.delattr(accumulators, "AccumulatorUnixServer")
        assert not uses_tcp_to_spark()
    assert uses_tcp_to_spark()
    monkeypatch.delattr(socket, "AF_UNIX")
    assert not uses_tcp_to_spark()
