"""The table of Kafka settings against the settings of Kafka's own Java clients."""

from __future__ import annotations

import re
import subprocess

import pytest

from eos_sink.kafka_config.java_settings import CONSUMER_ONLY, SETTINGS
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import ensure_kafka

NEWEST, OLDEST = "4.3.0", "3.9.1"


def names(version: str, which: str) -> set[str]:
    """The names of all settings of `ProducerConfig` or `ConsumerConfig`.

    Their main methods print Kafka's own documentation, with an anchor for each name.
    """
    java = find_java()
    files = ensure_kafka(version, java)
    shown = subprocess.run(
        [java.executable, "-cp", files.classpath, f"org.apache.kafka.clients.{which}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(re.findall(r'id="[a-z]+configs_([^"]+)"', shown.stdout))


def test_every_setting_of_the_java_producer_has_a_row() -> None:
    ours = {row.name for row in SETTINGS}
    assert names(NEWEST, "producer.ProducerConfig") | {"auto.include.jmx.reporter"} == ours


@pytest.mark.long
def test_every_setting_of_the_older_java_producer_has_a_row() -> None:
    older = names(OLDEST, "producer.ProducerConfig")
    assert older <= {row.name for row in SETTINGS}
    assert "auto.include.jmx.reporter" in older


@pytest.mark.long
@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_what_only_the_java_consumer_has_is_passed_over(version: str) -> None:
    consumer = names(version, "consumer.ConsumerConfig")
    assert consumer - {row.name for row in SETTINGS} <= CONSUMER_ONLY
