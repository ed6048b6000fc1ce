"""The machine of a measurement, as a result has it."""

from __future__ import annotations

from typing import Any

MACHINE: dict[str, Any] = {
    "cores": 2,
    "processor": "a processor",
    "memory_gb": 8,
    "java": "17",
    "load": [1.0, 2.0, 3.0],
    "python": "3.11",
    "versions": {"kafka": "4.3.0", "librdkafka": "2.16", "kafka-python": "3", "pyarrow": "26"},
}
