"""The released versions, as directories that go to the front of a process's path."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cache import cache_root, exclusive
from proof.matrix.environments import build_wheel
from tests.snippets import ROOT

RELEASES = {
    "0.1.0": "3aa9efe06f3985bb4adf9a442907c13bbf9b2c38",
}
"""The commit of each version that upgrades are tested from, oldest first."""

# Calls the version's own driver and tasks, so it is of that version, too.
_HARNESS = ("integration/__init__.py", "integration/minispark.py")
_BUILT_WITHIN_S = 600.0


def release_site(version: str) -> Path:
    """A directory with the wheel of a released version, built once, and its minispark.

    Its dependencies are those of this environment.
    """
    commit = RELEASES[version]
    if _git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
        pytest.skip(f"this tree does not have commit {commit} of {version}: git fetch --unshallow")
    site = cache_root() / "releases" / f"{version}-{commit[:12]}"
    with exclusive(site.with_suffix(".lock"), Deadline(_BUILT_WITHIN_S), lambda: None):
        if not site.exists():
            with TemporaryDirectory(dir=site.parent) as there:
                _build(commit, Path(there)).rename(site)
    return site


def _build(commit: str, there: Path) -> Path:
    tree, site = there / "tree", there / "site"
    with tarfile.open(fileobj=BytesIO(_git("archive", commit).stdout)) as files:
        files.extractall(tree, filter="data")
    with zipfile.ZipFile(build_wheel(there, tree)) as wheel:
        wheel.extractall(site)
    for name in _HARNESS:
        (site / name).parent.mkdir(exist_ok=True)
        shutil.copy(tree / name, site / name)
    return site


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
