"""What the errors of a batch write say to do next: the classes speak of queries, which Spark starts
again. A write is run by its user, again under its number after any error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eos_sink.errors import Action, ConfigurationError, EosSinkError
from eos_sink.messages import run_again
from eos_sink.protocol.model import BatchId, Numbering

_KEPT = (Action.FIX, Action.RESOLVE)
_UNWRITTEN = (
    "This happened before anything of this write was written: run it, or the query that makes it, "
    "again when the cause is gone."
)


@contextmanager
def add_batch_remedy(batch: BatchId | None = None) -> Iterator[None]:
    """Make the errors inside say what to do with a batch write.

    Args:
        batch: None in a plan, before anything of it is written.
    """
    try:
        yield
    except ConfigurationError:
        raise  # Nothing of it is decided, and its remedy is whole.
    except EosSinkError as error:
        if batch is not None and batch.numbering.is_by_spark:
            raise
        data = error.data
        if batch is not None and batch.numbering is Numbering.ONCE:
            data = {**data, "write_id": batch.batch}
        raise type(error)(
            error.message,
            remedy=f"{error.remedy} {run_again(batch) if batch else _UNWRITTEN}",
            data=data,
            action=error.action if error.action in _KEPT else Action.RUN_AGAIN,
        ) from error
