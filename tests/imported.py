"""Which modules a program loads."""

from __future__ import annotations

import subprocess
import sys

FOR_ROWS = ["pyarrow", "numpy", "pandas", "eos_sink.rows", "eos_sink.task"]


def imported(program: str) -> set[str]:
    """All modules that a process has when the program has run in it."""
    tell = "\nimport sys; print(*sys.modules, sep='\\n', file=sys.stderr)"
    ended = subprocess.run(
        [sys.executable, "-c", program + tell], check=True, capture_output=True, text=True
    )
    return set(ended.stderr.split())
