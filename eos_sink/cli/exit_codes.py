"""The exit codes of all commands."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from enum import IntEnum

_WIDTH = 88


class ExitCode(IntEnum):
    """The end of a command."""

    OK = 0
    FAILED = 1
    CANNOT_RUN = 2
    NOT_SEEN = 3
    INTERRUPTED = 130


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "all is well",
    ExitCode.FAILED: "the command ran, and found something that needs attention",
    ExitCode.CANNOT_RUN: "it could not run: wrong usage, no broker, no permission, or a refusal",
    ExitCode.NOT_SEEN: "nothing needs attention in what was seen, and something could not be seen",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
}
"""The meaning of a code for a command that does not say more."""


def describe_exit_codes(meanings: Mapping[ExitCode, str]) -> str:
    """Format a list of exit codes for a help text.

    Args:
        meanings: what a command's own codes mean. CANNOT_RUN and INTERRUPTED, which every command
            has, may be left out.
    """
    every = {code: MEANINGS[code] for code in (ExitCode.CANNOT_RUN, ExitCode.INTERRUPTED)}
    lines = (
        textwrap.fill(f"{code:5d}  {meaning}", _WIDTH, subsequent_indent=" " * 7)
        for code, meaning in sorted({**every, **meanings}.items())
    )
    return "\n".join(("exit codes:", *lines))
