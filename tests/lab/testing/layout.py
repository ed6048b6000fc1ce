"""The addresses in docker-compose.yml and conf/kafka; everything else follows from the code."""

from __future__ import annotations

from eos_sink_lab.testing.node_properties import (
    Endpoint,
    Endpoints,
    Layout,
    NodePlan,
    Role,
    plan_nodes,
)

COMPOSE_VERSION = "4.3.0"
COMPOSE_CLUSTER_ID = "ZW9zLXNpbmstY29tcG9zZQ"
FIRST_OUTSIDE_PORT = 29092
DATA = "/var/lib/kafka/data"


def service(plan: NodePlan) -> str:
    """The name of the node's service, and of its host."""
    return f"kafka-{plan.id}" if plan.role is Role.BROKER else f"controller-{plan.id}"


def _listeners(plan: NodePlan, *, outside: bool) -> Endpoints:
    if plan.role is Role.CONTROLLER:
        return Endpoints(None, Endpoint(service(plan), 9093, bind_host=""))
    return Endpoints(
        Endpoint(service(plan), 9092, bind_host=""),
        None,
        Endpoint("127.0.0.1", FIRST_OUTSIDE_PORT + plan.id - 1, bind_host="") if outside else None,
    )


def six_nodes(*, outside: bool) -> Layout:
    """Three brokers and three controllers, each on another host."""
    endpoints = {plan.id: _listeners(plan, outside=outside) for plan in plan_nodes(3)}
    return Layout(endpoints, 3, DATA)


def one_node() -> Layout:
    """A single node on this machine."""
    ends = Endpoints(Endpoint("127.0.0.1", 9092), Endpoint("127.0.0.1", 9093))
    return Layout({1: ends}, 1, DATA)
