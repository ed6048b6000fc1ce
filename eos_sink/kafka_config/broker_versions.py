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


VERIFICATION = "transaction.partition.verification.enable"
"""A broker's setting, which can be changed while it runs; true by default, since Kafka 3.6."""

# By API keys, which a broker lists without any permission (ApiVersions); the release that brought
# each is from the KIP and the request's own schema in Kafka's source.
NEEDED = (
    # The sink never sends it. The leader of a partition asks the coordinator with it (VerifyOnly)
    # whether a producer's transaction is open, before it takes the first record of one (KIP-890,
    # part 1). Without that, a task that goes on after its transaction was aborted under the same
    # epoch writes a record that hangs, or that the id's next transaction commits. Kafka 3.5 has
    # version 4 in its schema as unstable, does not use it and does not list it (unless the internal
    # setting unstable.api.versions.enable is true); 3.6.0 made it stable and brought the check.
    # Brokers 3.5.2, 3.6.2, 3.9.1 and 4.3.0 list 3, 4, 5 and 5.
    Ability(24, "AddPartitionsToTxn", 4, (3, 6), "KIP-890"),
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


def check_verification(broker: str, value: str | None) -> None:
    """Raises ClusterError if the broker does not verify transactions.

    Args:
        broker: how to name it.
        value: of its setting `VERIFICATION`; None: it may not be read.
    """
    if value == "false":
        raise ClusterError(
            f"Broker {broker} has {VERIFICATION}=false: it takes late records of a transaction "
            "that was aborted, which the next transaction of the same task commits (KIP-890).",
            remedy="Let it verify, as is the default, then start the query again: kafka-configs "
            "--bootstrap-server HOST:PORT --alter --entity-type brokers --entity-default "
            f"--add-config {VERIFICATION}=true (and --delete-config for a broker that has a value "
            "of its own). Nothing was written.",
            data={"broker": broker, "setting": VERIFICATION},
        )
