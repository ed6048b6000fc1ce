"""Restarts the driver whenever it ends, like any supervisor of a streaming query."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

from proof.chaos.drivers import End, Life, MakeCommand
from proof.chaos.journal import Journal
from proof.chaos.kinds import Master

_LOOK_AGAIN_S = 0.02
_PAUSE_AFTER_ERROR_S = 1.0
_STARTS_WITHIN_S = 30.0


class Supervisor:
    """Supervises the driver while the caller waits in `until`; not thread-safe.

    Args:
        home: gets a directory for each driver.
        make: returns the command for a driver.
        journal: records events.
        replace: does what the error of a driver says, if a fault explains it; returns whether.
        standbys: drivers without a cluster that `prepare` keeps ready.

    Attributes:
        master: where the next driver runs.
        life: the current driver; None between two.
        lives: all drivers.
        flaws: drivers that ended in a way that no fault explains.
    """

    def __init__(
        self,
        home: Path,
        make: MakeCommand,
        journal: Journal,
        replace: Callable[[End], bool] = lambda _: False,
        standbys: int = 0,
    ) -> None:
        self._home, self._make, self._journal, self._replace = home, make, journal, replace
        self._held = False
        self._made = 0
        self._ready: deque[Life] = deque()
        self._standbys = standbys
        self.lives: list[Life] = []
        self._not_before = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []
        self.master = Master.LOCAL
        self.life: Life | None = None
        self.flaws: list[str] = []

    def start(self) -> Life:
        """Start a driver; others may still run."""
        if self._ready and self.master is Master.LOCAL:
            life = self._ready.popleft()
            life.go(self._make(life.master))
        else:
            life = self._new(self.master, stands_by=False)
        self.life = life
        self.lives.append(life)
        self._journal.note("start", life=life.number, master=life.master.value)
        return life

    def prepare(self) -> None:
        """Let as many drivers stand by as there should be: a JVM and a session are the longest part
        of a recovery, and have nothing to do with what is recovered."""
        while len(self._ready) < self._standbys:
            self._ready.append(self._new(Master.LOCAL, stands_by=True))

    def _new(self, master: Master, *, stands_by: bool) -> Life:
        number = self._made
        self._made += 1
        home = self._home / f"life-{number:03}"
        return Life(number, master, home, self._make(master), stands_by)

    def later(self, moment: float, action: Callable[[], None]) -> None:
        """Schedule an action for a time (seconds since the epoch)."""
        self._due.append((moment, action))

    def wait_due(self) -> None:
        """Wait until all scheduled actions are done."""
        while self._due:
            self.look()
            time.sleep(_LOOK_AGAIN_S)

    def do_due(self, before: float = float("inf")) -> None:
        """Carry out the actions that are scheduled before a time, by default all."""
        for entry in sorted(self._due, key=itemgetter(0)):
            if entry[0] <= before:
                self._due.remove(entry)
                entry[1]()

    def look(self) -> None:
        """Carry out due actions, and restart the driver if it has ended."""
        self.do_due(time.time())
        if self.life is not None and not self.life.alive:
            self._bury(self.life)
            self.life = None
        if self.life is None and not self._held and time.monotonic() >= self._not_before:
            self.start()

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Supervise until the condition holds; return whether it did in time."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            self.look()
            time.sleep(_LOOK_AGAIN_S)
        return True

    def pause(self, seconds: float) -> None:
        """Supervise for so long."""
        self.until(lambda: False, seconds)

    def kill(self) -> float:
        """SIGKILL the current driver with all its processes; return when."""
        life = self.wait_life()
        now = time.time()
        life.processes.kill()
        return now

    def wait_life(self) -> Life:
        """The current driver; between two, the next one."""
        self.until(lambda: self.life is not None, _STARTS_WITHIN_S)
        assert self.life is not None
        return self.life

    def starts_since(self, moment: float) -> Life | None:
        """The first life that was started after a moment (seconds, epoch), dead or alive."""
        return next((life for life in self.lives if life.started > moment), None)

    def set_aside(self) -> Life:
        """Hand the current driver over to the caller, and start the next one."""
        aside = self.life
        assert aside is not None
        self.start()
        return aside

    @contextmanager
    def held(self) -> Iterator[None]:
        """Start no driver within the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def close(self) -> None:
        for life in (self.life, *self._ready):
            if life is not None:
                life.processes.kill()

    def _bury(self, life: Life) -> None:
        end = life.end()
        life.processes.kill()  # Also what the driver left behind.
        said = f": {end.error or end.text[:90]}" if end.text else ""
        self._journal.note("end", life=life.number, code=end.code, error=end.error, text=end.text)
        self._journal.say(f"    driver {life.number} ended with {end.code}{said}")
        if self._replace(end):
            self._journal.note("replaced", say="    a new checkpoint", error=end.error)
        elif end.needs_a_person or end.error == "SupersededError":
            self.flaws.append(f"driver {life.number}: {end.text}")
        if end.text:
            self._not_before = time.monotonic() + _PAUSE_AFTER_ERROR_S
