"""Looks at a cluster in the text format of Prometheus; the only importer of its client."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from eos_sink.metrics.names import STEP_SECONDS, Count, Gauge
from eos_sink.ops.exposition import Look, Sample, StepSample, samples
from eos_sink.ops.scraper import Scraper

_READABLE = 0o644


class LookCollector(Collector):
    """Looks once for each scrape, as the scraper allows."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it does not look."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from metrics(self._scraper.look())


class _Told(Collector):
    """One look."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        return metrics(self._look)


def serve(scraper: Scraper, address: str, port: int) -> None:
    """Answer scrapes from now on, in a thread of its own.

    Raises:
        OSError: the port is taken, or the address is not of this machine.
    """
    # Without the figures of the exporter's own process that the client adds to its default one.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LookCollector(scraper))
    start_http_server(port, address, registry)


def text_of(look: Look) -> str:
    return generate_latest(_Told(look)).decode()


def write_text(look: Look, file: Path) -> None:
    """Put it in the place of the file in one step: node_exporter never reads half of it.

    Raises:
        OSError: the file cannot be written.
    """
    # Its collector takes every *.prom, so the file that is under way must not be one.
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as text:
            text.write(text_of(look))
        os.chmod(name, _READABLE)  # mkstemp's is for its owner only; node_exporter is another user.
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def metrics(look: Look) -> Iterator[Metric]:
    """Every metric that has a sample."""
    found: dict[Count | Gauge, Metric] = {}
    steps = SummaryMetricFamily(
        STEP_SECONDS,
        "Time of each step of batches that were decided, and how often it was taken.",
        labels=("query", "step"),
    )
    for sample in samples(look):
        if isinstance(sample, StepSample):
            steps.add_metric(
                (sample.query, sample.step.label), sample.time.count, sample.time.total
            )
        else:
            _add(found, sample)
    yield from found.values()
    if steps.samples:
        yield steps


def _add(found: dict[Count | Gauge, Metric], sample: Sample) -> None:
    kind = sample.metric
    if kind not in found:
        family = CounterMetricFamily if isinstance(kind, Count) else GaugeMetricFamily
        found[kind] = family(kind.prometheus, kind.meaning, labels=kind.labels)
    metric = found[kind]
    assert isinstance(metric, (CounterMetricFamily, GaugeMetricFamily))
    metric.add_metric(sample.labels, sample.value)
