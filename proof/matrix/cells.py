"""The cells: combinations of versions, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch

# The newest patch of each Spark, and the Pythons that its package names.
SPARKS = {
    "3.5.9": ("3.10", "3.11"),
    "4.0.5": ("3.10", "3.11", "3.12", "3.13"),
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
        named = SPARKS[self.spark]
        if self.python in named:
            return None
        early = PYTHONS.index(self.python) < PYTHONS.index(named[0])
        bound = f"{named[0]} or newer" if early else f"{named[-1]} or older"
        return f"Spark {self.spark} needs Python {bound}"

    @property
    def extra(self) -> str:
        """The extra of the package that has what this Spark needs and does not bring."""
        return "spark35" if self.spark.startswith("3.5.") else "spark"

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
