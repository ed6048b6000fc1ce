"""Prometheus' own tools, where they are installed, and what its files of this project say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from eos_sink.metrics.names import STEP_SECONDS, Count, Gauge

ROOT = Path(__file__).resolve().parent.parent.parent
CONF = ROOT / "conf" / "prometheus"
ALERTS = CONF / "eos-sink-alerts.yml"
DASHBOARD = ROOT / "conf" / "grafana" / "eos-sink.json"

METRICS = {each.prometheus: each for each in (*Count, *Gauge)}
SERIES = {*METRICS, f"{STEP_SECONDS}_sum", f"{STEP_SECONDS}_count"}
"""Names that a query may ask for."""


def promtool(*words: str, given: str = "") -> str:
    """What it says.

    Raises:
        Failed: it complains. Skips where there is none.
    """
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing (apt-get install prometheus)")
    done = subprocess.run(
        ["promtool", *words], input=given, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr)
    return done.stdout


def rules() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[str]:
    """Of the dashboard, with Grafana's variables as it would fill them in for all queries."""
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [expr.replace("$query", ".*").replace("$__rate_interval", "1m") for expr in asked]


def asked_for(expression: str) -> set[str]:
    return set(re.findall(r"\beos_sink_\w+", expression))
