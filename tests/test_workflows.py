"""What GitHub runs and asks for agrees with this tree: targets, versions, error classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eos_sink_lab.testing.java import MINIMUM_JAVA
from proof.matrix.cells import ALL, PYTHONS, SPARKS, select
from tests.error_kinds import ERRORS
from tests.snippets import ROOT, make_targets

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SET_UP = GITHUB / "actions" / "set-up" / "action.yml"


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield f"{path.name}: {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in jobs():
        yield from ((name, step) for step in job.get("steps", ()))
    yield from ((SET_UP.name, step) for step in load(SET_UP)["runs"]["steps"])


def job_of(name: str) -> dict[str, Any]:
    return dict(jobs())[name]


def test_each_target_script_and_module_that_is_called_is_there() -> None:
    called = "\n".join(step["run"] for _, step in steps() if "run" in step)
    targets = " ".join(re.findall(r"\bmake ([a-z -]+)", called)).split()
    scripts = re.findall(r"\bbash (\S+)", called)
    modules = re.findall(r"\bpython -m (\w+(?:\.\w+)*)", called)
    assert {"setup", "kafka", "rehearse", "test-long"} <= set(targets) <= make_targets()
    assert scripts == [".ci/run"]
    assert (ROOT / ".ci" / "run").is_file()
    assert modules
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


def test_each_action_is_of_this_tree_or_pinned_to_a_commit() -> None:
    used = {step["uses"] for _, step in steps() if "uses" in step}
    used |= {job["uses"] for _, job in jobs() if "uses" in job}
    for action in used:
        if action.startswith("./"):
            assert (ROOT / action).exists(), action
        else:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action


def test_each_job_is_bounded_and_may_do_the_least() -> None:
    for path in WORKFLOWS:
        assert load(path)["permissions"] == {"contents": "read"}, path.name
        assert "group" in load(path)["concurrency"], path.name
    for name, job in jobs():
        assert "uses" in job or job["timeout-minutes"] <= 240, name
    assert {name: job["permissions"] for name, job in jobs() if "permissions" in job} == {
        "codeql.yml: analyze": {"contents": "read", "security-events": "write"},
        "scorecard.yml: score": {
            "contents": "read",
            "security-events": "write",
            "id-token": "write",
        },
        "docs.yml: publish": {"pages": "write", "id-token": "write"},
        "release.yml: attest": {"attestations": "write", "id-token": "write"},
        "release.yml: publish": {"id-token": "write"},
    }


def test_a_release_needs_the_tests_and_each_cell_of_the_matrix() -> None:
    assert {"ci", "nightly", "build", "matrix"} == set(job_of("release.yml: attest")["needs"])
    assert job_of("release.yml: publish")["needs"] == "attest"
    versions = job_of("release.yml: matrix")["strategy"]["matrix"]
    assert versions["spark"] == list(SPARKS)
    assert versions["python"] == list(PYTHONS)
    left_out = [(cell["spark"], cell["python"]) for cell in versions["exclude"]]
    assert set(left_out) == {(cell.spark, cell.python) for cell in ALL if cell.refused}
    chosen = [
        cell
        for spark in versions["spark"]
        for python in versions["python"]
        if (spark, python) not in left_out
        for cell in select(f"{spark}-{python}-*")
    ]
    assert chosen == [cell for cell in ALL if not cell.refused]


def test_python_and_java_are_ones_that_the_package_runs_on() -> None:
    # matrix/cells.py and setup.cfg name the same Pythons: tests/proof/matrix/test_cells.py.
    own = load(SET_UP)["inputs"]["python"]["default"]
    assert own in PYTHONS
    given = [step["with"]["python"] for _, step in steps() if "python" in step.get("with", {})]
    assert [text.split() for text in given] == [["${{", "matrix.python", "}}", own]]
    java = [s["with"]["java-version"] for _, s in steps() if "java-version" in s.get("with", {})]
    assert java == [str(MINIMUM_JAVA)]


def test_the_form_for_bugs_names_each_error_class() -> None:
    fields = {
        field.get("id"): field for field in load(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")["body"]
    }
    classes = fields["error"]["attributes"]["options"]
    assert classes[1:-1] == [kind.__name__ for kind in ERRORS]


@pytest.mark.parametrize("tool", ["ruff check", "ruff format", "mypy", "lint-imports"])
def test_the_hooks_run_what_make_lint_runs(tool: str) -> None:
    (local,) = (r for r in load(ROOT / ".pre-commit-config.yaml")["repos"] if r["repo"] == "local")
    assert any(hook["entry"].startswith(f".venv/bin/{tool}") for hook in local["hooks"])
    assert f"$(BIN)/{tool}" in (ROOT / "Makefile").read_text()
