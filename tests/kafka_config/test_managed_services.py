"""Managed services are known by the names of their brokers."""

from __future__ import annotations

import pytest

from eos_sink.kafka_config.managed_services import PAGE, SERVICES, find_service
from tests.snippets import ROOT


@pytest.mark.parametrize(
    ("servers", "name"),
    [
        ("b-1.d.a1.c2.kafka.us-east-1.amazonaws.com:9098,b-2.d:9098", "Amazon MSK"),
        ("b-1.d.a1.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "Amazon MSK"),
        ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "Amazon MSK Serverless"),
        ("Orders.servicebus.windows.net:9093", "Azure Event Hubs"),
        ("bootstrap.c.us-central1.managedkafka.p.cloud.goog:9092", "Google Managed Kafka"),
        ("pkc-1.eu-west-1.aws.confluent.cloud:9092", "Confluent Cloud"),
        ("seed-1.c1.fmc.prd.cloud.redpanda.com:9092", "Redpanda Cloud"),
        ("api-1.us-east-1.discoveryv2.prod-z.us-east-1.warpstream.com:9092", "WarpStream"),
        ("kafka:9092", None),
        ("kafka.us-east-1.amazonaws.com.example.com:9092", None),
        ("10.0.0.1:9092", None),
    ],
)
def test_the_names_of_brokers_say_whose_they_are(servers: str, name: str | None) -> None:
    found = find_service(servers)
    assert (found.name if found else None) == name


def test_the_page_has_each_service() -> None:
    text = (ROOT / PAGE).read_text().partition("## What each service supports")[2]
    assert [service.name for service in SERVICES if f"| {service.name} " not in text] == []
