"""docker-compose.yml and conf/kafka say the same as the code that starts test clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eos_sink.kafka_config.properties_file import read_properties
from eos_sink_lab.testing.container_cluster import to_environment
from eos_sink_lab.testing.node_properties import Layout, NodePlan, Role, node_properties, plan_nodes
from tests.lab.testing import layout

ROOT = Path(__file__).parents[3]
PLANS = plan_nodes(3)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_compose_has_every_node_and_a_query(compose: dict[str, Any]) -> None:
    assert list(compose["services"]) == [*(layout.service(plan) for plan in PLANS), "spark"]
    assert list(compose["volumes"]) == list(compose["services"])


@pytest.mark.parametrize("plan", PLANS, ids=layout.service)
def test_compose_gives_a_node_the_properties_of_start_kafka(
    compose: dict[str, Any], plan: NodePlan
) -> None:
    wanted = node_properties(plan, layout.six_nodes(outside=True))
    assert compose["services"][layout.service(plan)]["environment"] == to_environment(
        wanted, layout.COMPOSE_CLUSTER_ID
    )


@pytest.mark.parametrize("plan", PLANS, ids=layout.service)
def test_compose_runs_the_official_image_with_a_health_check(
    compose: dict[str, Any], plan: NodePlan
) -> None:
    service = compose["services"][layout.service(plan)]
    assert service["image"] == f"apache/kafka:{layout.COMPOSE_VERSION}"
    assert service["healthcheck"]["test"][0] == "CMD-SHELL"
    assert service["volumes"] == [f"{layout.service(plan)}:{layout.DATA}"]


@pytest.mark.parametrize("plan", PLANS, ids=layout.service)
def test_compose_shows_this_machine_the_brokers_only(
    compose: dict[str, Any], plan: NodePlan
) -> None:
    service = compose["services"][layout.service(plan)]
    if plan.role is Role.CONTROLLER:
        assert "ports" not in service
    else:
        outside = layout.six_nodes(outside=True).endpoints[plan.id].outside
        assert outside is not None
        assert service["ports"] == [f"{outside}:{outside.port}"]


@pytest.mark.parametrize(
    ("name", "plan", "around"),
    [
        ("single", plan_nodes(1)[0], layout.one_node()),
        ("broker", PLANS[0], layout.six_nodes(outside=False)),
        ("controller", PLANS[3], layout.six_nodes(outside=False)),
    ],
)
def test_an_example_file_has_the_properties_of_start_kafka(
    name: str, plan: NodePlan, around: Layout
) -> None:
    text = (ROOT / "conf" / "kafka" / f"{name}.properties").read_text(encoding="utf-8")
    properties = {entry.name: entry.value for entry in read_properties(text)}
    assert properties == node_properties(plan, around)


def test_the_query_of_compose_is_that_of_the_image_and_starts_on_demand(
    compose: dict[str, Any],
) -> None:
    query = compose["services"]["spark"]
    image = (ROOT / query["build"]["dockerfile"]).read_text(encoding="utf-8")
    assert f"COPY {query['command'][-1].rpartition('/')[2]} /opt/job/\n" in image
    assert query["profiles"]
    assert set(query["depends_on"]) == {
        layout.service(plan) for plan in PLANS if plan.role is Role.BROKER
    }
