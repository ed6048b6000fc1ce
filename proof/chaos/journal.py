"""Records events in order, for the screen and the report."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any


class Journal:
    """Events with their times; each is written to disk at once, so a failed run keeps them.

    Args:
        path: a file of JSON lines.

    Attributes:
        began: when the run began, seconds since the epoch.
        events: all of them.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self.began = time.time()
        self.events: list[dict[str, Any]] = []

    def note(self, what: str, say: str = "", **facts: Any) -> dict[str, Any]:
        """Record an event; `say` is printed."""
        event = {"t": round(time.time(), 3), "what": what, **facts}
        with self._lock:
            self.events.append(event)
            self._file.write(f"{json.dumps(event)}\n")
            self._file.flush()
        if say:
            self.say(say)
        return event

    def say(self, text: str) -> None:
        """Print a line."""
        sys.stderr.write(f"{time.time() - self.began:7.1f} s  {text}\n")
        sys.stderr.flush()

    def close(self) -> None:
        self._file.close()
