"""What figures were measured on, so that they can be read by somebody else."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eos_sink.testing import JavaNotFoundError
from eos_sink.testing.java import find_java

PACKAGES = ("eos-sink", "pyspark", "pyarrow", "confluent-kafka", "kafka-python")


def machine() -> dict[str, Any]:
    """The machine, without what is installed on it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": [round(each, 1) for each in os.getloadavg()],
        "processor": _processor(),
    }


def surroundings(kafka: str) -> dict[str, Any]:
    """The machine and the versions of everything that takes part.

    Args:
        kafka: the broker's version, as `KafkaCluster.version` tells it.
    """
    versions = {name: found for name in PACKAGES if (found := _installed(name))}
    return {
        **machine(),
        "java": _java(),
        "versions": {**versions, "librdkafka": _librdkafka(), "kafka": kafka},
    }


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _java() -> str:
    try:
        return find_java(os.environ).version
    except JavaNotFoundError:
        return "none"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
