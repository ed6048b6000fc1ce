"""One run: a sink writes all flights while its driver is struck, and a reader watches."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from eos_sink.demo.aim import Aim
from eos_sink.demo.demo_errors import DemoError
from eos_sink.demo.demo_events import Progress
from eos_sink.demo.launch import Program
from eos_sink.demo.run_watch import Watch
from eos_sink.demo.strikes import Kind, Strike
from eos_sink.demo.zombie import Zombie
from eos_sink.testing.process_tree import ProcessTree, find_last_error

_LOOK_S = 0.005
_IDLE_LOOK_S = 0.05
_NO_SPARK_STARTS_IN_S = 2.0
_SHOW_EVERY_S = 0.1
_FIND_LOG_EVERY_S = 0.5
_FAILURES_AT_MOST = 4
_SILENT_AT_MOST_S = 120.0


@dataclass
class Toll:
    """What a run has suffered so far; `failures` are drivers that ended with an error."""

    kills: int = 0
    mid_commit: int = 0
    zombies: list[Zombie] = field(default_factory=list)
    failures: int = 0
    restarts: int = 0
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        """Zombies that ended with an error."""
        return sum(zombie.refused is True for zombie in self.zombies)


class Side:
    """A run in progress.

    Args:
        program: the user's program, with the run's name.
        watch: readers of the run's topic.
        batches: rows of each batch.
        strikes: what the driver has to suffer, in this order.
        progress: shows news and progress.
    """

    def __init__(
        self,
        program: Program,
        watch: Watch,
        batches: tuple[int, ...],
        strikes: tuple[Strike, ...],
        progress: Progress,
    ) -> None:
        self._name = program.name
        self._program = program
        self._watch = watch
        self._batches = batches
        commits = program.checkpoint / "commits"
        self._aims = [Aim(strike, watch, batches, commits) for strike in strikes]
        self._progress = progress
        self._toll = Toll()
        self._began = self._life_began = self._last_news = time.monotonic()
        self._shown = self._looked_for_log = 0.0
        self._records_before_life = self._records_then = 0
        self._greeted = False

    def run(self) -> Toll:
        """Until the program has written everything and ended by itself.

        Raises:
            DemoError: the driver fails again and again, or nothing moves any more.
        """
        self._progress.step(self._name, sum(self._batches))
        driver = self._start()
        try:
            while True:
                self._look()
                code = driver.exit_code
                if code == 0:
                    break
                if code is not None:
                    driver = self._start_again(driver, code)
                elif (struck := self._strike(driver)) is not None:
                    driver = struck
            self._toll.seconds = time.monotonic() - self._began
            self._outlive_zombies()
            self._watch.drain()
            self._show()
            return self._toll
        finally:
            driver.kill()
            for zombie in self._toll.zombies:
                zombie.close()

    def _start(self) -> ProcessTree:
        self._watch.new_life()
        self._life_began = self._last_news = time.monotonic()
        self._records_before_life = self._watch.records
        self._greeted = False
        return self._program.start(self._toll.restarts)

    def _restart(self) -> ProcessTree:
        self._toll.restarts += 1
        return self._start()

    def _start_again(self, driver: ProcessTree, code: int) -> ProcessTree:
        """The driver has failed by itself: do what a supervisor does."""
        driver.kill()  # its JVM or workers may still live
        self._toll.failures += 1
        why = find_last_error(driver.read_log()) or f"exit code {code}"
        if self._toll.failures > _FAILURES_AT_MOST:
            raise DemoError(f"The {self._name} driver failed again: {why}. Its log: {driver.log}")
        self._say(f"the driver ends with an error, started again: {why}")
        return self._restart()

    def _strike(self, driver: ProcessTree) -> ProcessTree | None:
        """Strike if it is the moment; the successor then."""
        if not self._aims or any(zombie.refused is None for zombie in self._toll.zombies):
            return None
        found = self._aims[0].take(driver)
        if found is None:
            return None
        aim = self._aims.pop(0)
        kind = aim.strike.kind
        if kind is Kind.ZOMBIE:
            batch = self._watch.current_batch() or 0
            self._say(f"SIGSTOP: {found}; a successor is started beside the frozen driver")
            self._toll.zombies.append(Zombie(driver, batch, self._say))
        else:
            driver.kill()
            self._toll.kills += 1
            self._toll.mid_commit += aim.in_commit
            self._say(f"SIGKILL: {found}; started again")
        return self._restart()

    def _look(self, *, last_call: bool = False) -> None:
        """Read, tell and show."""
        # Until its first rows a driver needs the processor more than we do.
        self._watch.look(_LOOK_S if self._greeted else _IDLE_LOOK_S)
        now = time.monotonic()
        waited = now - self._life_began
        if waited < _NO_SPARK_STARTS_IN_S:  # what comes now is from the driver before
            self._records_before_life = self._watch.records
        elif self._watch.records > self._records_before_life and not self._greeted:
            self._greeted = True
            if self._toll.restarts:
                self._say(f"the new driver writes its first rows {waited:.1f} s after its start")
        for zombie in self._toll.zombies:
            zombie.look(self._watch, last_call=last_call)
        if now - self._looked_for_log > _FIND_LOG_EVERY_S:
            self._looked_for_log = now
            self._watch.find_log()
        if now - self._shown > _SHOW_EVERY_S:
            self._shown = now
            self._show()
        if self._watch.records != self._records_then:
            self._records_then, self._last_news = self._watch.records, now
        elif now - self._last_news > _SILENT_AT_MOST_S:
            raise DemoError(
                f"The {self._name} driver has written nothing for {_SILENT_AT_MOST_S:.0f} s. "
                f"Its logs: {self._program.work}"
            )

    def _outlive_zombies(self) -> None:
        while any(zombie.refused is None for zombie in self._toll.zombies):
            self._look(last_call=True)

    def _show(self) -> None:
        watch = self._watch
        batches = f"{watch.whole_batches} of {len(self._batches)} batches"
        self._progress.at(watch.seen, watch.seen, f"{batches}, {watch.doubled:,} doubled")

    def _say(self, text: str) -> None:
        self._progress.say(text)
