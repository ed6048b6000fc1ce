"""Kafka of any version in the cache: complete, checked, and ready to start fast."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import ivy, manifest, properties, text
from eos_sink.testing.cache import cache_root, exclusive
from eos_sink.testing.errors import DownloadError
from eos_sink.testing.ivy import Workbench
from eos_sink.testing.jvm import Java

DEFAULT_VERSION = "4.3.0"

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_WAIT_FOR_OTHERS_S = 900.0
_FORMAT_TIMEOUT_S = 60.0
_BOOTSTRAP_RECORDS = "bootstrap.checkpoint"


@dataclass(frozen=True)
class KafkaFiles:
    """A Kafka in the cache.

    Attributes:
        version: "4.3.0".
        directory: where its jars are.
    """

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
        """Where the JVM finds Kafka's classes already parsed (class data sharing)."""
        tag = hashlib.sha256(f"{java.executable} {java.version}".encode()).hexdigest()[:12]
        return self.directory / f"classes-{tag}.jsa"

    @property
    def lock(self) -> Path:
        return self.directory.parent / f".{self.version}.lock"


def ensure_kafka(version: str, bench: Workbench) -> KafkaFiles:
    """Kafka's files of that version, downloaded if the cache lacks them or has them broken.

    Two processes may call it at once: one downloads, the other waits for it.

    Raises:
        DownloadError: the version is malformed, or cannot be brought.
        NotReadyError: another process was still busy with it after 15 minutes.
    """
    if not _VERSION.fullmatch(version):
        raise DownloadError(f"A Kafka version looks like 4.3.0, not {version!r}.")
    root = cache_root(bench.environ)
    files = KafkaFiles(version, root / "kafka" / version)
    if not _problems(files):
        return files
    with exclusive(
        files.lock,
        Deadline(_WAIT_FOR_OTHERS_S),
        lambda: bench.progress(f"Kafka {version}: another process is downloading it, waiting ..."),
    ):
        problems = _problems(files)
        if problems:
            _replace(files, problems, root / "ivy", bench)
    return files


def _problems(files: KafkaFiles) -> list[str]:
    if not files.directory.is_dir():
        return ["nothing was downloaded yet"]
    known = manifest.read(files.directory)
    return ["the download was not finished"] if known is None else known.problems(files.directory)


def _replace(files: KafkaFiles, problems: list[str], ivy_cache: Path, bench: Workbench) -> None:
    """Download beside the final place and move there when it is complete."""
    if files.directory.is_dir():
        bench.progress(f"Kafka {files.version}: cached, but {problems[0]}; fetching it again")
    began = time.monotonic()
    draft = files.directory.with_name(f".{files.version}.part")
    shutil.rmtree(draft, ignore_errors=True)
    ivy.retrieve_kafka(files.version, draft, ivy_cache, bench)
    _record_bootstrap(KafkaFiles(files.version, draft), bench.java)
    taken = manifest.take(files.version, draft)
    taken.write(draft)
    shutil.rmtree(files.directory, ignore_errors=True)
    draft.rename(files.directory)
    megabytes = sum(entry.size for entry in taken.entries) / 1e6
    bench.progress(
        f"Kafka {files.version}: {len(taken.entries)} files, {megabytes:.0f} MB in "
        f"{files.directory}, {time.monotonic() - began:.0f} s"
    )


def _record_bootstrap(files: KafkaFiles, java: Java) -> None:
    """Let Kafka's own tool format a directory once, and keep what all nodes would get.

    A node without these records starts with the oldest features instead of its version's own
    (transactions of the first version, for instance). The tool takes a JVM start, about 0.8 s a
    node: what it writes differs between nodes in meta.properties only.
    """
    with tempfile.TemporaryDirectory(prefix="eos-kafka-format-") as scratch:
        (node,) = properties.plan_nodes(1)
        ends = properties.Endpoints(
            properties.Endpoint("127.0.0.1", 9092), properties.Endpoint("127.0.0.1", 9093)
        )
        config = Path(scratch) / "server.properties"
        config.write_text(
            text.render(
                properties.node_properties(
                    node, properties.Surroundings({node.id: ends}, 1, f"{scratch}/data")
                )
            ),
            encoding="utf-8",
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
