"""The clients of a process's queries, which it keeps between batches.

Spark's processes serve all queries of a session and their restarts, a `foreachBatch` may write to
the same topic of two clusters in turns, and several threads of a user's driver write at once.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from eos_sink.errors import OutcomeUnknownError

if TYPE_CHECKING:
    from eos_sink.kafka.interfaces import Kafka
    from eos_sink.sink_options import SinkOptions

# Closing a planner does not end its batch: the membership lives until the group's session ends, as
# it does when Spark ends an idle process.
_IDLE_S = 600.0
_PATIENCE_S = 10.0
_LOGGER = logging.getLogger("eos_sink.driver")


class Closable(Protocol):
    """`close` leaves no client, thread or socket behind."""

    def close(self) -> None: ...


Connect = Callable[["SinkOptions"], "Kafka"]
T = TypeVar("T", bound=Closable)
Key = tuple[frozenset[str], str]


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    made_from: tuple[SinkOptions, str] | None = None
    value: T | None = None
    used_s: float = 0.0

    def close(self) -> None:
        value, self.value = self.value, None
        try:
            if value is not None:
                value.close()
        except Exception:
            # It concerns another query, or a run that has ended.
            _LOGGER.warning("Clients that are no longer needed were not closed.", exc_info=True)


class ClientCache(Generic[T]):
    """One value for each query of each cluster, which one thread has at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[Key, _Entry[T]] = {}

    @contextmanager
    def lease(self, options: SinkOptions, make: Callable[[], T], run: str = "") -> Iterator[T]:
        """The query's value; other threads that want it wait.

        A value that was made from other options, or for another run, is closed first; so are those
        of other queries that were not used for ten minutes.

        Args:
            make: makes the value.
            run: Spark's run id of the query, if each of its runs needs a value of its own.
        """
        servers = options.cluster.servers.lower().split(",")
        key = frozenset(server.strip() for server in servers), options.names.group
        # One call, so that two threads get the same entry.
        entry: _Entry[T] = self._entries.setdefault(key, _Entry())
        self._close_idle(entry)
        if not entry.lock.acquire(timeout=_PATIENCE_S):
            _LOGGER.warning(
                "Query %s: waiting for another thread of this process that writes a batch.",
                options.names.query,
            )
            entry.lock.acquire()
        try:
            if entry.value is None or entry.made_from != (options, run):
                entry.close()
                entry.value, entry.made_from = make(), (options, run)
            # What it does imports more than what it is made with.
            with explain_missing_library():
                yield entry.value
        except OutcomeUnknownError:
            # Its clients may know no broker any more that is there; the next start has new ones.
            entry.close()
            raise
        finally:
            entry.used_s = self._clock()
            entry.lock.release()

    def _close_idle(self, current: _Entry[T]) -> None:
        for entry in list(self._entries.values()):
            if entry is not current and entry.lock.acquire(blocking=False):
                # Ctrl-C may interrupt the close.
                try:
                    if self._clock() - entry.used_s >= _IDLE_S:
                        entry.close()
                finally:
                    entry.lock.release()


@contextmanager
def explain_missing_library() -> Iterator[None]:
    """Explain a missing or old library: workers often run another Python than the driver."""
    try:
        yield
    except ImportError as error:
        problem = (
            f"has no module {error.name!r}"
            if isinstance(error, ModuleNotFoundError)
            else f"cannot load what eos-sink needs: {error}"
        )
        from eos_sink.messages import Reason, stop

        raise stop(Reason.MISSING_LIBRARY, python=sys.executable, problem=problem) from error


def connect(options: SinkOptions) -> Kafka:
    """The real clients."""
    with explain_missing_library():
        from eos_sink.kafka.cluster import ConfluentKafka

    return ConfluentKafka(options.cluster, options.step_timeout)
