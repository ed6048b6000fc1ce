"""Running tests in a copy of the tree without a guard."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from proof.guards.code import ROOT
from proof.guards.guard import Guard, take_away

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
    text: str = ""


def run(tests: Sequence[str], without: Sequence[Guard], bootstrap: str) -> dict[str, Verdict]:
    """Run tests in a temporary copy of the tree, without some guards."""
    with tempfile.TemporaryDirectory(prefix="guards-") as home:
        tree, report = Path(home) / "tree", Path(home) / "report.xml"
        shutil.copytree(ROOT, tree, ignore=_LEFT_OUT)
        take_away(without, tree)
        options = ["-q", "-m", "", "-p", "no:cacheprovider", f"--basetemp={tree.parent / 'tests'}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "EOS_BOOTSTRAP": bootstrap},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        found = _read(report) if report.exists() else {}
    missing = Verdict(Outcome.BROKEN, f"did not run: {done.stdout[-2000:]}")
    return {test: found.get(_in_report(test), missing) for test in tests}


def _in_report(test: str) -> tuple[str, str]:
    """Class name and name of a test in pytest's XML report."""
    file, *inside = test.split("[", 1)[0].split("::")
    name = test.removeprefix("::".join([file, *inside[:-1]]) + "::")
    return ".".join([file.removesuffix(".py").replace("/", "."), *inside[:-1]]), name


def _read(report: Path) -> dict[tuple[str, str], Verdict]:
    found: dict[tuple[str, str], Verdict] = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest's own
        # A test that failed is there once more if its teardown failed too, for instance since it
        # did not get to where it closes its clients.
        found.setdefault((case.get("classname", ""), case.get("name", "")), _judge(case))
    return found


def _judge(case: ET.Element) -> Verdict:
    failure, error = case.find("failure"), case.find("error")
    if error is not None or case.find("skipped") is not None:
        found = error if error is not None else case.find("skipped")
        assert found is not None
        return Verdict(Outcome.BROKEN, found.get("message", ""))
    if failure is None:
        return Verdict(Outcome.PASSED)
    told, whole = failure.get("message", ""), failure.text or ""
    lines = _FAILED_LINE.findall(whole)
    if told in ("", "AssertionError") and lines:
        told = lines[-1].strip()
    broken = _BROKEN.search(f"{told}\n{whole}")
    if broken:
        return Verdict(Outcome.BROKEN, broken[0])
    return Verdict(Outcome.FAILED, told)
