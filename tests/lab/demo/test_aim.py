"""A strike falls at the moment that was planned, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from eos_sink_lab.demo.run_watch import Watch
from eos_sink_lab.demo.strikes import TRIES_FOR_A_COMMIT, TRIES_FOR_THE_MIDDLE, Aim, Kind, Strike
from eos_sink_lab.testing.process_tree import ProcessTree

BATCHES = (10,) * 20


class FakeWatch:
    """Kafka as the test sets it; what comes to light after freezing is in `after_freezing`."""

    def __init__(self, *, decides: bool = True) -> None:
        self.decides = decides
        self.shown = dict.fromkeys(range(len(BATCHES)), 0)
        self.rows = dict.fromkeys(range(len(BATCHES)), 0)
        self.decisions: set[int] = set()
        self.batch: int | None = None
        self.after_freezing: dict[int, int] = {}
        self.steps_to_decision = 0

    def write(self, batch: int, rows: int) -> None:
        self.batch = batch
        self.rows[batch] = rows

    def show(self, batch: int, rows: int) -> None:
        self.shown[batch] = rows

    def look(self, wait_s: float) -> None:
        """The decision comes after some steps of the driver."""
        self.steps_to_decision -= 1
        if self.steps_to_decision == 0 and self.batch is not None:
            self.rows[self.batch] = BATCHES[self.batch]
            self.decisions.add(self.batch)

    def drain(self) -> None:
        self.rows.update(self.after_freezing)

    def current_batch(self) -> int | None:
        return self.batch

    def visible(self, batch: int) -> int:
        return self.shown[batch]

    def written(self, batch: int) -> int:
        return self.rows[batch]

    def whole(self, batch: int) -> bool:
        return self.rows[batch] >= BATCHES[batch]

    def decided(self, batch: int) -> bool:
        return self.whole(batch) and (not self.decides or batch in self.decisions)


class FakeDriver:
    def __init__(self) -> None:
        self.frozen = False
        self.freezes = 0

    def pause(self) -> None:
        assert not self.frozen
        self.frozen = True
        self.freezes += 1

    def resume(self) -> None:
        self.frozen = False


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


def aim(strike: Strike, watch: FakeWatch, commits: Path) -> Aim:
    return Aim(strike, cast(Watch, watch), BATCHES, commits)


def take(one: Aim, driver: FakeDriver) -> str | None:
    return one.take(cast(ProcessTree, driver))


WRITING = Strike(Kind.WHILE_WRITING, 3, 0.5)
COMMITTING = Strike(Kind.WHILE_COMMITTING, 3, 0.9)


def test_a_strike_waits_for_its_batch(driver: FakeDriver, tmp_path: Path) -> None:
    watch = FakeWatch()
    one = aim(WRITING, watch, tmp_path)

    assert take(one, driver) is None
    watch.write(2, 6)
    assert take(one, driver) is None
    assert driver.freezes == 0


def test_a_strike_waits_for_its_share_of_the_rows(driver: FakeDriver, tmp_path: Path) -> None:
    watch = FakeWatch()
    one = aim(WRITING, watch, tmp_path)

    watch.write(3, 4)
    assert take(one, driver) is None
    assert driver.freezes == 0

    watch.write(3, 5)
    assert take(one, driver) == "batch 3, 5 of its 10 rows written"
    assert driver.frozen


def test_a_batch_that_was_written_whole_meanwhile_is_let_go(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch()
    one = aim(WRITING, watch, tmp_path)

    watch.write(3, 5)
    watch.after_freezing = {3: 10}
    assert take(one, driver) is None
    assert not driver.frozen

    watch.after_freezing = {}
    watch.write(4, 7)
    assert take(one, driver) == "batch 4, 7 of its 10 rows written"


def test_mid_commit_needs_a_decision_and_rows_that_are_not_visible_yet(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch()
    one = aim(COMMITTING, watch, tmp_path)

    watch.write(3, 8)
    assert take(one, driver) is None
    assert driver.freezes == 0

    watch.write(3, 9)
    watch.show(3, 4)
    watch.steps_to_decision = 3
    assert take(one, driver) == "batch 3, decided, 4 of its 10 rows visible"
    assert driver.frozen
    assert driver.freezes == 3


def test_a_decision_that_does_not_come_is_not_waited_for_for_ever(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch()
    watch.write(3, 10)

    assert take(aim(COMMITTING, watch, tmp_path), driver) is None
    assert not driver.frozen


def test_a_batch_that_spark_knows_to_be_done_is_not_in_mid_commit(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch()
    watch.write(3, 10)
    watch.decisions.add(3)
    (tmp_path / "3").touch()

    assert take(aim(COMMITTING, watch, tmp_path), driver) is None
    assert not driver.frozen


def test_after_some_misses_the_end_of_a_commit_will_do(driver: FakeDriver, tmp_path: Path) -> None:
    watch = FakeWatch()
    one = aim(COMMITTING, watch, tmp_path)
    found = None
    tries = 0
    for batch in range(3, 3 + TRIES_FOR_THE_MIDDLE):
        watch.write(batch, 10)
        watch.decisions.add(batch)
        watch.show(batch, 10)
        found = take(one, driver)
        tries += 1
        if found:
            break

    assert tries == TRIES_FOR_THE_MIDDLE
    assert found == f"batch {batch}, decided, 10 of its 10 rows visible"


def test_a_sink_without_decisions_is_struck_before_spark_knows(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch(decides=False)
    watch.write(3, 10)
    watch.show(3, 10)

    found = take(aim(COMMITTING, watch, tmp_path), driver)

    assert found == "batch 3, all rows written, Spark not told that it is done"


def test_a_commit_that_is_never_caught_becomes_a_kill_while_writing(
    driver: FakeDriver, tmp_path: Path
) -> None:
    watch = FakeWatch()
    one = aim(COMMITTING, watch, tmp_path)
    for batch in range(3, 3 + TRIES_FOR_A_COMMIT):
        watch.write(batch, 10)
        assert take(one, driver) is None

    watch.write(batch + 1, 6)
    assert take(one, driver) == f"batch {batch + 1}, 6 of its 10 rows written"
    assert not one.in_commit
