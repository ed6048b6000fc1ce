"""Waiting for a condition, never for a guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.errors import NotReadyError

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1


def wait_until(condition: Callable[[], bool], deadline: Deadline, what: str) -> None:
    """Ask `condition` again and again until it is true.

    Args:
        condition: may raise to end the wait at once with that error.
        deadline: how long to go on.
        what: names the condition in the error: "broker 2 answers".

    Raises:
        NotReadyError: the condition was still false at the deadline.
    """
    pause = _FIRST_PAUSE_S
    while not condition():
        if deadline.passed:
            raise NotReadyError(f"Waited {deadline.seconds:g} s in vain until {what}.")
        time.sleep(min(pause, deadline.left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
