"""Jars that only the benchmarks need, from Maven Central, cached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import manifest
from eos_sink.testing.cache import cache_root, exclusive
from eos_sink.testing.errors import DownloadError
from eos_sink.testing.ivy import Workbench, ask_ivy
from eos_sink.testing.jvm import find_java
from eos_sink.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink.testing.progress import to_stderr

_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Jar:
    """An artifact of Maven Central, with what it names as its own needs or without."""

    organisation: str
    name: str
    version: str
    alone: bool = False


def kafka_tools() -> str:
    """The class path of Kafka's own tools: one jar beside those of the broker."""
    bench = Workbench(find_java(), to_stderr, os.environ)
    broker = ensure_kafka(DEFAULT_VERSION, bench)
    jar = Jar("org.apache.kafka", "kafka-tools", DEFAULT_VERSION, alone=True)
    return f"{broker.classpath}:{class_path('kafka-tools', [jar])}"


def class_path(name: str, jars: Sequence[Jar]) -> str:
    """The class path of these, which are downloaded if the cache lacks them.

    Args:
        name: of their directory in the cache.
        jars: all of them; others than before are brought anew.

    Raises:
        DownloadError: they cannot be had.
    """
    root = cache_root(os.environ)
    versions = "-".join(jar.version for jar in jars[:2])
    directory = root / name / versions
    with exclusive(directory.with_name(f".{versions}.lock"), Deadline(_TIMEOUT_S), lambda: None):
        known = manifest.read(directory)
        if known is None or known.problems(directory):
            to_stderr(f"{name}: downloading its jars (once) ...")
            _retrieve(name, versions, jars, directory)
    return f"{directory}/*"


def _retrieve(name: str, versions: str, jars: Sequence[Jar], directory: Path) -> None:
    """Download beside the final place and move there when it is complete."""
    draft = directory.with_name(f".{versions}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    ivy_cache = cache_root(os.environ) / "ivy"
    module, types = _ivy_file(name, jars), ("jar", "bundle")
    said = ask_ivy(module, draft, ivy_cache, find_java(), os.environ, types)
    missing = [jar for jar in jars if not (draft / f"{jar.name}-{jar.version}.jar").is_file()]
    if missing:
        tail = "\n  ".join(said.splitlines()[-8:])
        raise DownloadError(f"{missing[0]} could not be downloaded:\n  {tail}")
    manifest.take(versions, draft).write(draft)
    shutil.rmtree(directory, ignore_errors=True)
    draft.rename(directory)


def _ivy_file(name: str, jars: Sequence[Jar]) -> str:
    lines = "\n".join(
        f'    <dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.version}"'
        f' transitive="{str(not jar.alone).lower()}" conf="default->default"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n'
        f'  <info organisation="eos-sink" module="{name}"/>\n'
        f"  <dependencies>\n{lines}\n  </dependencies>\n"
        "</ivy-module>\n"
    )
