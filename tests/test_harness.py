"""What test modules share is in modules of its own."""

from __future__ import annotations

import ast
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


def test_no_module_beside_a_program_hides_one_of_python_s() -> None:
    """A program that runs as a file finds the modules of its own directory first."""
    names = {path.stem for path in (ROOT / "integration").glob("*.py")}
    assert names.isdisjoint(sys.stdlib_module_names)
