"""Brokers that allow transactions too short for the driver's own."""

from __future__ import annotations

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.deadline import Deadline
from integration.conftest import MakeRun
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic


@pytest.mark.long
def test_brokers_that_refuse_the_drivers_transactions_are_named_before_it_joins(
    run: MakeRun,
) -> None:
    with start_own_kafka(properties={"transaction.max.timeout.ms": 20_000}) as cluster:
        query = run(
            cluster, topic=new_topic(cluster, "readings"), eos_transaction_timeout_ms="10000"
        )
        with pytest.raises(ConfigurationError, match=r"30001 ms.*transaction\.max\.timeout\.ms"):
            query.plan()
        group = query.options.names.group
        assert not query.kafka.describe_groups([group], Deadline(20))[group]
