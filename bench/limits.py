"""The limit: the sink's own producer, which writes the same bytes without Spark.

    python -m bench.limits SERVERS TOPIC SHAPE

It is a program of its own so that its CPU seconds are its own, and prints what it took as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import pyarrow as pa

from bench.shape import Shape
from bench.shapes import SHAPES
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.rows.rows import Rows

# As many batches as a turn of Spark's.
_BATCHES = 3
_LONGEST_S = 300
# As Spark hands them over.
_ARROW_ROWS = 10_000


@dataclass(frozen=True)
class Written:
    """The producer's report.

    Attributes:
        rows: how many.
        rows_per_second: while it wrote, without its start.
        cpu_s: user and system seconds for a million rows.
    """

    rows: int
    rows_per_second: float
    cpu_s: float


def run_producer(servers: str, topic: str, shape: Shape) -> Written:
    """Run the program; it writes values that exist already."""
    command = [sys.executable, "-m", "bench.limits", servers, topic, shape.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    if done.returncode:
        raise RuntimeError(f"bench.limits ended with {done.returncode}: {done.stderr[-2000:]}")
    return Written(**json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Write Arrow batches, a transaction for each batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("servers", "topic", "shape"):
        parser.add_argument(name)
    servers, topic, name = vars(parser.parse_args()).values()
    (shape,) = (shape for shape in SHAPES if shape.name == name)
    values = pa.array([shape.value(number) for number in range(shape.rows)], pa.binary())
    where = {"kafka.bootstrap.servers": servers, "eos.id": topic, "topic": topic}
    producer = ConfluentKafka(parse_options({**where, **shape.options}).cluster).producer(
        topic, 600_000
    )
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
    rows = _BATCHES * shape.rows
    print(json.dumps(asdict(Written(rows, rows / seconds, cpu_s * 1e6 / rows))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
