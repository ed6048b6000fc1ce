"""The names of all metrics, for records, log lines and Prometheus.

A value is the name in the decision log and in log lines; the Prometheus name is made from it.
docs/metrics.md shows the tables.
"""

from __future__ import annotations

from enum import Enum

NAMESPACE = "eos_sink"
STEP_SECONDS = f"{NAMESPACE}_step_seconds"
"""A summary without quantiles: seconds and number, by query and step."""


class _Named(Enum):
    """A name, its meaning and its labels in Prometheus."""

    label: str
    meaning: str
    labels: tuple[str, ...]

    def __new__(cls, name: str, meaning: str, *labels: str) -> _Named:
        member = object.__new__(cls)
        member._value_ = member.label = name
        member.meaning = meaning
        member.labels = tuple(label for label in labels or ("query",) if label)
        return member


class Step(_Named):
    """The steps of a batch, in their order. For steps of tasks the slowest task counts."""

    OPEN = "open", "Initialise a transactional producer, in the slowest task."
    WRITE = (
        "write",
        "From the beginning of the transaction until all rows are on the brokers, in the slowest "
        "task; Spark's work for rows that come later than the first is in it.",
    )
    VOTE = "vote", "Ask the coordinators whether all prepared transactions are still open."
    DECIDE = "decide", "Write the decision into the log."
    SETTLE = "settle", "Commit all transactions of the decision."


class Count(_Named):
    """Counters in the decision log, since the query's first record with figures."""

    BATCHES = "batches", "Batches that were decided."
    ROWS = "rows", "Rows of the decided batches."
    BYTES = "bytes", "Bytes of keys, values and headers of the decided batches' rows."
    TRANSACTIONS = (
        "transactions",
        "Transactions in decisions, including those of rewritten partitions.",
    )
    INLINE_ROWS = "inline_rows", "Rows that were written in the transactions of decisions."
    INLINE_BATCHES = (
        "inline_batches",
        "Batches all of whose rows were: each became visible as a whole.",
    )
    DEAD_LETTERS = (
        "dead_letters",
        "Rows that Kafka would have refused, in the dead letter topic.",
    )
    REWRITES = (
        "rewritten_partitions",
        "Partitions that were lost after their decision and written again.",
    )
    REPLAYS = (
        "replays",
        "Batches that Spark repeated although they were written already.",
    )
    ABORTS = (
        "aborts",
        "Batches that were aborted: by abort(), or by the next plan, which found them open.",
    )
    RUNS = (
        "runs",
        "Starts of a new run of the query; each fences the run before it.",
    )
    RECOVERIES = (
        "recoveries",
        "Recoveries: of new runs, of further planner processes, and after an ended session.",
    )

    @property
    def prometheus(self) -> str:
        return f"{NAMESPACE}_{self.label}_total"


class Gauge(_Named):
    """Metrics that the exporter observes in the cluster."""

    LAST_STEP = (
        "last_step_seconds",
        "The newest time of each step; decide and settle are those of the batch before.",
        "query",
        "step",
    )
    LAST_DECISION = (
        "last_decision_timestamp_seconds",
        "When the latest batch was decided, by its driver's clock.",
    )
    LAST_ROWS = "last_batch_rows", "Rows of the latest decided batch."
    LAST_BYTES = (
        "last_batch_bytes",
        "Bytes of keys, values and headers of the latest decided batch.",
    )
    LAST_PARTITIONS = "last_batch_partitions", "Spark's partitions of the latest decided batch."
    TIMEOUT = (
        "transaction_timeout_seconds",
        "Timeout of the tasks' transactions, as the latest vote saw it.",
    )
    VOTE_LEFT = (
        "vote_time_left_seconds",
        "Least time left until the timeout at the latest vote, over all tasks; none if the latest "
        "batch had no vote.",
    )
    UNSETTLED = (
        "unsettled",
        "1 if a part of the latest decision is not visible: still open, or lost until a replay.",
    )
    LOST = (
        "lost_partitions",
        "Partitions of the latest decision that were aborted after it; a replay writes them.",
    )
    DOUBTFUL = (
        "doubtful_partitions",
        "Partitions of the latest decision whose outcome is not known: eos-sink resolve.",
    )
    OPEN = (
        "open_transactions",
        "Open transactions; decided ones must become visible. The driver's own is not decided.",
        "query",
        "decided",
    )
    OLDEST = (
        "oldest_transaction_age_seconds",
        "Age of the oldest open transaction; 0 if none is open.",
    )
    LEAST_LEFT = (
        "least_time_left_seconds",
        "Time until Kafka aborts the first open transaction of a task; none if none is open.",
    )
    DRIVER = (
        "driver_alive",
        "1 if the query's group has a member. One that died counts until its session ends.",
    )
    READER_DELAY = (
        "reader_delay_offsets",
        "How far the last stable offsets are behind the high watermarks: what read_committed "
        "readers do not get yet, markers included.",
        "topic",
    )
    READER_HELD = (
        "readers_held_seconds",
        "How long the last stable offset of a partition has stood still with more behind it, as "
        "far as this exporter has seen; the longest of the topic.",
        "topic",
    )
    SOURCE_LAG = (
        "source_lag_offsets",
        "How far the query is behind the end of its Kafka source, markers included; none if that "
        "is not known.",
        "query",
        "group",
    )
    SOURCE_STALE = (
        "source_stale",
        "1 if a batch was decided without eos.source.group.id since: the lag is not known, and a "
        "new checkpoint stops.",
        "query",
        "group",
    )
    UNREADABLE = (
        "unreadable_records",
        "Records of the decision log that this version cannot read.",
        "",
    )
    UNKNOWN_OPEN = (
        "unknown_open_transactions",
        "Open transactions under the prefix that belong to no query of the log.",
        "",
    )
    UP = (
        "exporter_cluster_up",
        "1 if the cluster could be read; if not, there are no other values.",
        "",
    )
    UNSEEN = (
        "exporter_unseen",
        "Parts of the cluster that could not be read, usually for lack of a permission.",
        "",
    )
    DURATION = (
        "exporter_look_duration_seconds",
        "How long the exporter took to read the cluster.",
        "",
    )

    @property
    def prometheus(self) -> str:
        return f"{NAMESPACE}_{self.label}"


class Event(_Named):
    """The events of log lines."""

    COMMITTED = "committed", "A batch was decided, and all of it is visible."
    REWRITTEN = (
        "rewritten",
        "Lost partitions of a decided batch were written again; all of it is visible.",
    )
    REPLAYED = "replayed", "Spark repeated a batch that is visible already; nothing was written."
    ABORTED = "aborted", "A batch was aborted; none of its rows are visible."
    RECOVERED = "recovered", "A planner process has recovered; `run` names a new run."
    SUPERSEDED = "superseded", "This run was replaced `by` another one and writes nothing more."
