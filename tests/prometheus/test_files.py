"""The files for Prometheus and Grafana use existing metrics and link to existing sections."""

from __future__ import annotations

import re

import pytest

from tests.prometheus.promtool import (
    CONF,
    ROOT,
    SERIES,
    asked_for,
    expressions,
    panels,
    promtool,
    rules,
)


def test_the_configuration_and_its_rules_are_prometheus_own() -> None:
    assert "16 rules" in promtool("check", "config", str(CONF / "prometheus.yml"))


def test_each_alert_fires_for_its_cause_and_a_healthy_query_for_none() -> None:
    promtool("test", "rules", str(ROOT / "tests" / "prometheus" / "alerts.test.yml"))


def test_each_alert_has_its_case() -> None:
    told = (ROOT / "tests" / "prometheus" / "alerts.test.yml").read_text()
    assert {rule["alert"] for rule in rules()} == set(re.findall(r'alertname="(\w+)"', told))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is_and_leads_to_the_runbook(
    rule: dict[str, dict[str, str]],
) -> None:
    assert asked_for(str(rule["expr"])) <= SERIES
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    heads = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor in {head.lower().replace(" ", "-") for head in heads}


def test_the_dashboard_asks_for_what_there_is() -> None:
    asked = set[str]().union(*(asked_for(expression) for expression in expressions()))
    assert asked <= SERIES
    missing = SERIES - asked - set[str]().union(*(asked_for(str(r["expr"])) for r in rules()))
    assert missing <= {
        "eos_sink_exporter_look_duration_seconds",
        "eos_sink_last_batch_bytes",
        "eos_sink_last_batch_partitions",
        "eos_sink_last_batch_rows",
        "eos_sink_recoveries_total",
        "eos_sink_transactions_total",
    }


def test_no_two_panels_of_the_dashboard_lie_upon_each_other() -> None:
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels())
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
