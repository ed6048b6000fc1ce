"""A person says that it is meant, by typing a name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from eos_sink.cli.output import CommandError


def confirm(warnings: Sequence[str], name: str, what: str, script: str) -> None:
    """Ask for a name.

    Args:
        warnings: what will follow.
        name: what has to be typed.
        what: the name is of.
        script: the options with which a script confirms.

    Raises:
        CommandError: nobody is there, or something else was typed.
    """
    if not sys.stdin.isatty():
        raise CommandError(f"nobody is there to confirm: add {script}")
    for warning in warnings:
        print(warning, file=sys.stderr)
    print(f"Type {what} to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise CommandError("not confirmed; nothing was changed")
