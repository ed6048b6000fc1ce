"""A process keeps one planner or committer for each of its queries between batches.

Spark's processes serve all queries of a session and their restarts, and a `foreachBatch` may write
to the same topic of two clusters in turns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from eos_sink.options import SinkOptions

# Closing a planner does not end its batch: the membership lives until the group's session ends, as
# it does when Spark ends an idle process.
_IDLE_S = 600.0
_LOGGER = logging.getLogger("eos_sink.driver")


class Closable(Protocol):
    """`close` leaves no client, thread or socket behind."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)
Key = tuple[frozenset[str], str]


@dataclass
class _Entry(Generic[T]):
    options: SinkOptions
    value: T
    used_s: float


class ClientCache(Generic[T]):
    """One value for each query of each cluster. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[Key, _Entry[T]] = {}

    def get(self, options: SinkOptions, make: Callable[[], T]) -> T:
        """The query's value. Closes a value that was made from other options, and those of other
        queries that were not used for ten minutes."""
        servers = options.cluster.servers.lower().split(",")
        key = frozenset(server.strip() for server in servers), options.names.group
        now_s = self._clock()
        for other, entry in list(self._entries.items()):
            replaced = other == key and entry.options != options
            idle = other != key and now_s - entry.used_s >= _IDLE_S
            if replaced or idle:
                del self._entries[other]
                _close(entry.value)
        if key not in self._entries:
            self._entries[key] = _Entry(options, make(), now_s)
        self._entries[key].used_s = now_s
        return self._entries[key].value


def _close(value: Closable) -> None:
    try:
        value.close()
    except Exception:
        # It concerns another query than the current batch's.
        _LOGGER.warning("Clients that are no longer needed were not closed.", exc_info=True)
