"""Virtual environments that contain only a Spark and the wheel of the sink."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from proof.matrix.cells import Cell

_ROOT = Path(__file__).parents[2]
_BUILT = (
    "eos_sink",
    "eos_sink_lab",
    "pyspark_kafka_eos",
    "docs",
    "conf",
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
)
_PATIENCE_S = 1200.0
_LAST_WORDS = 400


class CannotRunError(Exception):
    """A cell that this machine cannot run; the text says why."""


def find_python(version: str) -> Path:
    """An interpreter of a version such as "3.12".

    It is looked for on the PATH, among pyenv's, and in the cache under `python/VERSION`.

    Raises:
        CannotRunError: there is none that runs.
    """
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    own = cache_root() / "python" / version
    places = [Path(found)] if (found := shutil.which(name)) else []
    places += sorted(pyenv.glob(f"{version}.*/bin/{name}"), reverse=True)
    places += [own / "bin" / name, own / "usr" / "bin" / name]
    tell = "import sys; print('%d.%d' % sys.version_info[:2])"
    for place in places:
        # pyenv leaves commands on the PATH that name a Python and run none.
        if place.exists() and _run([str(place), "-c", tell]) == (0, f"{version}\n"):
            return place
    raise CannotRunError(f"no Python {version} on this machine")


def build_wheel(there: Path, tree: Path = _ROOT) -> Path:
    """The wheel that is built from the source distribution, which lies beside it.

    Both are built from a copy of the tree, so that the build leaves nothing in it.
    """
    copy = there / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in _BUILT:
        source = tree / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():  # An older tree lacks some.
            shutil.copy(source, copy / name)
    dist = there / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    code, said = _run([sys.executable, "-m", "build", "--outdir", str(dist), str(copy)])
    if code:
        raise RuntimeError(f"the package cannot be built: {said}")
    (wheel,) = dist.glob("*.whl")
    return wheel


def prepare(cell: Cell, wheel: Path) -> Path:
    """The environment's Python, with Spark and this wheel in it and nothing else that is asked for.

    Raises:
        CannotRunError: there is no such Python, or pip cannot install what is needed into it.
    """
    if cell.refused:
        raise CannotRunError(cell.refused)
    home = cache_root() / "matrix" / cell.environment
    beside = f"{wheel}[{cell.extra}]", f"pyspark=={cell.spark}"
    return install(home, find_python(cell.python), wheel, *beside)


def install(home: Path, base: Path, wheel: Path, *beside: str) -> Path:
    """The Python of an environment at `home`, made or brought up to date.

    Args:
        base: the Python that it is made with.
        beside: what else pip is asked for, such as `pyspark[connect]==4.2.0`.

    Raises:
        CannotRunError: as above.
    """
    python = home / "bin" / "python"
    if _run([str(python), "-c", ""])[0]:
        shutil.rmtree(home, ignore_errors=True)
        made, said = _run([str(base), "-m", "venv", "--without-pip", str(home)])
        if made:
            raise CannotRunError(f"no virtual environment: {_last(said)}")
    # The pip of this Python installs into the environment, which needs no pip.
    into = [*_pip(), "--python", str(python), "install"]
    code, said = _run([*into, *beside, str(wheel)])
    if not code:
        # The version stays the same while the code changes.
        code, said = _run([*into, "--no-deps", "--force-reinstall", str(wheel)])
    if code:
        raise CannotRunError(f"pip: {_last(said)}")
    return python


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]


def _run(command: list[str]) -> tuple[int, str]:
    """The exit code and the output."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout


def _last(said: str) -> str:
    return " ".join(said.split())[-_LAST_WORDS:]
