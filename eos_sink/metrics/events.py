"""What happens to batches, as log lines: one JSON object a line, on the logger `eos_sink.metrics`.

Spark's Python processes show warnings only, and these lines are information: with the option
`eos.metrics.log` they go to the process's standard error, which Spark puts into the logs of its
driver and its executors.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time

from eos_sink.metrics.names import Event

LOGGER = logging.getLogger("eos_sink.metrics")


class _ToStderr(logging.Handler):
    """Whatever standard error is at the time: Spark replaces it now and then."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(record.getMessage() + "\n")
        sys.stderr.flush()


def show() -> None:
    """Show the lines on standard error from here on, each once."""
    LOGGER.setLevel(logging.INFO)
    if not any(isinstance(handler, _ToStderr) for handler in LOGGER.handlers):
        LOGGER.addHandler(_ToStderr())


def emit(event: Event, query: str, **facts: object) -> None:
    """Log a line, where anybody wants it; never an error.

    Args:
        facts: no secrets; JSON-compatible values, what is None is left out.
    """
    with contextlib.suppress(Exception):
        if LOGGER.isEnabledFor(logging.INFO):
            known = {name: value for name, value in facts.items() if value is not None}
            line = {"event": event.label, "time": round(time.time(), 3), "query": query, **known}
            LOGGER.info("%s", json.dumps(line, default=str))
