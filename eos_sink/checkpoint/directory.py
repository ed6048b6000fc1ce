"""A query's checkpoint directory, as the driver's Python processes see it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cached_property
from typing import Protocol, TypeVar

from eos_sink.checkpoint.formats import (
    parse_batch_time,
    parse_initial_offset,
    parse_offset_log,
    parse_stream_id,
    read_kafka_offsets,
    reads_others,
)
from eos_sink.errors import EosSinkError
from eos_sink.identity import shown_location
from eos_sink.kafka_config.source_topics import SourceTopics
from eos_sink.messages import Reason, stop
from eos_sink.protocol.values import Offsets

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)(?=/|$))?(.*)", re.DOTALL)
_REMOTE = {
    "abfs": "abfs",
    "abfss": "abfss",
    "gs": "gs",
    "hdfs": "hdfs",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
}
# The mount through which Python programs of Databricks see dbfs.
_DBFS = "/dbfs"
_Answer = TypeVar("_Answer")


class Files(Protocol):
    """A directory of a file system. Paths are relative to it, with `/`."""

    def read(self, path: str) -> bytes | None:
        """The content of a file; None: there is none."""
        ...

    def names(self, path: str, *, files: bool) -> list[str]:
        """The files of a directory, or its directories; none if it does not exist."""
        ...


class Checkpoint:
    """The checkpoint of one query, read at each call.

    Every method raises an EosSinkError if the location cannot be resolved or read, or if a file
    is damaged or of an unknown format.

    Attributes:
        location: as Spark has it; may contain secrets.
    """

    def __init__(self, location: str, topics: SourceTopics | None) -> None:
        self.location = location
        self._topics = topics
        self._read_last: tuple[int, tuple[str, ...]] | None = None

    def stream_id(self) -> str | None:
        """Spark's id of the query; None: there is no file `metadata`, so no checkpoint yet."""
        content = self._read("metadata")
        return None if content is None else parse_stream_id(content, self.shown("metadata"))

    def latest_batch(self) -> int | None:
        """The latest batch that Spark has constructed."""
        return self._latest("offsets")

    def latest_commit(self) -> int | None:
        """The latest batch that Spark knows to be finished."""
        return self._latest("commits")

    def end_offsets(self, batch: int) -> Offsets | None:
        """The offsets at which the batch ends in all Kafka sources; None: there is no such batch.

        Raises:
            ConfigurationError: no source of the batch is a Kafka source, or two read a partition.
        """
        log, file = self._offset_log(batch), self.shown(f"offsets/{batch}")
        if log is None:
            return None
        self._read_last = batch, log
        offsets = read_kafka_offsets([(source, file) for source in log], self._topics)
        if offsets is None:
            selected = " that reads the given topics" if self._topics else ""
            raise stop(Reason.NO_KAFKA_SOURCE, file=file, sources=len(log), selected=selected)
        return offsets

    def reads_others(self, batch: int) -> bool:
        """True if the batch has sources that `end_offsets`, which was asked before, leaves out."""
        if self._read_last is None or self._read_last[0] != batch:
            return False
        return reads_others(self._read_last[1], self._topics, self.shown(f"offsets/{batch}"))

    def constructed_ms(self, batch: int) -> int | None:
        """When Spark has constructed the batch, in milliseconds since 1970 of its driver's clock;
        None: its offsets are not there."""
        path = f"offsets/{batch}"
        content = self._read(path)
        return None if content is None else parse_batch_time(content, self.shown(path))

    def initial_offsets(self) -> Offsets | None:
        """The offsets at which the Kafka sources have begun; None: none has begun."""
        initial = []
        for source in sorted(self._names("sources", files=False)):
            path = f"sources/{source}/0"
            content, file = self._read(path), self.shown(path)
            offset = None if content is None else parse_initial_offset(content, file)
            if offset is not None:
                initial.append((offset, file))
        return read_kafka_offsets(initial, self._topics)

    def has_state(self) -> bool:
        """True if an operator of the query keeps state, such as an aggregation."""
        return any(self._names("state", files=files) for files in (False, True))

    @cached_property
    def _files(self) -> Files:
        match = _LOCATION.fullmatch(self.location)
        if match is None:
            return LocalFiles(self.location)
        scheme, host, path = match[1].lower(), match[2] or "", match[3]
        if scheme == "file" and host in ("", "localhost"):
            return LocalFiles(path)
        if scheme == "dbfs" and not host:
            return LocalFiles(f"{_DBFS}{path}")
        if scheme not in _REMOTE:
            schemes = f"file:, dbfs:/ and {', '.join(f'{name}:' for name in _REMOTE)}"
            raise stop(Reason.UNKNOWN_LOCATION, location=self.shown(), schemes=schemes)
        # pyarrow takes long to import, and local checkpoints do without.
        from eos_sink.checkpoint.remote import RemoteFiles

        return RemoteFiles(_REMOTE[scheme], host, path)

    def _offset_log(self, batch: int) -> tuple[str, ...] | None:
        path = f"offsets/{batch}"
        content = self._read(path)
        return None if content is None else parse_offset_log(content, self.shown(path))

    def _latest(self, path: str) -> int | None:
        names = self._names(path, files=True)
        numbers = (int(name) for name in names if name.isascii() and name.isdigit())
        return max(numbers, default=None)

    def _read(self, path: str) -> bytes | None:
        return self._ask(path, lambda: self._files.read(path))

    def _names(self, path: str, *, files: bool) -> list[str]:
        return self._ask(path, lambda: self._files.names(path, files=files))

    def _ask(self, path: str, question: Callable[[], _Answer]) -> _Answer:
        """Ask the file system. The cause of an error is left out: it may contain secrets."""
        try:
            return question()
        except (OSError, ImportError, NotImplementedError) as error:
            raise self._unreadable(path, str(error)) from None
        except ValueError:
            # Its text may be the location.
            raise self._unreadable(path, "the location is malformed") from None

    def _unreadable(self, path: str, why: str) -> EosSinkError:
        said = shown_location(why.strip().partition("\n")[0])
        return stop(Reason.UNREADABLE_FILE, file=self.shown(path), why=said.rstrip("."))

    def shown(self, path: str = "") -> str:
        """A path below the location, as messages may have it."""
        location = shown_location(self.location).rstrip("/")
        return f"{location}/{path}" if path else location


class LocalFiles:
    """A local directory. It is read with every batch: 0.01 ms for a file."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def read(self, path: str) -> bytes | None:
        try:
            with open(f"{self._directory}/{path}", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def names(self, path: str, *, files: bool) -> list[str]:
        try:
            with os.scandir(f"{self._directory}/{path}") as entries:
                return [entry.name for entry in entries if entry.is_file() == files]
        except FileNotFoundError:
            return []
