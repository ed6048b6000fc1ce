"""Reads what a query's driver needs of Spark's checkpoint, and waits for a file of it.

With asynchronous progress tracking (AsyncProgressTrackingMicroBatchExecution) a thread of Spark's
driver writes `offsets/N` while batch N runs, in the order of the batches. Without the file the next
run makes another batch N: it must not be decided before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import BatchId
from eos_sink.protocol.values import Offsets

_T = TypeVar("_T")

# Each batch waits for its file, about as long as the file takes to write.
_PAUSE_S = 0.005


class CheckpointFiles(Protocol):
    """See `eos_sink.checkpoint.Checkpoint`."""

    def stream_id(self) -> str | None: ...
    def latest_batch(self) -> int | None: ...
    def latest_commit(self) -> int | None: ...
    def constructed_ms(self, batch: int) -> int | None: ...
    def end_offsets(self, batch: int) -> Offsets | None: ...
    def reads_others(self, batch: int) -> bool: ...
    def initial_offsets(self) -> Offsets | None: ...
    def has_state(self) -> bool: ...
    def shown(self, path: str = "") -> str: ...


def check_query(files: CheckpointFiles, query: str) -> None:
    """Check whose checkpoint it is.

    Args:
        query: Spark's id of the query whose rows are written.

    Raises:
        ConfigurationError: it is another one's.
    """
    there = files.stream_id()
    if there != query:
        found = "no query's" if there is None else f"that of query {there}"
        raise stop(
            Reason.NO_CHECKPOINT if there is None else Reason.OTHER_CHECKPOINT,
            what=f"is {found}, and the rows are of query {query}",
            location=files.shown(),
        )


def await_own(
    files: CheckpointFiles, batch: BatchId, planned_ms: tuple[int, int], deadline: Deadline
) -> None:
    """Wait until this run's offsets of the batch are there.

    Args:
        planned_ms: when this process has planned the batch before, or 0, and this one, in
            milliseconds since 1970. Spark has constructed it between.

    Raises:
        CommitFailedError: they are not there by the deadline.
        SupersededError: they are another run's.
        ConfigurationError: as in `check_query`.
    """
    constructed_ms = _poll(
        deadline, lambda: files.constructed_ms(batch.batch), lambda found: found is not None
    )
    if constructed_ms is None:
        raise _missing(files, batch.batch, deadline)
    check_query(files, batch.source)
    if not planned_ms[0] <= constructed_ms <= planned_ms[1]:
        file = files.shown(f"offsets/{batch.batch}")
        raise stop(Reason.OFFSETS_OF_ANOTHER_RUN, batch=batch, file=file)


def await_begun(files: CheckpointFiles, deadline: Deadline) -> None:
    """Wait until the offsets of the batch that a run begins with are there. All files of the runs
    before are: their latest batch is replayed unless it has a commit.

    Raises:
        CommitFailedError: they are not there by the deadline.
    """

    def is_begun() -> bool:
        latest = files.latest_batch()
        # Before its commit, if the offset log was lost, from which Spark counts.
        return latest is not None and latest != files.latest_commit()

    if not _poll(deadline, is_begun, bool):
        latest = files.latest_batch()
        raise _missing(files, 0 if latest is None else latest + 1, deadline)


def _poll(deadline: Deadline, ask: Callable[[], _T], done: Callable[[_T], bool]) -> _T:
    # Operators' commands, which read no such file, start without tenacity.
    from eos_sink.kafka.retry import retry_until

    return retry_until(deadline, ask, done, _PAUSE_S)


def _missing(files: CheckpointFiles, number: int, deadline: Deadline) -> Exception:
    file = files.shown(f"offsets/{number}")
    return stop(Reason.OFFSETS_MISSING, number=number, seconds=deadline.seconds, file=file)
