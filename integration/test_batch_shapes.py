"""Batches of every size and shape go through three brokers: nothing, one row, many, large, wide."""

from __future__ import annotations

import pytest

from eos_sink.errors import BatchFailedError
from integration.cluster_query import ClusterQuery
from integration.query import rows_of

pytestmark = pytest.mark.long

LARGE = 20 * 1024 * 1024
MANY = 200


@pytest.fixture
def query(cluster_query: ClusterQuery) -> ClusterQuery:
    return cluster_query


@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param([(0, 1, 0), (1,)], id="one row"),
        pytest.param([(333_333, 333_333, 333_334)], id="many rows"),
        pytest.param([(1,) * MANY], id="many tasks"),
    ],
)
def test_every_row_is_visible_once(query: ClusterQuery, shapes: list[tuple[int, ...]]) -> None:
    query.batches = [rows_of(0), *(rows_of(n, shape) for n, shape in enumerate(shapes, 1))]
    query.complete()
    query.check()


def test_batches_without_rows_decide_nothing_and_do_no_harm(query: ClusterQuery) -> None:
    query.batches = [rows_of(0), rows_of(1, (0, 0, 0)), rows_of(2, ()), rows_of(3)]
    process = query.complete()
    assert [process.written(batch) for batch in range(4)] == [[0, 1, 2], [], [], [0, 1, 2]]
    query.check()


def test_a_batch_for_many_partitions_is_visible_once(query: ClusterQuery) -> None:
    topic = f"wide-{query.topic}"
    query.cluster.create_topic(topic, partitions=MANY)
    query.change({"topic": topic})
    query.topic = topic
    query.batches = [rows_of(0, (3 * MANY, 3 * MANY)), rows_of(1, (3 * MANY, 3 * MANY))]
    query.complete()
    query.check()
    used = {seen.partition for seen in query.visible()}
    assert len(used) > MANY * 0.9


def large_row(query: ClusterQuery, *, topic_allows: bool) -> None:
    """The middle one of three rows is large; the topic takes it or does not."""
    topic = f"large-{query.topic}"
    config = {"max.message.bytes": 2 * LARGE} if topic_allows else {}
    query.cluster.create_topic(topic, partitions=3, config=config)
    query.change({"topic": topic})
    query.topic = topic
    query.batches = [[["0-0-0", "x" * LARGE + "-0", "0-0-2"]]]


def test_a_large_row_is_visible_once_when_topic_and_client_allow_it(query: ClusterQuery) -> None:
    large_row(query, topic_allows=True)
    query.change({"kafka.max.request.size": str(2 * LARGE)})
    query.complete()
    assert sorted(query.visible().values()) == sorted(query.batches[0][0])


@pytest.mark.parametrize("client_allows", [False, True])
def test_a_row_that_is_too_large_is_refused_with_both_settings_that_help(
    query: ClusterQuery, client_allows: bool
) -> None:
    large_row(query, topic_allows=False)
    if client_allows:
        query.change({"kafka.max.request.size": str(2 * LARGE)})
    text = query.run().stopped(BatchFailedError)["text"]
    assert "max.message.bytes" in text
    assert "kafka.max.request.size" in text
    assert query.visible() == ()
