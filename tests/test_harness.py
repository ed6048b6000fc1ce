"""What test modules share is in modules of its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.snippets import ROOT


def imported(path: Path) -> Iterator[str]:
    """The full names that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_module_imports_from_a_test_module() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for folder in ("tests", "integration", "proof")
        for path in (ROOT / folder).rglob("*.py")
        for name in imported(path)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert found == []


def test_a_short_run_draws_some_rows_of_a_sampled_test_and_a_long_one_has_all() -> None:
    test = "tests/protocol/test_source_explored.py::test_a_defect_is_found"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", test]

    def rows(*options: str) -> list[str]:
        found = subprocess.check_output([*command, *options], cwd=ROOT, text=True)
        return [line for line in found.splitlines() if line.startswith(test)]

    assert len(rows()) == 2
    assert len(rows("-m", "long")) == len(rows("-m", ""))


def test_no_module_beside_a_program_hides_one_of_python_s() -> None:
    """A program that runs as a file finds the modules of its own directory first."""
    names = {path.stem for path in (ROOT / "integration").glob("*.py")}
    assert names.isdisjoint(sys.stdlib_module_names)
