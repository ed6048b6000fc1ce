"""The requests and settings that the sink needs of a broker, and the Kafka release of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ClusterError


@dataclass(frozen=True)
class Ability:
    """A request that the sink or its clients send in this version at least."""

    key: int
    name: str
    version: int
    since: tuple[int, int]
    kip: str


VERIFICATION = "transaction.partition.verification.enable"
"""A broker setting that can be changed while it runs; true by default, since Kafka 3.6."""

# A broker lists API keys without any permission (ApiVersions). The releases are from the KIPs and
# the schemas of the requests in Kafka's source.
NEEDED = (
    # The sink never sends it. Before a partition's leader takes the first record of a transaction,
    # it asks the coordinator with it (VerifyOnly) whether the transaction is open (KIP-890, part
    # 1). Without this check, a task that continues after its transaction was aborted under the same
    # epoch writes a record that hangs, or that the next transaction of the id commits. In Kafka 3.5
    # version 4 is unstable, unused and not listed (unless unstable.api.versions.enable is true);
    # 3.6.0 brought the check. Brokers 3.5.2, 3.6.2, 3.9.1 and 4.3.0 list 3, 4, 5 and 5.
    Ability(24, "AddPartitionsToTxn", 4, (3, 6), "KIP-890"),
    Ability(66, "ListTransactions", 0, (3, 0), "KIP-664"),
    Ability(65, "DescribeTransactions", 0, (3, 0), "KIP-664"),
    Ability(10, "FindCoordinator", 4, (3, 0), "KIP-699"),
    Ability(28, "TxnOffsetCommit", 3, (2, 5), "KIP-447"),
    Ability(9, "OffsetFetch", 7, (2, 5), "KIP-447"),
    Ability(11, "JoinGroup", 5, (2, 3), "KIP-345"),
)


def check_broker(broker: str, newest: Mapping[int, int]) -> None:
    """Check that a broker knows the requests that the sink needs.

    Args:
        broker: its name in the error.
        newest: the newest version that it knows, by API key.

    Raises:
        ClusterError: it lacks one.
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
    """Check that a broker verifies transactions.

    Args:
        broker: its name in the error.
        value: of its setting `VERIFICATION`; None: reading it is not permitted.

    Raises:
        ClusterError: it does not verify them.
    """
    if value == "false":
        raise ClusterError(
            f"Broker {broker} has {VERIFICATION}=false: it accepts late records of an aborted "
            "transaction, which the next transaction of the same task commits (KIP-890).",
            remedy="Set it to true, the default, then start the query again: kafka-configs "
            "--bootstrap-server HOST:PORT --alter --entity-type brokers --entity-default "
            f"--add-config {VERIFICATION}=true (and --delete-config for a broker with a "
            "value of its own). Nothing was written.",
            data={"broker": broker, "setting": VERIFICATION},
        )
