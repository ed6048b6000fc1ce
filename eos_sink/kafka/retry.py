"""The one retry policy for reads and idempotent requests: growing, jittered, one deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tenacity

from eos_sink.kafka.deadline import Deadline

R = TypeVar("R")

_FIRST_S, _MOST_S = 0.01, 0.5


def until(deadline: Deadline, attempt: Callable[[], R], done: Callable[[R], bool]) -> R:
    """Repeat until a result is good enough or the deadline has passed; the last result."""
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: not done(result)),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_S, max=_MOST_S),
        stop=lambda _: deadline.passed,
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    result: R = retrying(attempt)
    return result
