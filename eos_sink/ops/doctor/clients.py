"""Versions of Python and of the libraries, here or in an executor's Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.ops.doctor.finding import Check, Finding, Findings, failure, ok, warning

BOUNDS = {
    "confluent-kafka": ("2.16", "3"),
    "kafka-python": ("3.0.12", "4"),
    "numpy": ("1.24", "3"),
    "pyarrow": ("15", ""),
    "tenacity": ("8.2", "10"),
    "pyspark": ("4.1", "5"),
}
"""From which version on, and below which one ("": any), as setup.cfg has them."""
PYTHON = (3, 10)
OPTIONAL = frozenset({"pyspark"})


@dataclass(frozen=True)
class Python:
    """One Python and what it finds.

    Attributes:
        executable: its path.
        version: "3.12.1".
        versions: of each library, also of eos-sink itself; "" where it is not installed.
        librdkafka: of the one that confluent-kafka has loaded; "" if that cannot be imported.
        error: of the import that failed, or empty.
        native: rows can go from Arrow's buffers straight to librdkafka.
    """

    executable: str
    version: str
    versions: Mapping[str, str] = field(default_factory=dict)
    librdkafka: str = ""
    error: str = ""
    native: bool = True


def judge_clients(python: Python) -> Findings:
    found: list[Finding] = []
    if _numbers(python.version) < PYTHON:
        found.append(
            failure(
                Check.CLIENTS,
                f"Python {python.version} is older than {'.'.join(map(str, PYTHON))}",
                "The sink cannot be imported.",
                "Use a newer Python, on driver and executors.",
            )
        )
    found += [
        _wrong(name, version, python)
        for name, version in python.versions.items()
        if name in BOUNDS and not fits(name, version)
    ]
    if python.error:
        found.append(
            failure(
                Check.CLIENTS,
                f"a library cannot be imported: {python.error}",
                "The query fails as soon as it needs it.",
                f"{python.executable} -m pip install --force-reinstall eos-sink",
            )
        )
    elif not python.native:
        found.append(
            warning(
                Check.CLIENTS,
                f"librdkafka {python.librdkafka} is none whose fast path the sink knows",
                "Rows go through confluent-kafka one by one: slower, otherwise the same.",
                _install("confluent-kafka", python),
            )
        )
    known = ", ".join(f"{name} {version}" for name, version in python.versions.items() if version)
    yield from found or [
        ok(Check.CLIENTS, f"Python {python.version}, {known}, librdkafka {python.librdkafka}")
    ]


def fits(name: str, version: str) -> bool:
    """Whether it is one that the sink is tested with; nothing optional has to be there."""
    if not version:
        return name in OPTIONAL
    least, below = BOUNDS[name]
    numbers = _numbers(version)
    return numbers >= _numbers(least) and (not below or numbers < _numbers(below))


def _wrong(name: str, version: str, python: Python) -> Finding:
    what = f"{name} {version}" if version else f"{name} is not installed"
    return failure(
        Check.CLIENTS,
        f"{what}; the sink is made for {wanted(name)}",
        "The query may fail when it needs it.",
        _install(name, python),
    )


def _install(name: str, python: Python) -> str:
    least, below = BOUNDS[name]
    bounds = f"{name}>={least}" + (f",<{below}" if below else "")
    return f"{python.executable} -m pip install '{bounds}'"


def wanted(name: str) -> str:
    least, below = BOUNDS[name]
    return f"{least} or newer" + (f", below {below}" if below else "")


def _numbers(version: str) -> tuple[int, ...]:
    """What can be compared of a version: its leading numbers."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
