"""A real Kafka for the tests of this directory, one of each version and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_sink.testing import KafkaCluster, start_kafka
from integration.query import Query

DEFAULT_VERSION = "4.3.0"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`@pytest.mark.kafka("4.3.0", "3.9.1")` runs a test on each of these versions."""
    if "kafka" in metafunc.fixturenames:
        marks = list(metafunc.definition.iter_markers("kafka"))
        versions = marks[0].args if marks else (DEFAULT_VERSION,)
        metafunc.parametrize("kafka", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """One broker, ended when the last test that needs it is over."""
    with start_kafka(version=request.param) as cluster:
        yield cluster


@pytest.fixture
def query(kafka: KafkaCluster, tmp_path: Path) -> Iterator[Query]:
    """A query of minispark; its processes are ended with the test."""
    query = Query(kafka, tmp_path)
    try:
        yield query
    finally:
        query.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[KafkaCluster]:
    """Three brokers, each behind a link, and three controllers."""
    properties = {
        # Ten seconds by default until it is noticed that a transaction has timed out.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    }
    with start_kafka(brokers=3, properties=properties, proxied=True) as started:
        yield started
