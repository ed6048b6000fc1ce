"""Runs unit tests on mutants: pytest collects them once, and each mutant has a fork of its own."""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from proof.guards.mutants import Mutant

_LONGEST_S = 60  # of one test: a mutant may not end


def notice(mutants: Sequence[Mutant], tests: Sequence[str]) -> Iterator[str]:
    """Run the tests on each mutant up to the first that fails, and yield that; "": none does.

    Raises:
        SystemExit: one fails without any mutant, or none is there.
    """
    read, write = os.pipe()
    if not os.fork():
        with suppress(BaseException), tempfile.TemporaryDirectory(prefix="guards-") as home:
            _collect_and_run([None, *mutants], tests, write, Path(home))
        os._exit(0)
    os.close(write)
    with open(read) as told:
        for at, line in enumerate(told):
            if at:
                yield line.strip()
            elif line.strip():
                raise SystemExit(f"fails on the whole code: {line}")
    os.wait()


def _collect_and_run(
    mutants: Sequence[Mutant | None], tests: Sequence[str], write: int, home: Path
) -> None:
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    options = ["-q", "-p", "no:cacheprovider", "-o", f"timeout={_LONGEST_S}"]
    plugin = _Forks(mutants, write)
    pytest.main([*options, f"--basetemp={home / 'tmp'}", *tests], [plugin])
    if not plugin.began:
        os.write(write, f"nothing is run: {(home / 'log').read_text()[-2000:]!r}\n".encode())


class _Forks:
    """A plugin of pytest, in place of its loop over the collected tests."""

    def __init__(self, mutants: Sequence[Mutant | None], write: int) -> None:
        self.began = False
        self._mutants = mutants
        self._write = write
        self._took = defaultdict[str, float](float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None
        self.began, items = True, session.items
        for mutant in self._mutants:
            failed, took = self._run(mutant, items)
            os.write(self._write, f"{failed}\n".encode())
            if not mutant:
                # What is quick may notice it first.
                items.sort(key=lambda item: took.get(item.nodeid, 0))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[report.nodeid] += report.duration
        if report.failed:
            self._end(report.nodeid)

    def _run(
        self, mutant: Mutant | None, items: Sequence[pytest.Item]
    ) -> tuple[str, dict[str, float]]:
        """Return the test that fails, and how long each has taken."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            self._write = write
            try:
                if mutant:
                    mutant.apply()
                for item, after in zip(items, [*items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            except BaseException as error:  # noqa: BLE001 - the fork must not go on as its parent
                self._end(f"{error!r}")
            self._end("")
        os.close(write)
        with open(read) as said:
            answer = said.read()
        os.waitpid(child, 0)
        failed, took = json.loads(answer) if answer else ("its process ended", {})
        return failed, took

    def _end(self, failed: str) -> NoReturn:
        with open(self._write, "w") as told:
            json.dump([failed, self._took], told)
        os._exit(0)
