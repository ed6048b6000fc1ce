"""Looks at a cluster when somebody asks, and not more often than it should be asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from threading import Lock

from eos_sink.errors import EosSinkError
from eos_sink.kafka.admin_interface import Admin, PartitionOffsets
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.exposition import Look, Standstill
from eos_sink.ops.observer import Observer
from eos_sink.ops.pace import topics_of
from eos_sink.ops.snapshot import Snapshot

_CLOSE_S = 1.0


class Scraper:
    """The latest look at a cluster.

    Args:
        connect: makes clients of the cluster. They are made anew after a look that found a part of
            it silent: librdkafka (2.16) may go on waiting for a coordinator long after its broker
            was started again.
        prefix: of queries whose record does not tell theirs.
        timeout: seconds that one look may take.
        interval: for so many seconds a look serves everybody who asks.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Admin]],
        prefix: str,
        timeout: float,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._prefix = prefix
        self._clients = ExitStack()
        self._admin: Admin | None = None
        self._observer: Observer | None = None
        self._timeout = timeout
        self._interval = interval
        self._clock = clock
        self._standstill = Standstill()
        self._looking = Lock()
        self._latest: Look | None = None
        self._at = 0.0

    def look(self) -> Look:
        """A new look or, within the interval, the latest one. Whoever asks during a look gets that
        one; never raises what the cluster is to blame for."""
        with self._looking:
            if self._latest is None or self._clock() - self._at >= self._interval:
                self._latest = self._take()
                self._at = self._clock()
            return self._latest

    def close(self) -> None:
        """Let go of the clients, unless a look is under way that takes long."""
        if self._looking.acquire(timeout=_CLOSE_S):
            self._let_go()
            self._looking.release()

    def _take(self) -> Look:
        begun = self._clock()
        deadline = Deadline(self._timeout)
        if self._admin is None or self._observer is None:
            self._admin = self._clients.enter_context(self._connect())
            self._observer = Observer(self._admin, self._prefix)
        try:
            snapshot = self._observer.look(deadline)
        except EosSinkError as error:
            self._let_go()
            return Look(None, (), 0, self._clock() - begun, str(error))
        ends, unseen = _ends(self._admin, snapshot, deadline)
        if snapshot.silent:
            self._let_go()
        now = self._clock()
        self._standstill = self._standstill.then(ends, now)
        readers = self._standstill.readers(ends, now)
        return Look(snapshot, readers, len(snapshot.problems) + unseen, now - begun)

    def _let_go(self) -> None:
        self._clients.close()
        self._admin = self._observer = None


def _ends(
    admin: Admin, snapshot: Snapshot, deadline: Deadline
) -> tuple[dict[str, tuple[PartitionOffsets, ...]], int]:
    """Of the topics that the latest decisions name; how many could not be seen."""
    topics = topics_of(snapshot)
    if not topics:
        return {}, 0
    try:
        answers = admin.list_offsets(topics, deadline)
    except EosSinkError:
        return {}, 1
    seen = {name: ends for name, ends in answers.items() if not isinstance(ends, Unseen)}
    return seen, len(answers) - len(seen)
