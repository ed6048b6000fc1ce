"""Log lines about batches: one JSON object a line, on the logger `eos_sink.metrics`.

Spark's Python processes show only warnings, and these lines have the level INFO. With the option
`eos.metrics.log` they go to standard error, which Spark writes into the logs of its driver and its
executors. A trace, which is for tests, goes to the file that EOS_TRACE names.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable

from eos_sink.metrics.names import Event

LOGGER = logging.getLogger("eos_sink.metrics")
# A process id may be another process's later.
_PROCESS = uuid.uuid4().hex


class _ToStderr(logging.Handler):
    """To the current standard error: Spark replaces it at times."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(record.getMessage() + "\n")
        sys.stderr.flush()


def log_to_stderr() -> None:
    """Show the lines on standard error from now on, each once."""
    LOGGER.setLevel(logging.INFO)
    if not any(isinstance(handler, _ToStderr) for handler in LOGGER.handlers):
        LOGGER.addHandler(_ToStderr())


def emit(event: Event, query: str, **facts: object) -> None:
    """Log a line if the level is enabled. Raises nothing.

    Args:
        facts: no secrets; JSON-compatible values, None is left out.
    """
    with contextlib.suppress(Exception):
        if LOGGER.isEnabledFor(logging.INFO):
            known = {name: value for name, value in facts.items() if value is not None}
            line = {"event": event.label, "time": round(time.time(), 3), "query": query, **known}
            LOGGER.info("%s", json.dumps(line, default=str))


def trace(
    group: str, step: str, transactions: Callable[[], Iterable[object]], **facts: object
) -> None:
    """Append a line to the trace if one is asked for; `proof/trace.py` checks it.

    Args:
        group: of the query's identity.
        step: that is about to be done, or has been.
        transactions: that it concerns; called only then.
        facts: JSON-compatible values.
    """
    if path := os.environ.get("EOS_TRACE"):
        actor = f"{_PROCESS}-{os.getpid()}-{threading.get_ident()}"
        named = sorted(map(str, transactions()))
        line = {"actor": actor, "group": group, "step": step, **facts, "transactions": named}
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
