"""`tools/setup`, which `make demo` and `make test` run first."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "tools" / "setup"

# Stands for Python: makes a "virtual environment" with itself in it, whose pip reaches nothing.
PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip") echo "broken by 'NewConnectionError'"; echo "No matching distribution"; exit 1 ;;
  "-c import pyspark") exit 1 ;;
esac
"""


def test_an_index_that_is_not_reached_is_named_as_the_cause(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(PYTHON)
    python.chmod(0o755)
    done = subprocess.run(
        [SETUP, "demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "No matching distribution" in done.stderr
    assert "pip did not reach the package index" in done.stderr
    assert "HTTPS_PROXY" in done.stderr
