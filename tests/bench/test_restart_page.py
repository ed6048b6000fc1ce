"""The page about restarts sets the sinks beside each other as they took turns."""

from __future__ import annotations

from bench.pages.restart import RESTART
from bench.result import Result, Series

MACHINE = {
    "cores": 2,
    "processor": "x",
    "memory_gb": 8,
    "java": "17",
    "python": "3.11",
    "versions": {"kafka": "4.3.0", "librdkafka": "2.16.0", "kafka-python": "3", "pyarrow": "26"},
}


def series(peer: str, *samples: float) -> list[Series]:
    labels = {"peer": peer, "ended": "clean", "archive": ""}
    units = {"from start()": "ms", "from the process": "ms", "CPU": "s"}
    return [Series(what, unit, labels, samples) for what, unit in units.items()]


def test_what_a_restart_takes_more_than_another_sink_is_of_pairs_that_ran_beside_each_other() -> (
    None
):
    measured = (*series("kafka-eos", 900, 5200, 1000), *series("kafka", 500, 4800, 500))
    result = Result("restart", "2026-01-31T12:00Z", MACHINE, {}, measured)
    told = list(RESTART.lines({"restart": result}))
    assert told[-1] == "- stopped: 400 ms more than Spark's own sink."
    assert any(line.startswith("| Spark's own sink | stopped |  | 500 (500 to") for line in told)
