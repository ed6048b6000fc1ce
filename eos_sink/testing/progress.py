"""Telling a person what takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line of text, without a line end."""


def to_stderr(line: str) -> None:
    """The default: one line on standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def silent(line: str) -> None:
    """Say nothing."""
