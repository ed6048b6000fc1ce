"""One run: a sink writes all flights while its driver is struck, and a reader watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from textwrap import shorten

from eos_sink_lab.demo.demo_result import DemoError, RunResult
from eos_sink_lab.demo.driver_program import DriverProgram
from eos_sink_lab.demo.run_watch import Watch
from eos_sink_lab.demo.strikes import Aim, Kind, Strike
from eos_sink_lab.progress import Progress
from eos_sink_lab.testing.process_tree import ProcessTree, find_last_error

_LOOK_S = 0.005
_IDLE_LOOK_S = 0.05
_FASTEST_START_S = 2.0
_SHOW_EVERY_S = 0.1
_FIND_LOG_EVERY_S = 0.5
_MAX_FAILURES = 4
_MAX_SILENCE_S = 300.0
_AUDIT_TIMEOUT_S = 120.0
_ZOMBIE_ENDS_WITHIN_S = 60.0
_MAX_ERROR_LENGTH = 130


class Zombie:
    """A frozen driver whose successor works.

    Args:
        driver: frozen.
        batch: what it was writing. It is woken when its successor is at a later one.
        say: prints one line of news.

    Attributes:
        refused: whether it ended with an error; None while it lives.
    """

    def __init__(self, driver: ProcessTree, batch: int, say: Callable[[str], None]) -> None:
        self._driver = driver
        self._batch = batch
        self._say = say
        self._woken: float | None = None
        self.refused: bool | None = None

    def look(self, watch: Watch, *, last_call: bool = False) -> None:
        """Wake it when it is time, then wait for its end without blocking.

        Args:
            watch: readers of the run.
            last_call: the successor has ended: wake it in any case.
        """
        if self.refused is not None:
            return
        if self._woken is None:
            batch = watch.current_batch()
            if last_call or (batch is not None and batch > self._batch):
                self._woken = time.monotonic()
                self._driver.resume()
                self._say("SIGCONT: the frozen driver wakes up, its successor is at work")
            return
        awake_s = time.monotonic() - self._woken
        code = self._driver.exit_code
        if code is not None:
            self.refused = code != 0
            error = find_last_error(self._driver.read_log()) or f"exit code {code}"
            verb = "gives up" if self.refused else "ends without an error"
            error = shorten(error, _MAX_ERROR_LENGTH)
            self._say(f"the woken driver {verb} after {awake_s:.1f} s: {error}")
        elif awake_s > _ZOMBIE_ENDS_WITHIN_S:
            self.refused = False
            self._driver.kill()
            self._say(f"the woken driver still ran after {awake_s:.0f} s; killed")

    def close(self) -> None:
        self._driver.kill()


class StruckRun:
    """A run in progress.

    Args:
        program: the user's program.
        watch: readers of the run's topic.
        batches: rows of each batch.
        strikes: in this order.
        progress: shows news and progress.
    """

    def __init__(
        self,
        program: DriverProgram,
        watch: Watch,
        batches: tuple[int, ...],
        strikes: tuple[Strike, ...],
        progress: Progress,
    ) -> None:
        self._program = program
        self._watch = watch
        self._batches = batches
        commits = program.checkpoint / "commits"
        self._aims = [Aim(strike, watch, batches, commits) for strike in strikes]
        self._progress = progress
        self._zombies: list[Zombie] = []
        self._kills = self._mid_commit = self._failures = self._restarts = 0
        self._began = self._life_began = self._last_news = time.monotonic()
        self._last_show = self._last_log_search = 0.0
        self._records_before_life = self._last_records = 0
        self._has_written = False

    def run(self) -> RunResult:
        """Run until the program has written everything and ended by itself; then read it all.

        Raises:
            DemoError: the driver fails again and again, or makes no progress.
            ReaderError: a reader did not get to the end.
        """
        self._progress.step(self._program.name, sum(self._batches))
        driver = self._start()
        try:
            while True:
                self._look()
                code = driver.exit_code
                if code == 0:
                    break
                driver = self._strike(driver) if code is None else self._start_again(driver, code)
            seconds = time.monotonic() - self._began
            while any(zombie.refused is None for zombie in self._zombies):
                self._look(last_call=True)
            self._watch.drain()
            self._show()
        finally:
            driver.kill()
            for zombie in self._zombies:
                zombie.close()
        return RunResult(
            name=self._program.name,
            sink=f"format('{self._program.sink}')",
            audit=self._watch.audit(_AUDIT_TIMEOUT_S),
            kills=self._kills,
            mid_commit=self._mid_commit,
            zombies=len(self._zombies),
            refused=sum(zombie.refused is True for zombie in self._zombies),
            restarts=self._restarts,
            seconds=seconds,
        )

    def _start(self) -> ProcessTree:
        self._watch.new_life()
        self._life_began = self._last_news = time.monotonic()
        self._records_before_life = self._watch.records
        self._has_written = False
        return self._program.start(self._restarts)

    def _restart(self) -> ProcessTree:
        self._restarts += 1
        return self._start()

    def _start_again(self, driver: ProcessTree, code: int) -> ProcessTree:
        """The driver has failed: do what a supervisor does."""
        driver.kill()  # Its JVM or workers may still live.
        self._failures += 1
        error = find_last_error(driver.read_log()) or f"exit code {code}"
        if self._failures > _MAX_FAILURES:
            name = self._program.name
            raise DemoError(f"The {name} driver failed again: {error}. Its log: {driver.log}")
        self._progress.say(f"the driver ends with an error, started again: {error}")
        return self._restart()

    def _strike(self, driver: ProcessTree) -> ProcessTree:
        """Strike if the moment has come, and return the successor; otherwise the driver."""
        if not self._aims or any(zombie.refused is None for zombie in self._zombies):
            return driver
        found = self._aims[0].take(driver)
        if found is None:
            return driver
        aim = self._aims.pop(0)
        if aim.strike.kind is Kind.ZOMBIE:
            batch = self._watch.current_batch() or 0
            self._progress.say(f"SIGSTOP: {found}; a successor is started beside the frozen driver")
            self._zombies.append(Zombie(driver, batch, self._progress.say))
        else:
            driver.kill()
            self._kills += 1
            self._mid_commit += aim.in_commit
            self._progress.say(f"SIGKILL: {found}; started again")
        return self._restart()

    def _look(self, *, last_call: bool = False) -> None:
        """Read what is new, and show it."""
        # Until its first rows a driver needs the processor more than the reader does.
        self._watch.look(_LOOK_S if self._has_written else _IDLE_LOOK_S)
        now, records = time.monotonic(), self._watch.records
        since_start = now - self._life_began
        if since_start < _FASTEST_START_S:  # These are rows of the driver before.
            self._records_before_life = records
        elif records > self._records_before_life and not self._has_written:
            self._has_written = True
            if self._restarts:
                text = f"the new driver writes its first rows {since_start:.1f} s after its start"
                self._progress.say(text)
        for zombie in self._zombies:
            zombie.look(self._watch, last_call=last_call)
        if now - self._last_log_search > _FIND_LOG_EVERY_S:
            self._last_log_search = now
            self._watch.find_log()
        if now - self._last_show > _SHOW_EVERY_S:
            self._last_show = now
            self._show()
        if records != self._last_records:
            self._last_records, self._last_news = records, now
        elif now - self._last_news > _MAX_SILENCE_S:
            raise DemoError(
                f"The {self._program.name} driver has written nothing for {_MAX_SILENCE_S:.0f} s. "
                f"Its logs: {self._program.work}"
            )

    def _show(self) -> None:
        watch = self._watch
        batches = f"{watch.whole_batches} of {len(self._batches)} batches"
        self._progress.at(watch.seen, watch.seen, f"{batches}, {watch.doubled:,} doubled")
