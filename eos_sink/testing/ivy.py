"""Bringing jars from Maven Central through the Ivy that every pyspark carries."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eos_sink.testing.errors import DownloadError
from eos_sink.testing.jvm import Java
from eos_sink.testing.progress import Progress

_REPORT_EVERY_S = 2.0
_JAR_DONE = re.compile(r"\[SUCCESSFUL \].*\.jar")
_SIZE = re.compile(r"\((\d+)kB\)")
_TAIL_LINES = 12
_TIMEOUT_S = 300.0

# Kafka logs through SLF4J 1.7 and depends on no back end for it: without one it would say nothing
# at all. slf4j-simple serves every version alike and needs no file of its own.
_IVY_FILE = """<ivy-module version="2.0">
  <info organisation="eos-sink" module="test-kafka"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}" conf="default->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="default->master"/>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Workbench:
    """What bringing Kafka takes: a Java, somebody to tell, and the environment's settings."""

    java: Java
    progress: Progress
    environ: Mapping[str, str]


def find_ivy(environ: Mapping[str, str]) -> Path:
    """The Ivy jar inside pyspark, or inside SPARK_HOME.

    Raises:
        DownloadError: neither is there.
    """
    places = []
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "jars")
    if environ.get("SPARK_HOME"):
        places.append(Path(environ["SPARK_HOME"]) / "jars")
    for place in places:
        for jar in sorted(place.glob("ivy-*.jar")):
            return jar
    raise DownloadError(
        "Kafka's jars come through the Ivy inside pyspark, and no pyspark with jars was found "
        f"(looked at: {', '.join(map(str, places)) or 'nothing'}). Install it: pip install pyspark."
    )


def retrieve_kafka(version: str, target: Path, ivy_cache: Path, bench: Workbench) -> None:
    """Bring Kafka's jars of that version, with their dependencies, into the directory `target`.

    Ivy checks each file against the checksum beside it in the repository, and keeps it in
    `ivy_cache`: what an interrupted run has finished is not downloaded again. A mirror is set by
    EOS_IVY_SETTINGS, the path of an ivysettings.xml.

    Raises:
        DownloadError: Ivy failed; the message carries its last lines.
    """
    module = _IVY_FILE.format(version=version)
    with _asking(module, target, ivy_cache, bench.java, bench.environ) as command:
        lines, code = _run(command, version, bench.progress)
    if code != 0 or not (target / f"kafka_2.13-{version}.jar").is_file():
        tail = "\n  ".join(lines[-_TAIL_LINES:])
        raise DownloadError(
            f"Kafka {version} could not be downloaded (Ivy ended with {code}):\n  {tail}\n"
            "Does the version exist, and is Maven Central within reach? A mirror can be set with "
            "EOS_IVY_SETTINGS=<path of an ivysettings.xml>. Calling again goes on from here."
        )


def ask_ivy(  # noqa: PLR0913, PLR0917 - Ivy needs as much
    module: str,
    target: Path,
    ivy_cache: Path,
    java: Java,
    environ: Mapping[str, str],
    types: tuple[str, ...] = ("jar",),
) -> str:
    """Let Ivy bring what the module names into the directory `target`; what it has said."""
    with _asking(module, target, ivy_cache, java, environ) as command:
        try:
            done = subprocess.run(
                [*command, "-types", *types],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"Ivy did not end within {_TIMEOUT_S:.0f} s."
    return done.stdout + done.stderr


@contextmanager
def _asking(
    module: str, target: Path, ivy_cache: Path, java: Java, environ: Mapping[str, str]
) -> Iterator[list[str]]:
    """The command; the module is a file while it runs."""
    target.mkdir(parents=True, exist_ok=True)
    ivy_cache.mkdir(parents=True, exist_ok=True)
    file = target / "ivy.xml"
    file.write_text(module, encoding="utf-8")
    settings = environ.get("EOS_IVY_SETTINGS")
    try:
        yield [
            *(str(java.executable), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar"),
            str(find_ivy(environ)),
            *(("-settings", settings) if settings else ()),
            *("-cache", str(ivy_cache), "-ivy", str(file), "-confs", "default"),
            *("-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
    finally:
        file.unlink()


def _run(command: list[str], version: str, progress: Progress) -> tuple[list[str], int]:
    began = reported = time.monotonic()
    jars = kilobytes = modules = 0
    lines: list[str] = []
    progress(f"Kafka {version}: downloading about 50 jars, 45 MB (once) ...")
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                modules += line.startswith("\tfound ")
                kilobytes += sum(int(size) for size in _SIZE.findall(line) if "kB" in line)
                jars += bool(_JAR_DONE.search(line))
                now = time.monotonic()
                if now - reported >= _REPORT_EVERY_S:
                    reported = now
                    progress(
                        f"Kafka {version}: {modules} modules looked up, {jars} jars, "
                        f"{kilobytes / 1024:.0f} MB, {now - began:.0f} s"
                    )
        except BaseException:
            process.kill()  # leaving the block would wait for the whole download
            raise
    return lines, process.returncode
