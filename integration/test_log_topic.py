"""A decision log that an operator created is used only if it keeps its records."""

from __future__ import annotations

import logging

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.testing import KafkaCluster
from integration.conftest import MakeRun
from integration.in_process import new_topic
from integration.kafka_tools import carry_out

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_log_that_deletes_is_refused_before_anything_is_written(
    kafka: KafkaCluster, run: MakeRun, policy: str
) -> None:
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy=policy)
    query = run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=log)
    with pytest.raises(ConfigurationError) as error:
        query.write(value=["a"])
    assert error.value.data == {"topic": log, "cleanup.policy": policy}
    command = error.value.remedy.partition(". Nothing")[0]
    carry_out(command.replace("HOST:PORT", kafka.bootstrap_servers))
    query.write(value=["a"])


def test_a_compacted_log_is_used_without_a_warning(
    kafka: KafkaCluster, run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_topic(kafka, "log", LOG_PARTITIONS, cleanup_policy="compact")
    with caplog.at_level(logging.WARNING, "eos_sink.kafka"):
        run(kafka, topic=new_topic(kafka, "readings"), eos_log_topic=log).write(value=["a"])
    assert not [record for record in caplog.records if "compacted" in record.getMessage()]
