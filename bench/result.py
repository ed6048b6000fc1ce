"""What benchmarks measure: samples, their spread, and the machine; kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eos_sink_lab.testing import JavaNotFoundError
from eos_sink_lab.testing.java import find_java

Label = str | int | float | bool

_DIGITS = 5
_PACKAGES = ("eos-sink", "pyspark", "pyarrow", "confluent-kafka", "kafka-python")


@dataclass(frozen=True)
class Spread:
    """Number, median and percentiles of samples, in their unit."""

    n: int
    median: float
    p5: float
    p95: float


def spread(samples: Iterable[float]) -> Spread:
    """The spread of samples in any order; percentiles are interpolated.

    Raises:
        ValueError: there are no samples.
    """
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("no samples, no spread")

    def percentile(part: float) -> float:
        place = part * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

    return Spread(len(ordered), statistics.median(ordered), percentile(0.05), percentile(0.95))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """The spread of ours / theirs, of two series that were measured in turns.

    Each sample is compared with the one that was measured beside it, so that what the machine did
    meanwhile is in both. Samples of the longer series that have no partner are left out.

    Raises:
        ValueError: a series is empty.
        ZeroDivisionError: one of theirs is 0.
    """
    return spread(our / their for our, their in zip(ours, theirs, strict=False))


@dataclass(frozen=True)
class Series:
    """Samples of one quantity under the same conditions, in the order in which they were taken.

    Attributes:
        what: the quantity, such as "addBatch".
        unit: "ms", "s", "rows/s", "MB/s", "B" or "".
        labels: the conditions, such as {"peer": "kafka-eos", "rows": 1000}.
        samples: the values.
    """

    what: str
    unit: str
    labels: Mapping[str, Label]
    samples: tuple[float, ...]

    @property
    def spread(self) -> Spread:
        """Raises ValueError if there is no sample."""
        return spread(self.samples)


@dataclass(frozen=True)
class Result:
    """What one benchmark has measured.

    Attributes:
        name: of the benchmark, and of its file.
        date: UTC, when it ended, such as "2026-01-31T12:00Z".
        machine: see `surroundings`.
        parameters: of the benchmark, such as {"rounds": 5}.
        series: all that was measured.
    """

    name: str
    date: str
    machine: Mapping[str, Any]
    parameters: Mapping[str, Any]
    series: tuple[Series, ...] = ()

    def having(self, what: str | None = None, **labels: Label) -> Iterator[Series]:
        """The series of this quantity with all of these labels."""
        for each in self.series:
            if what in (None, each.what) and labels.items() <= each.labels.items():
                yield each

    def find(self, what: str, **labels: Label) -> Series | None:
        """The first series of this quantity with these labels; None if there is none."""
        return next(self.having(what, **labels), None)

    def one(self, what: str, **labels: Label) -> Series:
        """The only series of this quantity with these labels.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = list(self.having(what, **labels))
        if len(found) != 1:
            raise LookupError(f"{len(found)} series of {self.name} are {what} {labels}, not one")
        return found[0]

    def to_json(self) -> str:
        """JSON with a line for each series."""
        head = {name: value for name, value in vars(self).items() if name != "series"}
        lines = []
        for each in self.series:
            fields: dict[str, Any] = {"what": each.what, "unit": each.unit, "labels": each.labels}
            lines.append(json.dumps({**fields, "samples": each.samples}))
        opened, series = json.dumps(head, indent=1).removesuffix("\n}"), ",\n".join(lines)
        return f'{opened},\n "series": [\n{series}\n ]\n}}\n'

    @staticmethod
    def from_json(text: str) -> Result:
        given = json.loads(text)
        series = tuple(
            Series(each["what"], each["unit"], each["labels"], tuple(each["samples"]))
            for each in given.pop("series")
        )
        return Result(**given, series=series)

    def write(self, path: Path) -> None:
        """Write the file; directories are created."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_json(), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Result:
        return Result.from_json(path.read_text(encoding="utf-8"))


class Notebook:
    """Takes samples while a benchmark runs.

    Args:
        name: of the benchmark.
        kafka: the broker's version.
        parameters: of the benchmark.
    """

    def __init__(self, name: str, kafka: str, parameters: Mapping[str, Any]) -> None:
        self._name = name
        self._kafka = kafka
        self._parameters = dict(parameters)
        self._samples: dict[tuple[str, str, tuple[tuple[str, Label], ...]], list[float]] = {}

    def note(self, what: str, unit: str, *samples: float, **labels: Label) -> None:
        """Append samples to the series of this quantity, unit and labels."""
        key = (what, unit, tuple(labels.items()))
        self._samples.setdefault(key, []).extend(samples)

    def result(self) -> Result:
        """All samples so far, with the current date and machine."""
        return Result(
            name=self._name,
            date=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
            machine=surroundings(self._kafka),
            parameters=self._parameters,
            series=tuple(
                Series(what, unit, dict(labels), tuple(map(_round, samples)))
                for (what, unit, labels), samples in self._samples.items()
            ),
        )


def _round(value: float) -> float:
    """To five significant digits: more are noise."""
    return float(f"{value:.{_DIGITS}g}")


def machine() -> dict[str, Any]:
    """The machine, without what is installed on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    processors = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": [round(each, 1) for each in os.getloadavg()],
        "processor": processors[0] if processors else platform.processor(),
    }


def surroundings(kafka: str) -> dict[str, Any]:
    """The machine and the versions of everything that takes part.

    Args:
        kafka: the broker's version, as in `KafkaCluster.version`.
    """
    import confluent_kafka

    try:
        java = find_java().version
    except JavaNotFoundError:
        java = "none"
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    librdkafka = str(confluent_kafka.libversion()[0])
    return {
        **machine(),
        "java": java,
        "versions": {**versions, "librdkafka": librdkafka, "kafka": kafka},
    }
