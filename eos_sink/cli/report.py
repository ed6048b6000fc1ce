"""What a command hands to the renderer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class CommandError(Exception):
    """The command cannot run; the message says why and what helps."""


class Mood(Enum):
    """How a cell is to be read."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True)
class Report:
    """A table and what there is to say below it.

    Attributes:
        columns: heads; without any there is no table.
        rows: each as long as `columns`.
        notes: sentences.
        ok: False makes the command's exit code 1.
        document: the same for a program, JSON-compatible.
        left: so many columns are set left, the others right.
        interrupted: it was ended with Ctrl-C and tells what it knows; makes the exit code 130.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]
    ok: bool
    document: Mapping[str, Any]
    left: int = 1
    interrupted: bool = False
