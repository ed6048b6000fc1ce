"""The one form that results have: a value, kept as JSON with every sample in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from eos_sink.bench.machine import surroundings
from eos_sink.bench.spread import Spread, spread

Label = str | int | float | bool

_DIGITS = 5


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
        name: of the benchmark, which is its file's too.
        date: UTC, when it ended, such as "2026-01-31T12:00Z".
        machine: see `eos_sink.bench.machine.surroundings`.
        parameters: what it was told, such as {"rounds": 5}.
        series: all that was measured.
    """

    name: str
    date: str
    machine: Mapping[str, Any]
    parameters: Mapping[str, Any]
    series: tuple[Series, ...] = field(default=())

    def having(self, what: str | None = None, **labels: Label) -> Iterator[Series]:
        """Those of this quantity and with all of these labels."""
        for each in self.series:
            if what in (None, each.what) and labels.items() <= each.labels.items():
                yield each

    def one(self, what: str, **labels: Label) -> Series:
        """The only one of this quantity and with these labels.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = list(self.having(what, **labels))
        if len(found) != 1:
            raise LookupError(f"{len(found)} series of {self.name} are {what} {labels}, not one")
        return found[0]

    def to_json(self) -> str:
        """A line for each series; its spread is there for people and not read back."""
        head = {
            "name": self.name,
            "date": self.date,
            "machine": self.machine,
            "parameters": self.parameters,
        }
        lines = ",\n".join(json.dumps(_document(each)) for each in self.series)
        opened = json.dumps(head, indent=1).removesuffix("\n}")
        return f'{opened},\n "series": [\n{lines}\n ]\n}}\n'

    @staticmethod
    def from_json(text: str) -> Result:
        given = json.loads(text)
        series = tuple(
            Series(each["what"], each["unit"], each["labels"], tuple(each["samples"]))
            for each in given.pop("series")
        )
        return Result(**given, series=series)

    def write(self, there: Path) -> None:
        """Keep it as a file; directories are made."""
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(self.to_json(), encoding="utf-8")

    @staticmethod
    def read(there: Path) -> Result:
        return Result.from_json(there.read_text(encoding="utf-8"))


class Notebook:
    """Takes samples while a benchmark runs; a key seen again continues its series.

    Args:
        name: of the benchmark.
        kafka: the broker's version.
        parameters: what the benchmark was told.
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
        """All so far, with the date and the machine of now."""
        now = datetime.now(timezone.utc)
        return Result(
            name=self._name,
            date=now.strftime("%Y-%m-%dT%H:%MZ"),
            machine=surroundings(self._kafka),
            parameters=self._parameters,
            series=tuple(
                Series(what, unit, dict(labels), tuple(_rounded(s) for s in samples))
                for (what, unit, labels), samples in self._samples.items()
            ),
        )


def _document(series: Series) -> dict[str, Any]:
    document: dict[str, Any] = {
        "what": series.what,
        "unit": series.unit,
        "labels": series.labels,
    }
    if series.samples:
        found = series.spread
        document |= {
            "n": found.n,
            "median": _rounded(found.median),
            "p5": _rounded(found.p5),
            "p95": _rounded(found.p95),
        }
    return {**document, "samples": series.samples}


def _rounded(value: float) -> float:
    """To five digits that count: more are noise."""
    return float(f"{value:.{_DIGITS}g}")
