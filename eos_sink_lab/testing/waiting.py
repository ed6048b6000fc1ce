"""Waits for conditions, and reports what takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_errors import NotReadyError

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1

Progress = Callable[[str], None]
"""Takes one line of text, without a line end."""


def to_stderr(line: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def wait_until(condition: Callable[[], bool], deadline: Deadline, what: str) -> None:
    """Call `condition` until it is true.

    Args:
        condition: may raise to end the wait at once with that error.
        deadline: when to give up.
        what: the condition in words, for the error: "broker 2 answers".

    Raises:
        NotReadyError: the condition was still false at the deadline.
    """
    pause = _FIRST_PAUSE_S
    while not condition():
        if deadline.passed:
            raise NotReadyError(f"Timed out after {deadline.seconds:g} s, waiting until {what}.")
        time.sleep(min(pause, deadline.left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
