"""Which cells there are, and what the page shows of them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from proof.matrix.cells import ALL, KAFKAS, PYTHONS, SPARKS, Cell, select
from proof.matrix.outcome import Outcome, Verdict, keep, read_all
from proof.matrix.publish import PAGE, published, with_outcomes

RAN = Outcome(
    Cell("4.2.1", "3.9", "3.9.1"),
    Verdict.RAN,
    killed_at=100,
    rows=750,
    modes={"update": "refused", "complete": "works"},
    versions={"python": "3.9.2", "pyarrow": "20"},
)
CANNOT = Outcome(Cell("4.2.1", "3.10", "4.3.0"), Verdict.CANNOT, why="no | Python")


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.name)
def test_a_name_says_which_cell_it_is(cell: Cell) -> None:
    assert Cell.parse(cell.name) == cell
    assert select(cell.name) == [cell]


def test_cells_are_chosen_by_pattern() -> None:
    chosen = select("4.3.0-*-3.9.1")
    assert {cell.kafka for cell in chosen} == {"3.9.1"}
    assert {cell.spark for cell in chosen} == {"4.3.0"}
    with pytest.raises(ValueError, match="one is 3"):
        select("5.0.0-*")


def test_a_spark_refuses_the_pythons_that_it_does_not_name() -> None:
    for cell in ALL:
        assert (cell.refused is None) == (cell.python in SPARKS[cell.spark])
    assert "3.11 or newer" in str(Cell("4.3.0", "3.10", "4.3.0").refused)
    assert "3.11 or older" in str(Cell("3.5.9", "3.14", "4.3.0").refused)


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.name)
def test_the_extra_of_a_cell_allows_its_spark(cell: Cell) -> None:
    setup = configparser.ConfigParser()
    setup.read(PAGE.parent.parent / "setup.cfg")
    ((least, below),) = re.findall(
        r"pyspark>=(\d+)[.\d]*,<(\d+)", setup["options.extras_require"][cell.extra]
    )
    assert int(least) <= int(cell.spark[0]) < int(below)


def test_outcomes_are_kept_and_found(tmp_path: Path) -> None:
    for outcome in (RAN, CANNOT):
        keep(outcome, tmp_path)
    assert read_all(tmp_path) == [CANNOT, RAN]


def test_the_published_page_is_that_of_the_published_outcomes() -> None:
    outcomes = published()
    assert with_outcomes(PAGE.read_text(), outcomes) == PAGE.read_text()
    assert {outcome.cell.kafka for outcome in outcomes} == set(KAFKAS)
    assert not [outcome.cell.name for outcome in outcomes if outcome.verdict is Verdict.FAILED]


def test_the_package_names_each_python_of_the_matrix() -> None:
    metadata = configparser.ConfigParser()
    metadata.read(PAGE.parent.parent / "setup.cfg")
    named = re.findall(r"Python :: (3\.\d+)", metadata["metadata"]["classifiers"])
    assert tuple(named) == PYTHONS
