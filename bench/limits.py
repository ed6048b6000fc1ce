"""The limit: producers that write the same bytes without Spark.

    python -m bench.limits WRITER SERVERS TOPIC SHAPE   writes, tells what it took

Run as a program it is a peer itself, so that its CPU seconds are its own.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path

from bench.jars import kafka_tools
from bench.shape import Shape
from bench.shapes import SHAPES
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.java import find_java

# As many batches as a turn of Spark's, so that a JVM has time to compile.
_BATCHES = 3
_SENT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")
_LONGEST_S = 300
_ROOM_S = 0.01
# As Spark hands them over.
_ARROW_ROWS = 10_000


@dataclass(frozen=True)
class Written:
    """A producer's report.

    Attributes:
        rows: how many.
        rows_per_second: while it wrote, without its start.
        cpu_s: user and system seconds for a million rows; of a JVM, its start included.
    """

    rows: int
    rows_per_second: float
    cpu_s: float


def performance_tool(servers: str, topic: str, shape: Shape) -> Written:
    """Kafka's own ProducerPerformance: one producer, random bytes of the same length."""
    rows = _BATCHES * shape.rows
    settings = {
        "bootstrap.servers": servers,
        **shape.settings,
        # The Java client waits where librdkafka has a queue of 1 GB.
        "buffer.memory": str(256 * 1024 * 1024),
    }
    command = [
        *(str(find_java().executable), "-Xmx1g", "-cp", kafka_tools()),
        *("org.apache.kafka.tools.ProducerPerformance", "--topic", topic),
        *("--num-records", str(rows), "--record-size", str(shape.value_bytes)),
        *("--throughput", "-1", "--producer-props"),
        *(f"{name}={value}" for name, value in settings.items()),
    ]
    said, cpu_s = _run(command)
    found = _SENT.findall(said)
    if not found:
        raise RuntimeError(f"ProducerPerformance said: {said[-500:]}")
    # The last line is of all records; those before it are of some seconds each.
    return Written(rows, float(found[-1][1]), cpu_s * 1e6 / rows)


def in_python(writer: str, servers: str, topic: str, shape: Shape) -> Written:
    """One of WRITERS, over values that exist already."""
    command = [sys.executable, "-m", "bench.limits", writer, servers, topic, shape.name]
    said, _ = _run(command)
    told = json.loads(said.splitlines()[-1])
    rows = told["rows"]
    return Written(rows, rows / told["seconds"], told["cpu_s"] * 1e6 / rows)


LIMITS: dict[str, Callable[[str, str, Shape], Written]] = {
    "ProducerPerformance": performance_tool,
    "librdkafka": partial(in_python, "librdkafka"),
    "producer": partial(in_python, "producer"),
}


def _run(command: list[str]) -> tuple[str, float]:
    """Standard output, and the CPU seconds of the process and what it has waited for."""
    before = _children_cpu()
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Spent = tuple[float, float]
"""Seconds, and CPU seconds of all threads."""


def _stopwatch() -> Callable[[], Spent]:
    began, used = time.monotonic(), time.process_time()
    return lambda: (time.monotonic() - began, time.process_time() - used)


def loop(servers: str, topic: str, shape: Shape) -> Spent:
    """A call of confluent-kafka's `produce` for each value."""
    from confluent_kafka import Producer

    values = [shape.value(number) for number in range(shape.rows)]
    settings = {"bootstrap.servers": servers, "enable.idempotence": True, **shape.settings}
    producer = Producer(settings)
    produce = partial(producer.produce, topic)
    spent = _stopwatch()
    for value in chain.from_iterable(repeat(values, _BATCHES)):
        while True:
            try:
                produce(value)
                break
            except BufferError:
                producer.poll(_ROOM_S)
    left = producer.flush(_LONGEST_S)
    assert not left, f"{left} records were not delivered"
    return spent()


def batches(servers: str, topic: str, shape: Shape) -> Spent:
    """The sink's own producer, over Arrow batches, a transaction for each batch."""
    import pyarrow as pa

    from eos_sink.kafka.cluster import ConfluentKafka
    from eos_sink.kafka.rows import Rows
    from eos_sink.options import parse_options

    values = pa.array([shape.value(number) for number in range(shape.rows)], pa.binary())
    where = {"kafka.bootstrap.servers": servers, "eos.id": topic, "topic": topic}
    producer = ConfluentKafka(parse_options({**where, **shape.options})).producer(topic, 600_000)
    deadline = Deadline(_LONGEST_S)
    spent = _stopwatch()
    producer.init(deadline)
    for _ in range(_BATCHES):
        producer.begin()
        for start in range(0, shape.rows, _ARROW_ROWS):
            producer.produce_rows(Rows(values.slice(start, _ARROW_ROWS), topic=topic))
        producer.flush(deadline)
        producer.commit(deadline)
    found = spent()
    producer.close()
    return found


WRITERS = {"librdkafka": loop, "producer": batches}


def main(writer: str, servers: str, topic: str, name: str) -> int:
    (shape,) = (shape for shape in SHAPES if shape.name == name)
    seconds, cpu_s = WRITERS[writer](servers, topic, shape)
    print(json.dumps({"rows": _BATCHES * shape.rows, "seconds": seconds, "cpu_s": cpu_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
