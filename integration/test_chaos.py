"""The short form of `make chaos`: some faults from a fixed seed, and nothing lost or doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SEED = 8
STEPS = 4
HOURS = 0.1
ROOT = Path(__file__).parent.parent


@pytest.mark.long
def test_nothing_is_lost_or_doubled_under_any_fault(tmp_path: Path) -> None:
    home = tmp_path / "chaos"
    given = ["--seed", SEED, "--hours", HOURS, "--most", STEPS, "--masters", "local", "--out", home]
    run = subprocess.run(
        [sys.executable, "-m", "proof.chaos", *map(str, given)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-6000:]
    figures = json.loads((home / "report.json").read_text())
    verdict = figures["verdict"]
    assert (verdict["lost"], verdict["doubled"], verdict["records"]) == (0, 0, verdict["fed"])
    assert figures["faults"] > 0
    assert "exactly once" in (home / "report.html").read_text()
