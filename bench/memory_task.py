"""A task's Python worker that `bench.memory` watches: the sink's own code, rows made as they go.

    python -m bench.memory_task TASK.json

It imports what Spark's worker imports, writes each batch that it gets (the plans are pickled
in files, since planning is the driver's), and tells as JSON lines on standard output what memory it
has, how many rows it has taken and how many descriptors and threads it holds.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

# Spark's worker has it loaded before it comes to the sink.
import pyspark.worker  # noqa: F401

from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId
from eos_sink.task.writer import TaskWriter

_DIGITS = 12


@dataclass
class Taken:
    """The task's progress."""

    rows: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", type=Path)
    task: dict[str, Any] = json.loads(parser.parse_args().task.read_text())
    options = parse_options(task["options"])
    # As Spark's worker does with its answer, which loads pandas where it is installed.
    pa.array([b""])
    taken = Taken()
    _tell(what="base", **_state(), rows=0)
    ended = threading.Event()
    threading.Thread(target=_watch, args=(task["every_s"], taken, ended), daemon=True).start()
    for number, line in enumerate(sys.stdin):
        plan = pickle.loads(Path(line.strip()).read_bytes())
        taken.rows = 0
        writer = TaskWriter(ConfluentKafka(options.cluster), options, plan)
        rows = _rows(task["rows"], task["size"], task["each"], taken)
        report = writer.write(BatchId("stream", number), 0, rows)
        report_file = Path(f"{line.strip()}.report")
        report_file.write_bytes(pickle.dumps(report))
        _tell(what="written", **_state(), rows=taken.rows)
    ended.set()


def _rows(count: int, size: int, each: int, taken: Taken) -> Iterator[pa.RecordBatch]:
    """Rows as Spark passes them: each batch is new, and released when the next one comes.

    A value is its number, filled up with letters.
    """
    filling = np.random.default_rng(7).integers(97, 113, size, dtype=np.uint8)
    for start in range(0, count, each):
        many = min(each, count - start)
        values = np.empty((many, size), np.uint8)
        values[:] = filling
        numbers = np.char.mod(f"%0{_DIGITS}d", np.arange(start, start + many)).astype("S")
        values[:, :_DIGITS] = numbers.view(np.uint8).reshape(many, _DIGITS)
        offsets = np.arange(many + 1, dtype=np.int32) * size
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
        column = pa.Array.from_buffers(pa.binary(), many, buffers)
        taken.rows += many
        yield pa.record_batch({"value": column})


def _watch(every_s: float, taken: Taken, ended: threading.Event) -> None:
    while not ended.wait(every_s):
        _tell(what="at", **_state(), rows=taken.rows)


def _state() -> dict[str, float]:
    status = Path("/proc/self/status").read_text()
    found = dict(line.split(":", 1) for line in status.splitlines())
    return {
        "at": time.time(),
        "rss": _bytes(found["VmRSS"]),
        "peak": _bytes(found["VmHWM"]),
        "threads": int(found["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }


def _bytes(text: str) -> int:
    """Of "1234 kB"."""
    return int(text.split(maxsplit=1)[0]) * 1024


def _tell(**what: Any) -> None:
    # One write a line, so that those of two threads do not mix.
    os.write(sys.stdout.fileno(), f"{json.dumps(what)}\n".encode())


if __name__ == "__main__":
    main()
