"""What a broker must be able to do, and since which Kafka it can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ClusterError


@dataclass(frozen=True)
class Ability:
    """A request that the sink, or a client on its behalf, sends at least in this version."""

    key: int
    name: str
    version: int
    since: tuple[int, int]
    kip: str


# By API keys, which a broker tells of itself (ApiVersions); the release that brought each is from
# the KIP and the request's own schema in Kafka's source.
NEEDED = (
    Ability(66, "ListTransactions", 0, (3, 0), "KIP-664"),
    Ability(65, "DescribeTransactions", 0, (3, 0), "KIP-664"),
    Ability(10, "FindCoordinator", 4, (3, 0), "KIP-699"),
    Ability(28, "TxnOffsetCommit", 3, (2, 5), "KIP-447"),
    Ability(9, "OffsetFetch", 7, (2, 5), "KIP-447"),
    Ability(11, "JoinGroup", 5, (2, 3), "KIP-345"),
)


def check_broker(broker: str, newest: Mapping[int, int]) -> None:
    """Raises ClusterError if the broker lacks what the sink needs.

    Args:
        broker: how to name it.
        newest: the newest version of each API key that it knows.
    """
    lacking = [ability for ability in NEEDED if newest.get(ability.key, -1) < ability.version]
    if not lacking:
        return
    needed = ".".join(map(str, max(ability.since for ability in lacking)))
    named = ", ".join(
        f"{each.name} version {each.version} ({each.kip}, Kafka {each.since[0]}.{each.since[1]})"
        for each in lacking
    )
    raise ClusterError(
        f"Broker {broker} is too old: it lacks {named}.",
        remedy=f"Upgrade it to Kafka {needed} or newer. Nothing was written.",
        data={"broker": broker, "lacking": [ability.name for ability in lacking]},
    )
