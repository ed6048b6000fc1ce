"""A real Prometheus that scrapes a real exporter, both ended with the test."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.network_links import HOST, free_ports
from eos_sink_lab.testing.waiting import wait_until
from tests.prometheus.promtool import ALERTS, CONF

_START_S = 60.0
_END_S = 10.0
# In place of the 15 s of the configuration as it is published.
_INTERVAL_S = 1


class Prometheus:
    """Answers PromQL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ready(self) -> bool:
        try:
            return _get(f"{self.url}/-/ready") is not None
        except (OSError, urllib.error.URLError):
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of now that are numbers."""
        found = self._asked("query", query=expression)["result"]
        return [each for each in found if each["value"][1] != "NaN"]

    def range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Series of the time between, in seconds since the epoch."""
        asked = {"query": expression, "start": start, "end": end, "step": step}
        found: list[dict[str, Any]] = self._asked("query_range", **asked)["result"]
        return found

    def value(self, expression: str) -> float:
        """Of the only sample; -1: there is not one."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else -1

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]

    def _asked(self, what: str, **parameters: object) -> Any:
        found = _get(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
        return json.loads(found or "{}")["data"]


@contextmanager
def exporter(*words: str) -> Iterator[str]:
    """`eos-sink exporter` in a separate process; where it serves."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "eos_sink", "exporter", "--port", str(port), *words]
    with _process([*command, "--address", HOST, "--interval", "0.2"]) as process:
        url = f"http://{HOST}:{port}/metrics"

        def answers() -> bool:
            assert process.poll() is None
            try:
                return _get(url) is not None
            except (OSError, urllib.error.URLError):
                return False

        wait_until(answers, Deadline(_START_S), "the exporter answers")
        yield url


@contextmanager
def prometheus(target: str, directory: Path) -> Iterator[Prometheus]:
    """With the project's own configuration but for target, intervals and the path of the rules."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is missing (apt-get install prometheus)")
    (port,) = free_ports(1)
    settings = yaml.safe_load((CONF / "prometheus.yml").read_text())
    settings["global"] = dict.fromkeys(settings["global"], f"{_INTERVAL_S}s")
    (job,) = settings["scrape_configs"]
    del job["scrape_timeout"]
    job["static_configs"] = [{"targets": [urllib.parse.urlsplit(target).netloc]}]
    settings["rule_files"] = [str(ALERTS)]
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings))
    command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}"]
    with _process([*command, f"--web.listen-address={HOST}:{port}"]):
        found = Prometheus(f"http://{HOST}:{port}")
        wait_until(found.ready, Deadline(_START_S), "Prometheus is ready")
        yield found


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with ExitStack() as ending:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ending.callback(process.kill)
        yield process
        process.terminate()
        process.wait(_END_S)


def _get(url: str) -> bytes | None:
    with urllib.request.urlopen(url, timeout=_END_S) as answer:
        found: bytes = answer.read()
        return found if answer.status == 200 else None
