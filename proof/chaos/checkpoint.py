"""The checkpoint directory of the query: faults delete it, in whole or in part, and replace it."""

from __future__ import annotations

import shutil
from pathlib import Path

from proof.chaos.drivers import End

PARTS = (
    ("metadata",),
    ("commits",),
    ("offsets",),
    ("metadata", "sources"),
    ("offsets", "commits"),
    ("offsets/*[13579]", "offsets/.*[13579].crc"),
)
"""What `halve` deletes."""


class Checkpoint:
    """A checkpoint directory.

    Args:
        home: gets the directory each time it is moved.

    Attributes:
        path: where it is now.
        may_stop: the latest fault may stop the next driver, which then needs a new directory.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._moves = 0
        self.path = home / "checkpoint"
        self.may_stop = False

    def delete(self) -> None:
        # A query that runs puts new files there in the meantime.
        shutil.rmtree(self.path, ignore_errors=True)

    def copy(self) -> None:
        """Keep a copy for `restore`."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.path, self._copy, ignore=shutil.ignore_patterns("*.tmp*"))

    def restore(self) -> None:
        self.delete()
        self._copy.rename(self.path)

    def move(self) -> None:
        self._moves += 1
        self.path = self.path.rename(self._home / f"checkpoint-{self._moves}")

    def halve(self, part: int) -> tuple[str, ...]:
        """Delete some of its files; return which."""
        patterns = PARTS[part % len(PARTS)]
        for pattern in patterns:
            for found in list(self.path.glob(pattern)):
                if found.is_dir():
                    shutil.rmtree(found)
                else:
                    found.unlink()
        return patterns

    def replace_after(self, end: End) -> bool:
        """Do what the error of a driver says, if the latest fault explains it.

        Returns:
            Whether it did: the next driver begins a new checkpoint.
        """
        # An error without a class of the sink is Spark's own, which cannot read what is left.
        restart_helps = end.error and not end.needs_a_person
        if not self.may_stop or not end.text or restart_helps:
            return False
        self.may_stop = False
        self.delete()
        return True

    @property
    def _copy(self) -> Path:
        return self._home / "checkpoint-copy"
