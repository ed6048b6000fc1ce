"""Brokers, controllers and the network between them and the query fail at the sites that matter.

In the end every row is visible once, no reader is held up, and no operator is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eos_sink_lab.testing import KafkaNode
from integration.cluster_query import SITES, ClusterQuery, wait_held_back
from integration.query import Process

pytestmark = pytest.mark.sampled(3, of="cluster faults")


@pytest.fixture
def query(cluster_query: ClusterQuery) -> ClusterQuery:
    return cluster_query


def output_leader(query: ClusterQuery) -> int:
    return query.cluster.leader_of(query.topic, 0)


def task_coordinator(query: ClusterQuery) -> int:
    return query.cluster.transaction_coordinator(query.task_id)


def driver_coordinator(query: ClusterQuery) -> int:
    return query.cluster.transaction_coordinator(query.options.names.driver)


def group_coordinator(query: ClusterQuery) -> int:
    return query.cluster.group_coordinator(query.options.names.group)


Role = Callable[[ClusterQuery], int]

# The broker that the query needs next.
NEEDED: dict[str, Role] = {
    "writing": output_leader,
    "prepared": task_coordinator,
    "deciding": driver_coordinator,
    "decided": task_coordinator,
    "settling": task_coordinator,
    "aborting": task_coordinator,
    "recovering": task_coordinator,
}


AT_EACH_SITE = pytest.mark.parametrize("site", SITES)


def each_at_each_site(name: str, *faults: Any) -> pytest.MarkDecorator:
    """Each of several faults at each site."""
    rows = [
        pytest.param(fault, site, id=f"{fault.__name__}-{site}")
        for fault in faults
        for site in SITES
    ]
    return pytest.mark.parametrize((name, "site"), rows)


# Leaders and coordinators move.


def move_output_leader(query: ClusterQuery) -> None:
    query.cluster.move_leader(query.topic, 0)


def move_log_leader(query: ClusterQuery) -> None:
    home = query.log_home()
    query.cluster.move_leader(home.topic, home.partition)


def move_task_coordinator(query: ClusterQuery) -> None:
    query.cluster.move_transaction_coordinator(query.task_id)


def move_driver_coordinator(query: ClusterQuery) -> None:
    query.cluster.move_transaction_coordinator(query.options.names.driver)


def move_group_coordinator(query: ClusterQuery) -> None:
    query.cluster.move_group_coordinator(query.options.names.group)


MOVES = (
    move_output_leader,
    move_log_leader,
    move_task_coordinator,
    move_driver_coordinator,
    move_group_coordinator,
)


@each_at_each_site("move", *MOVES)
def test_a_leader_or_coordinator_moves(
    query: ClusterQuery, move: Callable[[ClusterQuery], None], site: str
) -> None:
    process = SITES[site].reach(query)
    move(query)
    process.wake()
    process.finished()
    query.check()


# Brokers die, freeze and come back.


def kill(node: KafkaNode, process: Process) -> None:
    node.kill()
    process.wake()


def pause(node: KafkaNode, process: Process) -> None:
    node.pause()
    process.wake()


def restart(node: KafkaNode, process: Process) -> None:
    node.stop()
    process.wake()
    node.restart()


Strike = Callable[[KafkaNode, Process], None]


@each_at_each_site("strike", kill, pause, restart)
def test_the_broker_that_is_needed_next_fails(
    query: ClusterQuery, strike: Strike, site: str
) -> None:
    process = SITES[site].reach(query)
    strike(query.cluster.node(NEEDED[site](query)), process)
    query.survive(process)
    query.check()


@each_at_each_site("strike", kill, pause, restart)
def test_the_active_controller_fails(query: ClusterQuery, strike: Strike, site: str) -> None:
    process = SITES[site].reach(query)
    strike(query.cluster.node(query.cluster.active_controller()), process)
    process.finished()
    query.check()


# The network between the query and one broker fails.


@AT_EACH_SITE
def test_the_network_swallows_requests_for_a_while(query: ClusterQuery, site: str) -> None:
    process = SITES[site].reach(query)
    broker = NEEDED[site](query)
    query.cluster.node(broker).link.cut()
    process.wake()
    wait_held_back(query, process, broker)
    query.cluster.node(broker).link.heal()
    query.survive(process)
    query.check()


@AT_EACH_SITE
def test_an_answer_is_lost_and_its_connection_breaks(query: ClusterQuery, site: str) -> None:
    process = SITES[site].reach(query)
    broker = NEEDED[site](query)
    link = query.cluster.node(broker).link
    link.cut(answers_only=True)
    process.wake()
    wait_held_back(query, process, broker)
    link.reset()
    link.heal()
    query.survive(process)
    query.check()


@AT_EACH_SITE
def test_a_broker_is_cut_off_until_its_duties_move_elsewhere(
    query: ClusterQuery, site: str
) -> None:
    process = SITES[site].reach(query)
    broker = NEEDED[site](query)
    query.cluster.node(broker).link.reset()
    process.wake()
    for move in MOVES:
        move(query)
    query.cluster.node(broker).link.heal()
    query.survive(process)
    query.check()


@pytest.mark.long
def test_one_broker_is_slow_to_reach(query: ClusterQuery) -> None:
    query.cluster.brokers[0].link.delay(0.1)
    query.complete()
    query.check()
