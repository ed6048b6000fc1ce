"""Jars from Maven Central in a cache that several processes share.

They come through the Ivy inside pyspark, which checks each file against the checksum beside it in
the repository. A manifest is written last, so that an interrupted download is never used.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cache import cache_root, exclusive
from eos_sink_lab.testing.cluster_errors import DownloadError
from eos_sink_lab.testing.java import Java
from eos_sink_lab.testing.java_network import NOT_TRUSTED, find_bundle, proxy_options, trust_options
from eos_sink_lab.testing.waiting import Progress

MANIFEST = "manifest.json"

_WAIT_FOR_OTHERS_S = 900.0
_IVY_TIMEOUT_S = 900.0
_REPORT_EVERY_S = 2.0
_TAIL_LINES = 12
_REASONS = 3
_REASON = re.compile(r"Server access error|: not found|\[FAILED")
_JAR_DONE = re.compile(r"\[SUCCESSFUL \].*\.jar")
_SIZE = re.compile(r"\((\d+)kB\)")


def ensure_jars(
    directory: Path, download: Callable[[Path], None], label: str, progress: Progress
) -> None:
    """Fill a directory of the cache, unless it is complete already.

    Several processes may call it at once: one downloads, the others wait.

    Args:
        directory: in the cache.
        download: fills an empty directory beside it, which then takes its place.
        label: names the jars in messages.
        progress: takes the messages.

    Raises:
        DownloadError: from `download`.
        NotReadyError: another process was still busy with it after 15 minutes.
    """
    if not find_problems(directory):
        return
    lock = directory.with_name(f".{directory.name}.lock")
    waiting = f"{label}: another process is downloading it, waiting ..."
    with exclusive(lock, Deadline(_WAIT_FOR_OTHERS_S), lambda: progress(waiting)):
        problems = find_problems(directory)
        if not problems:
            return
        if directory.is_dir():
            progress(f"{label}: cached, but {problems[0]}; downloading it again")
        else:
            progress(f"{label}: downloading (once) ...")
        began = time.monotonic()
        draft = directory.with_name(f".{directory.name}.part")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        download(draft)
        sizes = write_manifest(draft)
        shutil.rmtree(directory, ignore_errors=True)
        draft.rename(directory)
        progress(
            f"{label}: {len(sizes)} files, {sum(sizes.values()) / 1e6:.0f} MB in {directory}, "
            f"{time.monotonic() - began:.0f} s"
        )


def find_problems(directory: Path) -> list[str]:
    """Return what differs from the directory's manifest; empty if it is complete."""
    try:
        entries = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["entries"]
        sizes = {entry["name"]: entry["size"] for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return ["the download was not finished"]
    found = []
    for name, size in sizes.items():
        path = directory / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif path.stat().st_size != size:
            found.append(f"{name} has {path.stat().st_size} bytes, not {size}")
    foreign = sorted(jar.name for jar in directory.glob("*.jar") if jar.name not in sizes)
    return [*found, *(f"{name} does not belong there" for name in foreign)]


def write_manifest(directory: Path) -> dict[str, int]:
    """Record the files of the directory; return the size of each in bytes."""
    sizes = {path.name: path.stat().st_size for path in sorted(directory.iterdir())}
    entries = [{"name": name, "size": size} for name, size in sizes.items()]
    (directory / MANIFEST).write_text(f"{json.dumps({'entries': entries}, indent=1)}\n")
    return sizes


@dataclass(frozen=True)
class Artifact:
    """A jar of Maven Central, with its dependencies if it is `transitive`."""

    organisation: str
    name: str
    version: str
    transitive: bool = True


def find_ivy(environ: Mapping[str, str] = os.environ) -> Path:
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
        "Jars are downloaded through the Ivy inside pyspark, and no pyspark with jars was found "
        f"(looked at: {', '.join(map(str, places)) or 'nothing'}). Install it: pip install pyspark."
    )


def download_jars(  # noqa: PLR0913 - Ivy needs as much
    artifacts: Sequence[Artifact],
    target: Path,
    java: Java,
    *,
    label: str,
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Download artifacts into the directory `target`.

    Ivy keeps each file in its own cache: what an interrupted run has finished is not downloaded
    again. EOS_IVY_SETTINGS, the path of an ivysettings.xml, selects a mirror. If Java
    does not trust the server, as behind a proxy that replaces certificates, it trusts those that
    pip trusts.

    Raises:
        DownloadError: an artifact could not be had; the message has Ivy's reasons.
    """
    file, store = target / "ivy.xml", target / "trusted.jks"
    file.write_text(ivy_module(artifacts, re.sub(r"[^\w.]+", "-", label)), encoding="utf-8")
    settings = environ.get("EOS_IVY_SETTINGS")
    options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", *proxy_options()]
    ivy = [
        *("-jar", str(find_ivy(environ))),
        *(("-settings", settings) if settings else ()),
        *("-cache", str(cache_root(environ) / "ivy"), "-ivy", str(file), "-confs", "default"),
        *("-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    jars = [f"{each.name}-{each.version}.jar" for each in artifacts]

    def run() -> tuple[list[str], bool]:
        lines, code = _run_ivy([str(java.executable), *options, *ivy], label, progress)
        return lines, code == 0 and all((target / jar).is_file() for jar in jars)

    try:
        lines, done = run()
        bundle = find_bundle(environ)
        distrusted = any(NOT_TRUSTED in line for line in lines)
        if not done and distrusted and bundle is not None:
            progress(f"{label}: Java does not trust the server; trying with what {bundle} trusts")
            with contextlib.suppress(OSError):
                options += trust_options(bundle, store)
                lines, done = run()
    finally:
        file.unlink()
        store.unlink(missing_ok=True)
    if not done:
        reasons = list(dict.fromkeys(line.strip() for line in lines if _REASON.search(line)))
        shown = "\n  ".join(reasons[:_REASONS] or lines[-_TAIL_LINES:])
        remedy = (
            "A proxy of your network seems to replace certificates: name a PEM file that has its "
            "authority in SSL_CERT_FILE."
            if distrusted
            else "Does the version exist, and can this machine reach Maven Central? Set "
            "HTTPS_PROXY for a proxy, or EOS_IVY_SETTINGS=<path of an ivysettings.xml> for a "
            "mirror."
        )
        raise DownloadError(
            f"{label} could not be downloaded:\n  {shown}\n{remedy} What is downloaded is kept."
        )


def ivy_module(artifacts: Sequence[Artifact], name: str) -> str:
    """The ivy.xml that asks for these artifacts."""
    lines = "\n".join(
        f'    <dependency org="{each.organisation}" name="{each.name}" rev="{each.version}"'
        f' transitive="{str(each.transitive).lower()}" conf="default->default"/>'
        for each in artifacts
    )
    return (
        '<ivy-module version="2.0">\n'
        f'  <info organisation="eos-sink" module="{name}"/>\n'
        f"  <dependencies>\n{lines}\n  </dependencies>\n"
        "</ivy-module>\n"
    )


def _run_ivy(command: list[str], label: str, progress: Progress) -> tuple[list[str], int]:
    began = reported = time.monotonic()
    jars = kilobytes = modules = 0
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        timer = threading.Timer(_IVY_TIMEOUT_S, process.kill)
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                modules += line.startswith("\tfound ")
                kilobytes += sum(int(size) for size in _SIZE.findall(line))
                jars += bool(_JAR_DONE.search(line))
                now = time.monotonic()
                if now - reported >= _REPORT_EVERY_S:
                    reported = now
                    progress(
                        f"{label}: {modules} modules looked up, {jars} jars, "
                        f"{kilobytes / 1024:.0f} MB, {now - began:.0f} s"
                    )
        except BaseException:
            process.kill()  # leaving the block would wait for the whole download
            raise
        finally:
            timer.cancel()
    return lines, process.returncode
