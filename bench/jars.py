"""Jars that only the benchmarks need, from Maven Central, cached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars
from eos_sink_lab.testing.java import find_java
from eos_sink_lab.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink_lab.testing.waiting import to_stderr


def kafka_tools() -> str:
    """The class path of Kafka's own tools: one jar beside those of the broker."""
    broker = ensure_kafka(DEFAULT_VERSION, find_java())
    jar = Artifact("org.apache.kafka", "kafka-tools", DEFAULT_VERSION, transitive=False)
    return f"{broker.classpath}:{class_path('kafka-tools', [jar])}"


def class_path(name: str, jars: Sequence[Artifact]) -> str:
    """The class path of these jars, which are downloaded if the cache lacks them.

    Args:
        name: of their directory in the cache.
        jars: all of them; other versions than before are downloaded.

    Raises:
        DownloadError: they cannot be had.
    """
    directory = cache_root() / name / "-".join(jar.version for jar in jars[:2])

    def download(draft: Path) -> None:
        download_jars(jars, draft, find_java(), label=name, progress=to_stderr)

    ensure_jars(directory, download, name, to_stderr)
    return f"{directory}/*"
