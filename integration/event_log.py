"""What Spark itself noted about stages and tasks: its event log, for tests that have to know
whether a retry happened at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Attempt:
    """One attempt of a task.

    Attributes:
        stage_attempt: 0 for the first of the stage.
        failed: why it failed, empty if it did not.
    """

    stage_attempt: int
    failed: str


class EventLog:
    """The event log of an application.

    Args:
        directory: of its own.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()

    @property
    def conf(self) -> dict[str, str]:
        """For the application."""
        return {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{self._directory}",
        }

    def attempts(self) -> list[Attempt]:
        """Those that have ended."""
        return [
            Attempt(event["Stage Attempt ID"], "" if reason == "Success" else reason)
            for event in self._events()
            if event["Event"] == "SparkListenerTaskEnd"
            for reason in [event["Task End Reason"]["Reason"]]
        ]

    def _events(self) -> Iterator[dict[str, Any]]:
        for path in self._directory.rglob("*"):
            if path.is_file() and not path.name.startswith((".", "appstatus")):
                for line in path.read_text().splitlines():
                    if line.endswith("}"):
                        yield json.loads(line)
