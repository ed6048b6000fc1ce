"""What a cluster should be like, as `start_kafka` was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eos_sink.testing.kafka_files import DEFAULT_VERSION
from eos_sink.testing.progress import Progress, to_stderr
from eos_sink.testing.security import Security


@dataclass(frozen=True)
class ClusterSpec:
    """See `start_kafka` for what each means.

    Attributes:
        log_level: of the nodes' own logs (local only): "warn", "info", "debug" or "trace".
        jvm: options of the nodes' JVM, which win over the cluster's own (local only).
    """

    brokers: int = 1
    version: str = DEFAULT_VERSION
    properties: Mapping[str, object] = field(default_factory=dict)
    data_dir: Path | None = None
    progress: Progress = to_stderr
    log_level: str = "warn"
    proxied: bool = False
    security: Security | None = None
    jvm: tuple[str, ...] = ()
