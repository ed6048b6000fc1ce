"""Managed Kafka services, known by the names of their brokers: docs/managed-clusters.md."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eos_sink.kafka_config.token_source import EVENT_HUBS

PAGE = "docs/managed-clusters.md"


@dataclass(frozen=True)
class Service:
    """A service.

    Attributes:
        name: of the product.
        hosts: pattern of the brokers' host names.
        note: what the page says about it, in short.
        harm: why a query may not work there; empty: it has all that a query needs.
    """

    name: str
    hosts: str
    note: str
    harm: str = ""


SERVICES = (
    Service(
        "Amazon MSK Serverless",
        r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com(\.cn)?",
        "login by IAM only; the decision log gets fewer settings than elsewhere",
    ),
    Service(
        "Amazon MSK",
        r"\.kafka\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)",
        "Apache Kafka itself, from version 3.6 on",
    ),
    Service(
        "Azure Event Hubs",
        EVENT_HUBS,
        "transactions are a preview, in the tiers Premium and Dedicated",
        "Its documentation does not say whether it verifies transactions (KIP-890). The check of "
        "versions decides; below Premium there are no transactions.",
    ),
    Service(
        "Google Managed Kafka",
        r"\.managedkafka\.[\w.-]+\.cloud\.goog",
        "Apache Kafka itself",
    ),
    Service(
        "Confluent Cloud",
        r"\.confluent(gov)?\.cloud|\.confluentgov\.com",
        "transactions in all types of clusters but Freight",
    ),
    Service(
        "Redpanda Cloud",
        r"\.cloud\.redpanda\.com|\.redpanda\.cloud",
        "it does not list the requests of KIP-890",
        "The query is refused at its start: AddPartitionsToTxn ends at version 3.",
    ),
    Service(
        "WarpStream",
        r"\.warpstream\.com",
        "it supports transactions",
        "Its documentation does not say whether it verifies transactions (KIP-890). The check of "
        "versions decides.",
    ),
)


def find_service(servers: str) -> Service | None:
    """The service whose brokers these are.

    Args:
        servers: `bootstrap.servers`.
    """
    hosts = [server.strip().rpartition(":")[0].lower() for server in servers.split(",")]
    for service in SERVICES:
        if any(re.search(f"({service.hosts})$", host) for host in hosts):
            return service
    return None
