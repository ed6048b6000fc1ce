"""A driver that has ended is started again; one that needs an operator is a flaw of the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proof.chaos import supervisor as module
from proof.chaos.drivers import End, ending
from proof.chaos.journal import Journal
from proof.chaos.kinds import Master
from proof.chaos.supervisor import Supervisor


@dataclass
class FakeProcesses:
    killed: int = 0

    def kill(self) -> None:
        self.killed += 1


@dataclass
class FakeLife:
    number: int
    master: Master
    home: Path
    command: Any
    stands_by: bool = False
    ended: End | None = None
    started: float = field(default_factory=time.time)
    processes: FakeProcesses = field(default_factory=FakeProcesses)

    @property
    def alive(self) -> bool:
        return self.ended is None and not self.processes.killed

    def go(self, command: Any) -> None:
        self.command, self.stands_by = command, False

    def end(self) -> End:
        return self.ended or End(-9, "", "")


@pytest.fixture
def queries() -> list[str]:
    """The latest one is what drivers run."""
    return ["the query"]


@pytest.fixture
def standbys() -> int:
    return 0


@pytest.fixture
def supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: list[str], standbys: int
) -> Iterator[Supervisor]:
    monkeypatch.setattr(module, "Life", FakeLife)
    monkeypatch.setattr(module, "_PAUSE_AFTER_ERROR_S", 0.0)
    journal = Journal(tmp_path / "journal")

    def make(_: Master) -> Any:
        return queries[-1]

    yield Supervisor(tmp_path, make, journal, standbys=standbys)
    journal.close()


def ends(supervisor: Supervisor, end: End) -> None:
    """The current driver ends by itself, and the supervisor looks twice: it buries, it starts."""
    life: Any = supervisor.life
    life.ended = end
    supervisor.look()
    supervisor.look()


def test_a_driver_that_was_killed_has_a_successor(supervisor: Supervisor) -> None:
    first = supervisor.start()
    supervisor.kill()
    supervisor.look()
    assert supervisor.life is not first
    assert [life.number for life in supervisor.lives] == [0, 1]
    assert not supervisor.flaws


@pytest.mark.parametrize("error", ["BatchFailedError", "UnfinishedError", "ClusterError", ""])
def test_what_a_restart_cures_is_no_flaw(supervisor: Supervisor, error: str) -> None:
    supervisor.start()
    ends(supervisor, End(3, error, "some text"))
    assert len(supervisor.lives) == 2
    assert not supervisor.flaws


@pytest.mark.parametrize("error", ["OperatorNeededError", "ConfigurationError", "SupersededError"])
def test_what_needs_an_operator_or_was_not_provoked_is_a_flaw(
    supervisor: Supervisor, error: str
) -> None:
    supervisor.start()
    ends(supervisor, End(3, error, "the text"))
    assert supervisor.flaws == ["driver 0: the text"]


def test_no_driver_is_started_while_it_is_held(supervisor: Supervisor) -> None:
    supervisor.start()
    with supervisor.held():
        supervisor.kill()
        supervisor.look()
        assert supervisor.life is None
    supervisor.look()
    assert supervisor.life is not None


@pytest.mark.parametrize("standbys", [2])
def test_one_that_stood_by_succeeds_a_driver_with_the_query_of_then(
    supervisor: Supervisor, queries: list[str]
) -> None:
    supervisor.start()
    supervisor.prepare()
    # Its checkpoint was moved, say.
    queries.append("of now")
    supervisor.kill()
    supervisor.look()
    life: Any = supervisor.life
    assert (life.number, life.command, life.stands_by) == (1, "of now", False)
    assert [each.number for each in supervisor.lives] == [0, 1]


def test_a_driver_that_is_set_aside_is_not_the_supervisors_any_more(supervisor: Supervisor) -> None:
    first = supervisor.start()
    assert supervisor.set_aside() is first
    assert supervisor.life is not first
    first.processes.kill()
    supervisor.look()
    assert len(supervisor.lives) == 2


def test_what_is_due_is_done_in_its_order_and_the_rest_at_the_end(supervisor: Supervisor) -> None:
    done: list[str] = []
    now = time.time()
    supervisor.start()
    supervisor.later(now + 1000, lambda: done.append("much later"))
    supervisor.later(now - 1, lambda: done.append("second"))
    supervisor.later(now - 2, lambda: done.append("first"))
    supervisor.look()
    assert done == ["first", "second"]
    supervisor.do_due()
    assert done[2:] == ["much later"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x\neos_sink.errors.CommitFailedError: The batch took 20 s. y", "CommitFailedError"),
        ("pyspark.errors.PySparkException: Python worker exited", ""),
        ("", ""),
    ],
)
def test_the_sinks_error_is_found_in_what_spark_says(text: str, error: str) -> None:
    found = ending(3, text)
    assert found.error == error
    assert found.text == "" or found.text.startswith(("eos_sink.errors", "pyspark", "Exception"))
