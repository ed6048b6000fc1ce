"""What `pip install eos-sink` gives in an environment with nothing else in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eos_sink import cli
from proof.matrix.environments import build_wheel, install

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of its commands."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    return install(home, Path(sys.executable), wheel).parent


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    variables = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "JAVA_HOME")}
    return subprocess.run(
        [*map(str, command)],
        env=variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_runs_under_both_its_names(clean: Path) -> None:
    for command in ([clean / "eos-sink"], [clean / "python", "-m", "eos_sink"]):
        told = run(*command, "--version")
        assert told.stdout.startswith("eos-sink "), told.stderr


def test_the_help_of_every_command_needs_nothing_else(clean: Path) -> None:
    for command in cli.commands():
        told = run(clean / "eos-sink", command.NAME, "--help")
        assert (told.returncode, told.stderr) == (0, "")
        assert command.HELP.split()[0] in told.stdout


def test_what_needs_more_says_what_to_install(clean: Path) -> None:
    for words, extra in {("completion", "bash"): "cli", ("demo",): "demo"}.items():
        told = run(clean / "eos-sink", *words)
        assert told.returncode == 2
        assert f"pip install 'eos-sink[{extra}]'" in told.stderr


def test_a_command_reaches_for_a_cluster_with_what_pip_has_brought(clean: Path) -> None:
    told = run(clean / "eos-sink", "resolve", "q", "--bootstrap-server", "127.0.0.1:1")
    assert told.returncode == 2
    assert told.stderr.startswith("eos-sink: No broker of 127.0.0.1:1 answers")


def test_pip_has_brought_no_spark(clean: Path) -> None:
    told = run(clean / "python", "-c", "import eos_sink, pyspark_kafka_eos, pyspark")
    assert "No module named 'pyspark'" in told.stderr
