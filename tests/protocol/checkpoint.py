"""What Spark notes of a query in its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from eos_sink.protocol.model import BatchId


class AnotherRun(Exception):
    """Another run of the query has written to its checkpoint."""


@dataclass
class Checkpoint:
    """The directory of a query. A batch that is in the offset log but not in the commit log is
    replayed.

    Attributes:
        stream: the id of the query, with the prefix of its numbering.
        offsets: batches in the offset log.
        commits: batches in the commit log.
        end: where the input of the query ends; None: where the world's does.
        first: which batch of the input is batch 0.
    """

    stream: str = "stream-1"
    offsets: int = 0
    commits: int = 0
    end: int | None = None
    first: int = 0

    def begin(self) -> BatchId:
        """Note the next batch, or the one that is not committed, in the offset log."""
        self.offsets = max(self.offsets, self.commits + 1)
        return BatchId(self.stream, self.commits)

    def commit(self, batch: BatchId) -> None:
        """Note in the commit log that the batch has succeeded."""
        if self.commits != batch.batch:
            raise AnotherRun
        self.commits += 1
