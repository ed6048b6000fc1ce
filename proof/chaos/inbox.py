"""What the query reads: files, or a topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from confluent_kafka import Producer

_KEPT = 300
"""Older files are deleted, so that listing the directory stays fast."""
_PATIENCE_S = 120.0


class Inbox(Protocol):
    """Takes rows; the rows of one call become visible to the query at once."""

    def put(self, rows: Mapping[int, str]) -> None:
        """Deliver rows, a line of text by number."""
        ...


class FileInbox:
    """Each delivery is a file, which becomes a micro-batch.

    Args:
        directory: the query's input.
        hidden: on the same file system; files appear in `directory` whole.
    """

    def __init__(self, directory: Path, hidden: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._hidden = directory, hidden
        self._files = 0

    def put(self, rows: Mapping[int, str]) -> None:
        self._hidden.write_text("".join(f"{line}\n" for line in rows.values()))
        self._hidden.rename(self._file(self._files))
        self._files += 1
        self._file(self._files - _KEPT).unlink(missing_ok=True)

    def _file(self, number: int) -> Path:
        return self._directory / f"{number:07}.jsonl"


class TopicInbox:
    """Each delivery is a transaction, whose rows appear in each partition at once.

    Args:
        servers: the brokers.
        topic: the query's source.
        keys: how many different keys the rows have.
    """

    def __init__(self, servers: str, topic: str, keys: int) -> None:
        self._topic, self._keys = topic, keys
        self._producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
        self._producer.init_transactions(_PATIENCE_S)

    def put(self, rows: Mapping[int, str]) -> None:
        self._producer.begin_transaction()
        for number, line in rows.items():
            self._producer.produce(self._topic, line, key=str(number % self._keys))
        self._producer.commit_transaction(_PATIENCE_S)
