"""A guard: a rule of the protocol, the code that enforces it, and the tests that need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class StaleRemovalError(Exception):
    """The code is no longer what the table says that it is."""


@dataclass(frozen=True)
class Removal:
    """A change of the code that removes a rule.

    Attributes:
        file: of the tree.
        old: text that is in the file exactly once.
        new: what stands there instead.
    """

    file: str
    old: str
    new: str = ""

    def apply(self, root: Path) -> None:
        """Change the file under `root`.

        Raises:
            StaleRemovalError: the text is not there, or more than once.
        """
        path = root / self.file
        text = path.read_text()
        found = text.count(self.old)
        if found != 1:
            raise StaleRemovalError(
                f"{self.file} has this {found} times instead of once; bring proof/guards to what "
                f"the code is now:\n{self.old}"
            )
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Proof:
    """A test that fails without the guard.

    Attributes:
        test: pytest's id of it.
        without: the name of another guard that covers this one: the test fails when both are taken
            away, and passes when only one of the two is.
    """

    test: str
    without: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Class name and name of the test in pytest's XML report."""
        file, *inside = self.test.split("[", 1)[0].split("::")
        name = self.test.removeprefix("::".join([file, *inside[:-1]]) + "::")
        return ".".join([file.removesuffix(".py").replace("/", "."), *inside[:-1]]), name


@dataclass(frozen=True)
class Guard:
    """One rule.

    Attributes:
        name: in a few words.
        rule: what it says, as a sentence.
        removals: what takes it out of the code.
        proofs: the tests that fail then.
        rows: of `proof/spec/run.sh`, which take the same rule out of the model.
        outside: what the model does not have, where no row takes the rule back.
    """

    name: str
    rule: str
    removals: tuple[Removal, ...]
    proofs: tuple[Proof, ...]
    rows: tuple[str, ...] = ()
    outside: str = ""


def proofs(*tests: str, without: str = "") -> tuple[Proof, ...]:
    return tuple(Proof(test, without) for test in tests)


def take_away(guards: Iterable[Guard], root: Path) -> None:
    """Take all of these out of the tree at `root`."""
    for guard in guards:
        for removal in guard.removals:
            removal.apply(root)
