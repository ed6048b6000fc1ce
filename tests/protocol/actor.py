"""Coroutines by threads: only one moves at a time, so every interleaving is chosen and repeats."""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore, Thread, current_thread


class Gone(BaseException):
    """The process is no more: its thread ends."""


class Actor:
    """Work that can be stopped at any point inside, left there, and resumed later."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._resume = Semaphore(0)
        self._yielded = Semaphore(0)
        self._thread = Thread(target=self._main, daemon=True)
        self._started = self._gone = False
        self.finished = self.moves = False
        self.error: BaseException | None = None

    def go(self) -> bool:
        """Let it run until it parks or ends; whether it has ended."""
        self.moves = True
        if self._started:
            self._resume.release()
        else:
            self._started = True
            self._thread.start()
        self._yielded.acquire()
        self.moves = False
        return self.finished

    def finish(self) -> None:
        """Let it run to its end."""
        assert self.go()

    def park(self) -> None:
        """Called from inside: return control to the caller of `go`, until the next call."""
        self._yielded.release()
        self._resume.acquire()
        if self._gone:
            raise Gone

    def end(self) -> None:
        """End its thread, which stands in `park` and would keep all that it has seen."""
        if not self.finished:
            self._gone = True
            self._resume.release()
            self._thread.join()

    @property
    def here(self) -> bool:
        """Whether the caller is inside."""
        return current_thread() is self._thread

    def _main(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - the caller of `go` handles it
            self.error = error
        self.finished = True
        self._yielded.release()
