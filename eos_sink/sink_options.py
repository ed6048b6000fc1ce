"""The parsed options of a query: values that Spark ships to tasks and commits.

Neither loads the table of options nor the rules of Kafka's settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eos_sink.identity import Origin, QueryNames
from eos_sink.protocol.model import Route

if TYPE_CHECKING:
    from eos_sink.kafka_config.cluster_config import ClusterConfig
    from eos_sink.kafka_config.destinations import Destinations
    from eos_sink.kafka_config.source_topics import SourceTopics

SOURCE_GROUP = "eos.source.group.id"
"""The option of `SourceOptions.group`, for errors."""


@dataclass(frozen=True)
class SourceOptions:
    """The options about the source's offsets.

    Attributes:
        group: the consumer group that gets them.
        checkpoint: Spark's checkpoint location, where they are; may contain secrets.
        topics: the source's topics; None: as the checkpoint shows.
    """

    group: str
    checkpoint: str = field(repr=False)
    topics: SourceTopics | None = None


@dataclass(frozen=True)
class SinkOptions:
    """The options of one query.

    Attributes:
        names: the query's names in Kafka.
        topic: topic for every row, or None for the column `topic`.
        cluster: how its clients reach Kafka; may contain secrets, which its repr leaves out.
        transaction_timeout_ms: timeout of a task's transaction, milliseconds.
        step_timeout: limit for one plan, commit or abort of the driver, seconds.
        origin: what the query was started with, without secrets.
        timestamp_column: the column with the records' timestamps, or None.
        destinations: the only topics and partitions that rows may go to, or None.
        dead_letter_topic: where the rows go that Kafka would refuse; None: they stop the query.
        metrics_log: whether each batch is logged on standard error.
        inline_bytes: the largest partition, in bytes of its Arrow batch, that the driver writes in
            the decision's transaction; 0: none.
        source: whose offsets are committed with each decision; None: no one's.
        late_checkpoint: Spark's checkpoint location, if Spark writes there while a batch runs
            (asynchronous progress tracking), and not before; None: before. May contain secrets.
    """

    names: QueryNames
    topic: str | None
    cluster: ClusterConfig
    transaction_timeout_ms: int
    step_timeout: float
    origin: Origin = field(default_factory=Origin)
    timestamp_column: str | None = None
    destinations: Destinations | None = None
    dead_letter_topic: str | None = None
    metrics_log: bool = False
    inline_bytes: int = 0
    source: SourceOptions | None = None
    late_checkpoint: str | None = field(default=None, repr=False)

    @property
    def route(self) -> Route:
        """The options that decide where rows go."""
        partitioner = self.cluster.client.settings.get("partitioner", "")
        return Route(self.topic, self.dead_letter_topic, partitioner)

    @property
    def log_topic(self) -> str:
        """The decision log."""
        return self.cluster.log_topic

    @property
    def named_topics(self) -> frozenset[str]:
        """The topics for rows that are known before there is one."""
        given = [self.topic, self.dead_letter_topic, *self.declared_topics]
        return frozenset(filter(None, given))

    @property
    def declared_topics(self) -> list[str]:
        """The topics of `eos.destinations`."""
        return self.destinations.topics if self.destinations else []


@dataclass(frozen=True)
class Version:
    """A user's number for a batch write: `txnAppId` and `txnVersion`, as in Delta Lake; or, without
    an application, `eos.write.id`."""

    app: str
    number: int


@dataclass(frozen=True)
class BatchOptions:
    """The options of one batch write; `sink` is the same for all writes under its identity."""

    sink: SinkOptions
    version: Version | None
