"""A local node's directory: its configuration, data and log."""

from __future__ import annotations

import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eos_sink.testing import text

_META = "meta.properties"


@dataclass(frozen=True)
class NodeHome:
    """Where a node keeps everything."""

    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "node.log"

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write server.properties."""
        self.config.write_text(text.render(properties), encoding="utf-8")

    def format(self, node_id: int, cluster_id: str, bootstrap_records: Path) -> None:
        """What `kafka-storage format` does, without a JVM; formatted data stays as it is."""
        if (self.data / _META).exists():
            return
        self.data.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bootstrap_records, self.data / bootstrap_records.name)
        meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
        (self.data / _META).write_text(text.render(meta), encoding="utf-8")


def known_cluster_id(directory: Path) -> str | None:
    """The id of the cluster whose nodes' homes are in there already, if there is one."""
    for meta in sorted(directory.glob(f"node-*/data/{_META}")):
        return text.parse(meta.read_text(encoding="utf-8")).get("cluster.id")
    return None


def new_cluster_id() -> str:
    """A random id, as Kafka writes it: 16 bytes in URL-safe base 64."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
