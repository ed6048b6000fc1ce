"""The cells: combinations of versions, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch

# The newest patch of each Spark, and the Pythons that its package names.
SPARKS = {
    "4.1.4": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "4.2.1": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "4.3.0": ("3.11", "3.12", "3.13", "3.14"),
}
KAFKAS = ("3.9.1", "4.3.0")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, order=True)
class Cell:
    """One combination of versions; its name is `SPARK-PYTHON-KAFKA`."""

    spark: str
    python: str
    kafka: str

    @property
    def name(self) -> str:
        return f"{self.spark}-{self.python}-{self.kafka}"

    @property
    def environment(self) -> str:
        """What the cells of both Kafkas share: a virtual environment."""
        return f"spark{self.spark}-python{self.python}"

    @property
    def refused(self) -> str | None:
        """Why this Spark is not for this Python, or None."""
        if self.python in SPARKS[self.spark]:
            return None
        return f"Spark {self.spark} needs Python {SPARKS[self.spark][0]} or newer"

    @staticmethod
    def parse(name: str) -> Cell:
        return Cell(*name.split("-"))


ALL = tuple(
    Cell(spark, python, kafka) for spark in SPARKS for python in PYTHONS for kafka in KAFKAS
)


def select(pattern: str) -> list[Cell]:
    """Those whose name matches: `4.3.0-*`, or `*-3.14-*`.

    Raises:
        ValueError: there is none.
    """
    found = [cell for cell in ALL if fnmatch(cell.name, pattern)]
    if not found:
        raise ValueError(f"No cell is called {pattern!r}; one is {ALL[0].name}.")
    return found
