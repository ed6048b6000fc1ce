"""The limit: producers that write the same bytes without Spark.

    python -m bench.limits SERVERS TOPIC SHAPE   writes with the sink's own, tells what it took

Run as a program it is a peer itself, so that its CPU seconds are its own.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from bench.jars import kafka_tools
from bench.shape import Shape
from bench.shapes import SHAPES
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.rows import Rows
from eos_sink.options import parse_options
from eos_sink_lab.testing.java import find_java

# As many batches as a turn of Spark's, so that a JVM has time to compile.
_BATCHES = 3
_SENT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")
_LONGEST_S = 300
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


def own_producer(servers: str, topic: str, shape: Shape) -> Written:
    """The sink's own producer, over values that exist already."""
    said, _ = _run([sys.executable, "-m", "bench.limits", servers, topic, shape.name])
    told = json.loads(said.splitlines()[-1])
    rows = told["rows"]
    return Written(rows, rows / told["seconds"], told["cpu_s"] * 1e6 / rows)


LIMITS: dict[str, Callable[[str, str, Shape], Written]] = {
    "ProducerPerformance": performance_tool,
    "producer": own_producer,
}


def _run(command: list[str]) -> tuple[str, float]:
    """Standard output, and the CPU seconds of the process and what it has waited for."""
    before = _children_cpu()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Write Arrow batches, a transaction for each batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("servers", "topic", "shape"):
        parser.add_argument(name)
    servers, topic, name = vars(parser.parse_args()).values()
    (shape,) = (shape for shape in SHAPES if shape.name == name)
    values = pa.array([shape.value(number) for number in range(shape.rows)], pa.binary())
    where = {"kafka.bootstrap.servers": servers, "eos.id": topic, "topic": topic}
    producer = ConfluentKafka(parse_options({**where, **shape.options})).producer(topic, 600_000)
    deadline = Deadline(_LONGEST_S)
    began, used = time.monotonic(), time.process_time()
    producer.init(deadline)
    for _ in range(_BATCHES):
        producer.begin()
        for start in range(0, shape.rows, _ARROW_ROWS):
            producer.produce_rows(Rows(values.slice(start, _ARROW_ROWS), topic=topic))
        producer.flush(deadline)
        producer.commit(deadline)
    seconds, cpu_s = time.monotonic() - began, time.process_time() - used
    producer.close()
    print(json.dumps({"rows": _BATCHES * shape.rows, "seconds": seconds, "cpu_s": cpu_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
