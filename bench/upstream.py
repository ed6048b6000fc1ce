"""What limits of Spark and librdkafka cost, each beside the same work without it.

    python -m bench.upstream [--rounds N]

bench/upstream.md says where each limit is. A round measures all of them, with and without, in an
order that changes. Writes bench/results/upstream.json; progress to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.floor import FORMAT
from bench.pages.upstream import NAME
from bench.result import Notebook
from bench.shapes import KEYS, SHAPES
from bench.spark_turns import Bench
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.rows.rows import HEADERS, Rows
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

_TURN_S = 240.0
_CALLS, _STAGE = 2_000, 1_000_000
_WITH_HEADERS = next(shape for shape in SHAPES if shape.headers)
_NO_LIMIT = str(2**31 - 1)
_DELAY_S = 0.01
_AT_ONCE, _TURNS, _PARTITIONS = 10_000, 30, 6
_LARGE_ROWS, _LARGE = 100_000, b"x" * 1_000

Samples = Iterator[tuple[str, bool, float]]
"""The limit's case, whether the limit applies, and what was measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    parsed = parser.parse_args(arguments)
    with (
        start_broker(parsed.version, to_stderr, proxied=True) as kafka,
        contextlib.closing(Bench(2, kafka)) as bench,
    ):
        parameters = {"rounds": parsed.rounds, "delay_ms": _DELAY_S * 2_000}
        notebook = Notebook(NAME, kafka.version, parameters)
        limits: dict[str, tuple[str, Callable[[bool], Samples]]] = {
            "commit coordinator": ("us", _coordinator),
            "size check": ("us", lambda turned: _size_check(bench, turned)),
            "in flight": ("rows/s", lambda turned: _in_flight(kafka, turned)),
            "headers": ("us", lambda turned: _headers(kafka, turned)),
        }
        for number in range(-1, parsed.rounds):
            for limit, (unit, measure) in limits.items():
                for case, applies, sample in measure(number % 2 == 1):
                    to_stderr(f"{number + 1}: {limit}, {case}, {applies}: {sample:,.2f} {unit}")
                    # The first round only warms up.
                    if number >= 0:
                        notebook.note(limit, unit, sample, case=case, applies=applies)
            if number >= 0:
                notebook.result().write(RESULTS / f"{NAME}.json")
    return 0


def _both(turned: bool) -> tuple[bool, ...]:
    return (True, False) if turned else (False, True)


def _session() -> SparkSession:
    """The session of `Bench`."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return spark


def _coordinator(turned: bool) -> Samples:
    """A call from Python that asks for the permission to commit, and one that does nothing."""
    spark = _session()
    assert spark._jvm is not None
    coordinator = spark._jvm.org.apache.spark.SparkEnv.get().outputCommitCoordinator()
    coordinator.stageStart(_STAGE, _CALLS)
    for applies in _both(turned):
        began = time.perf_counter()
        for number in range(_CALLS):
            if applies:
                coordinator.canCommit(_STAGE, 0, number, 0)
            else:
                coordinator.isEmpty()
        yield "a task", applies, (time.perf_counter() - began) / _CALLS * 1e6
    coordinator.stageEnd(_STAGE)


def _size_check(bench: Bench, turned: bool) -> Samples:
    """The JVM's CPU for a row that a Python sink drops."""
    spark = _session()
    setting = "spark.sql.execution.arrow.maxBytesPerBatch"
    default = spark.conf.get(setting)
    assert default is not None
    for shape in (KEYS, _WITH_HEADERS):
        for applies in _both(turned):
            spark.conf.set(setting, default if applies else _NO_LIMIT)
            shorter = replace(shape, batches=3, warm_up=1)
            turn = bench.turn(FORMAT, shorter, {}, Deadline(_TURN_S))
            yield shape.name, applies, turn.cpu_s["spark"] / shape.rows * 1e6
    spark.conf.set(setting, default)


def _in_flight(kafka: LocalCluster, turned: bool) -> Samples:
    """Rows a second of one partition, as an idempotent producer and as one that is not."""
    (broker,) = kafka.brokers
    for delay in (0.0, _DELAY_S):
        for idempotent in _both(turned):
            with topic_for(kafka, _unique(), 1) as topic:
                producer = Producer(
                    {
                        "bootstrap.servers": kafka.bootstrap_servers,
                        "enable.idempotence": idempotent,
                        "linger.ms": 5,
                        "queue.buffering.max.messages": _LARGE_ROWS,
                    }
                )
                producer.list_topics(topic)
                if delay:
                    broker.link.delay(delay)
                began = time.perf_counter()
                for _ in range(_LARGE_ROWS):
                    producer.produce(topic, _LARGE, partition=0)
                left = producer.flush(_TURN_S)
                seconds = time.perf_counter() - began
                broker.link.heal()
                if left:
                    raise TimeoutError(f"{left} rows are not written")
            yield f"{2_000 * delay:.0f} ms", idempotent, _LARGE_ROWS / seconds


def _headers(kafka: LocalCluster, turned: bool) -> Samples:
    """The client's CPU for a row of 100 bytes: in one call for all of a partition, or in one for
    each row, because it has a timestamp or three headers."""
    plain = Rows(
        pa.array([b"x" * 100] * _AT_ONCE, pa.binary()),
        partition=pa.array([number % _PARTITIONS for number in range(_AT_ONCE)], pa.int32()),
    )
    three = [(f"header-{number:03}", b"value-0000") for number in range(3)]
    cases = {
        "a timestamp": replace(plain, timestamp=pa.array([1_700_000_000_000] * _AT_ONCE)),
        "3 headers": replace(plain, headers=pa.array([three] * _AT_ONCE, HEADERS)),
    }
    for case, rows in cases.items():
        for applies in _both(turned):
            with topic_for(kafka, _unique(), _PARTITIONS) as topic:
                yield (
                    case,
                    applies,
                    _produce(kafka, replace(rows if applies else plain, topic=topic)),
                )


def _produce(kafka: LocalCluster, rows: Rows) -> float:
    """Microseconds of CPU a row."""
    where = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "t", "eos.id": _unique()}
    client = ConfluentKafka(parse_options(where).cluster)
    with contextlib.closing(client.producer(where["eos.id"], 600_000)) as producer:
        deadline = Deadline(_TURN_S)
        producer.init(deadline)
        producer.begin()
        used = time.process_time()
        for _ in range(_TURNS):
            producer.produce_rows(rows)
        producer.flush(deadline)
        used = time.process_time() - used
        producer.commit(deadline)
    client.close()
    return used / (_TURNS * _AT_ONCE) * 1e6


def _unique() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"


if __name__ == "__main__":
    sys.exit(main())
