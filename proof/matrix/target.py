"""One broker of a run: its input, its topics, and what readers see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_audit import Audit, Checker, Source, audit, json_field
from proof.matrix.cells import Cell

FILES, LATE, BATCH, ROWS = 12, 2, 1, 50
ALL_ROWS = (FILES + LATE + BATCH) * ROWS
_AT_LEAST = 2 * ROWS
_LOOK_S = 0.05


class Target:
    """The input and the topics of a cell.

    Args:
        cell: the cell.
        kafka: a broker of the cell's version.
        home: a new directory for the input and the checkpoint.

    Attributes:
        seen: rows that were visible at the last look.
    """

    def __init__(self, cell: Cell, kafka: KafkaCluster, home: Path) -> None:
        self.cell = cell
        self.seen = 0
        rows = iter(range(ALL_ROWS))
        for name, files in {"input": FILES, "late": LATE, "batch": BATCH}.items():
            where = home / name
            where.mkdir(parents=True)
            for number in range(files):
                lines = (json.dumps({"row": next(rows)}) + "\n" for _ in range(ROWS))
                (where / f"{name}-{number:02}.txt").write_text("".join(lines))
        # The name is new, so that rows of an earlier run do not count.
        topic = f"{cell.name}-{home.parent.name[-8:]}"
        for name in (topic, f"{topic}-side"):
            kafka.create_topic(name, partitions=2)
        self.config: dict[str, Any] = {
            "bootstrap": kafka.bootstrap_servers,
            "topic": topic,
            "side_topic": f"{topic}-side",
            "input": str(home / "input"),
            "batch": str(home / "batch"),
            "late": sorted(str(path) for path in (home / "late").iterdir()),
            "checkpoint": str(home / "checkpoint"),
        }
        self._checker = Checker(Source(kafka.bootstrap_servers, topic), json_field("row"))

    @property
    def has_begun(self) -> bool:
        """Some rows were visible at the last look."""
        return self.seen >= _AT_LEAST

    @property
    def complete(self) -> bool:
        """All rows of the first run were visible at the last look."""
        return self.seen >= FILES * ROWS

    def look(self) -> None:
        """Count what has become visible; waits a moment for it."""
        self.seen += len(self._checker.look(_LOOK_S))

    def audit(self, timeout_s: float) -> Audit:
        """Read everything again.

        Raises:
            ReaderError: a reader did not get to its end in time.
        """
        return audit(self._checker, ALL_ROWS, timeout_s)

    def close(self) -> None:
        self._checker.close()
