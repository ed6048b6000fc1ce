"""Kafka of any version in the cache, ready to start fast.

`python -m eos_sink.testing.kafka_files [VERSION ...]` downloads it ahead of its use.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eos_sink_lab.testing import jar_cache, node_properties
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.cluster_errors import DownloadError, TestClusterError
from eos_sink_lab.testing.jar_cache import Artifact
from eos_sink_lab.testing.java import Java, find_java
from eos_sink_lab.testing.waiting import Progress, to_stderr

DEFAULT_VERSION = "4.3.0"

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_FORMAT_TIMEOUT_S = 60.0
_BOOTSTRAP_RECORDS = "bootstrap.checkpoint"


@dataclass(frozen=True)
class KafkaFiles:
    """A Kafka in the cache: its version, such as "4.3.0", and the directory of its jars."""

    version: str
    directory: Path

    @property
    def classpath(self) -> str:
        return f"{self.directory}/*"

    @property
    def bootstrap_records(self) -> Path:
        """The feature levels that a freshly formatted node of this version starts from."""
        return self.directory / _BOOTSTRAP_RECORDS

    def class_archive(self, java: Java) -> Path:
        """The file in which the JVM finds Kafka's classes already parsed (class data sharing)."""
        tag = hashlib.sha256(f"{java.executable} {java.version}".encode()).hexdigest()[:12]
        return self.directory / f"classes-{tag}.jsa"


def kafka_artifacts(version: str) -> list[Artifact]:
    """Kafka and a back end for its log."""
    return [
        Artifact("org.apache.kafka", "kafka_2.13", version),
        # Kafka logs through SLF4J 1.7 and depends on no back end: without one it logs nothing.
        # slf4j-simple serves every version and needs no file.
        Artifact("org.slf4j", "slf4j-simple", "1.7.36", transitive=False),
    ]


def ensure_kafka(
    version: str,
    java: Java,
    progress: Progress = to_stderr,
    environ: Mapping[str, str] = os.environ,
) -> KafkaFiles:
    """Kafka's files of that version, downloaded if the cache lacks them or has them broken.

    Raises:
        DownloadError: the version is malformed, or cannot be downloaded.
        NotReadyError: another process was still busy with it after 15 minutes.
    """
    if not _VERSION.fullmatch(version):
        raise DownloadError(f"A Kafka version looks like 4.3.0, not {version!r}.")
    label = f"Kafka {version} (about 50 jars, 45 MB)"

    def download(draft: Path) -> None:
        jar_cache.download_jars(
            kafka_artifacts(version), draft, java, label=label, progress=progress, environ=environ
        )
        _record_bootstrap(KafkaFiles(version, draft), java)

    files = KafkaFiles(version, cache_root(environ) / "kafka" / version)
    jar_cache.ensure_jars(files.directory, download, label, progress)
    return files


def _record_bootstrap(files: KafkaFiles, java: Java) -> None:
    """Let Kafka's own tool format a directory once, and keep what it writes for all nodes.

    A node without these records starts with the oldest features instead of its version's own
    (transactions of the first version, for instance). The tool takes a JVM start, about 0.8 s for
    each node; what it writes differs between nodes in meta.properties only.
    """
    with tempfile.TemporaryDirectory(prefix="eos-kafka-format-") as scratch:
        (node,) = node_properties.plan_nodes(1)
        endpoint = node_properties.Endpoint("127.0.0.1", 9092)
        controller = node_properties.Endpoint("127.0.0.1", 9093)
        layout = node_properties.Layout(
            {node.id: node_properties.Endpoints(endpoint, controller)}, 1, f"{scratch}/data"
        )
        config = Path(scratch) / "server.properties"
        config.write_text(
            node_properties.properties_text(node_properties.node_properties(node, layout))
        )
        done = subprocess.run(
            [
                *(str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", files.classpath),
                *("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ"),
                *("-c", str(config)),
            ],
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            check=False,
        )
        records = Path(scratch) / "data" / _BOOTSTRAP_RECORDS
        if done.returncode != 0 or not records.is_file():
            raise DownloadError(
                f"Kafka {files.version} on Java {java.version} could not format a directory:\n"
                f"{done.stdout}{done.stderr}"
            )
        shutil.copyfile(records, files.bootstrap_records)


if __name__ == "__main__":
    try:
        for each in sys.argv[1:] or [DEFAULT_VERSION]:
            sys.stdout.write(f"Kafka {each}: {ensure_kafka(each, find_java()).directory}\n")
    except TestClusterError as error:
        sys.exit(str(error))
