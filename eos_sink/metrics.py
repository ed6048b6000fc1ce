"""The names of all that is measured: the one place of them for records, log lines and Prometheus.

A value is the name as it stands in the decision log and in log lines; a Prometheus name is made of
it. docs/metrics.md shows the tables.
"""

from __future__ import annotations

from enum import Enum


class _Named(Enum):
    """A name and what it means."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> _Named:
        member = object.__new__(cls)
        member._value_ = name
        member.meaning = meaning
        return member

    @property
    def label(self) -> str:
        """The name."""
        return str(self.value)


class Step(_Named):
    """The steps of a batch, in their order. Of steps that tasks do the slowest task counts."""

    OPEN = "open", "Get a transactional producer its id, in the slowest task."
    WRITE = (
        "write",
        "From the beginning of the transaction until all rows are on the brokers, in the slowest "
        "task; Spark's work for rows that come later than the first is in it.",
    )
    VOTE = "vote", "Ask the coordinators whether all that is prepared is open still."
    DECIDE = "decide", "Write the decision into the log."
    SETTLE = "settle", "Commit all transactions of the decision."


class Count(_Named):
    """What is counted in the decision log, from the first record that has figures on."""

    BATCHES = "batches", "Batches that were decided."
    ROWS = "rows", "Rows of the decided batches."
    BYTES = "bytes", "Bytes of keys, values and headers of the decided batches' rows."
    TRANSACTIONS = (
        "transactions",
        "Transactions that decisions named, those of rewritten partitions included.",
    )
    REWRITES = (
        "rewritten_partitions",
        "Partitions that were lost after their decision and written again.",
    )
    REPLAYS = (
        "replays",
        "Batches that Spark repeated and that were found to be written already.",
    )
    ABORTS = (
        "aborts",
        "Batches that were given up: by abort(), or by the next plan, which found them open.",
    )
    RUNS = (
        "runs",
        "Times that another run of the query began; each fences the one before it.",
    )
    RECOVERIES = (
        "recoveries",
        "Recoveries: of new runs, of further planner processes, and after an ended session.",
    )


class Event(_Named):
    """What a log line can tell of; `event` in it has the name."""

    COMMITTED = "committed", "A batch was decided, and all of it is visible."
    REWRITTEN = "rewritten", "The same of a batch whose lost partitions were written again."
    REPLAYED = "replayed", "Spark repeated a batch that is visible already; nothing was written."
    ABORTED = "aborted", "A batch was given up; nothing of it is visible."
    RECOVERED = "recovered", "A planner process has recovered; `run` tells of a new run."
    SUPERSEDED = "superseded", "This run was replaced, `by` whom, and writes nothing any more."
