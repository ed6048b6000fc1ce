"""Brokers that create topics by themselves, which is Kafka's default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient, TopicMetadata

from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink_lab.testing import KafkaCluster
from integration.conftest import MakeRun
from integration.operator_commands import run_command
from integration.own_kafka import start_own_kafka


@pytest.fixture(scope="module")
def generous() -> Iterator[KafkaCluster]:
    with start_own_kafka(properties={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


def topics(cluster: KafkaCluster) -> Mapping[str, TopicMetadata]:
    return (
        AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=30).topics
    )


def test_what_only_reads_creates_no_topic(generous: KafkaCluster) -> None:
    """A topic that was deleted would come back, with other partitions."""
    reach = ["--bootstrap-server", generous.bootstrap_servers]
    before = set(topics(generous))
    run_command("doctor", "--topic", "gone", *reach, expect=None)
    # Nor an internal one, as a request for a coordinator does.
    assert set(topics(generous)) == before
    for words in (["status"], ["verify", "gone", "--stall-timeout", "5"]):
        run_command(*words, *reach, expect=None)
    assert "gone" not in topics(generous)


def test_a_first_start_still_makes_the_log_as_it_has_to_be(
    generous: KafkaCluster, run: MakeRun
) -> None:
    """A metadata request may have created the topic, with one partition."""
    generous.create_topic("readings")
    run(generous, topic="readings").write(value=["a"])
    assert len(topics(generous)["__eos_sink_log"].partitions) == LOG_PARTITIONS
