"""Running tests in a copy of the tree without some guards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from proof.guards.guard import Guard, Proof, take_away

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = shutil.ignore_patterns(
    ".venv", ".git", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info", "htmlcov"
)
_LONGEST_S = 900
# What proves nothing: a removal that only breaks the code, a test that does not come to its point.
_BROKEN = re.compile(
    r"\b(?:Name|Import|ModuleNotFound|Syntax|Indentation|UnboundLocal|Attribute|Type)Error\b: .*"
    r"|FaultPoint\.\w+ was not reached.*|Timeout \(>.*"
)
_FAILED_LINE = re.compile(r"^>(.+)$", re.MULTILINE)


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    """It did not run, or it failed because the changed code cannot run."""


@dataclass(frozen=True)
class Verdict:
    """How one test ended."""

    outcome: Outcome
    text: str
    seconds: float


class Trial:
    """A copy of the tree without some guards, in a temporary directory; use it in a `with`."""

    def __init__(self, guards: Sequence[Guard] = (), bootstrap: str = "") -> None:
        self._guards = guards
        self._bootstrap = bootstrap

    def __enter__(self) -> Trial:
        self._home = Path(tempfile.mkdtemp(prefix="guards-"))
        self.tree = self._home / "tree"
        shutil.copytree(ROOT, self.tree, ignore=_LEFT_OUT)
        take_away(self._guards, self.tree)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, proofs: Iterable[Proof]) -> dict[Proof, Verdict]:
        """Run the tests of these proofs."""
        wanted = list(proofs)
        report = self._home / "report.xml"
        options = ["-q", "-m", "", "-p", "no:cacheprovider", f"--basetemp={self._home / 'tmp'}"]
        tests = list(dict.fromkeys(proof.test for proof in wanted))
        said = self._python("pytest", *options, f"--junitxml={report}", *tests)
        found = _read(report) if report.exists() else {}
        missing = Verdict(Outcome.BROKEN, f"did not run: {said[-2000:]}", 0.0)
        return {proof: found.get(proof.names, missing) for proof in wanted}

    def imports(self) -> set[Path]:
        """The path from which a test's processes would import `eos_sink`."""
        return {Path(line) for line in self._python("proof.guards.probe").split()}

    def _python(self, module: str, *arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.tree)}
        if self._bootstrap:
            environment["EOS_BOOTSTRAP"] = self._bootstrap
        try:
            done = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                cwd=self.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no end within {_LONGEST_S} s"
        return done.stdout


def _read(report: Path) -> dict[tuple[str, str], Verdict]:
    found: dict[tuple[str, str], Verdict] = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest's own
        # A test that failed is there once more if its teardown failed too, for instance since it
        # did not get to where it closes its clients.
        found.setdefault((case.get("classname", ""), case.get("name", "")), _judge(case))
    return found


def _judge(case: ET.Element) -> Verdict:
    seconds = float(case.get("time", "0"))
    failure, error = case.find("failure"), case.find("error")
    if error is not None or case.find("skipped") is not None:
        found = error if error is not None else case.find("skipped")
        assert found is not None
        return Verdict(Outcome.BROKEN, found.get("message", ""), seconds)
    if failure is None:
        return Verdict(Outcome.PASSED, "", seconds)
    told, whole = failure.get("message", ""), failure.text or ""
    lines = _FAILED_LINE.findall(whole)
    if told in ("", "AssertionError") and lines:
        told = lines[-1].strip()
    broken = _BROKEN.search(f"{told}\n{whole}")
    if broken:
        return Verdict(Outcome.BROKEN, broken[0], seconds)
    return Verdict(Outcome.FAILED, told, seconds)
