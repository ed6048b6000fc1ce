"""Times each step of a task's transactional producer, before and after its rows.

    python -m bench.opening [--samples 100] [--brokers 3] [--out FILE]

The steps are those of `eos_sink.task.writer`, with librdkafka as `eos_sink.kafka.producer` sets
it up, in a warm process: new producer, init, begin, 1,000 rows of 100 bytes with keys into six
partitions, flush, the log's offset. Each variation changes one setting or one place in the order.
All are measured in turns, one producer each a round, so that what the machine does meanwhile is in
all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import RESULTS
from bench.result import Notebook, Result
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Transaction
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink_lab.testing import KafkaCluster, start_kafka

AS_THE_SINK = {
    "acks": "all",
    "enable.idempotence": True,
    "enable.sparse.connections": False,
    "partitioner": "murmur2_random",
    "statistics.interval.ms": 10,
    "transaction.timeout.ms": 900_000,
}
ROWS = 1_000
PARTITIONS = 6
VALUE = b"x" * 92
WARM_UP = 3
STEPS = (
    *("new", "init", "commit again", "metadata", "begin", "produce"),
    *("early offset", "flush", "offset", "identity"),
)
_WAIT_S = 60.0


@dataclass(frozen=True)
class Variation:
    """One difference from the sink.

    Attributes:
        settings: of librdkafka, over those of the sink.
        metadata_during_init: the topic's metadata are asked for while the producer inits.
        metadata_first: they are asked for once it has.
        offset_first: the log's offset is added before the flush.
        offset_last: it is added after the flush.
        offset_beside: one offset, by another thread, while this one flushes.
        partitions: over how many the rows are spread.
        kept: the producer of the slot's last transaction goes on. It commits once more what was
            committed from outside, which takes the place of *new* and *init*.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    metadata_during_init: bool = False
    metadata_first: bool = False
    offset_first: bool = False
    offset_last: bool = True
    offset_beside: bool = False
    partitions: int = PARTITIONS
    kept: bool = False


VARIATIONS = {
    "as the sink": Variation(),
    "offset before flush": Variation(offset_first=True, offset_last=False),
    "offset before and after": Variation(offset_first=True),
    "offset beside flush": Variation(offset_last=False, offset_beside=True),
    "one partition": Variation(partitions=1),
    "two partitions": Variation(partitions=2),
    "kept producer": Variation(kept=True),
    "metadata during init": Variation(metadata_during_init=True),
    "metadata after init": Variation(metadata_first=True),
    "sparse connections": Variation({"enable.sparse.connections": True}),
    "no statistics": Variation({"statistics.interval.ms": 0}),
    "statistics 1 ms": Variation({"statistics.interval.ms": 1}),
    "linger 0": Variation({"linger.ms": 0}),
    "reconnect 10 ms": Variation({"reconnect.backoff.ms": 10}),
    "IPv4 only": Variation({"broker.address.family": "v4"}),
    "no metrics push": Variation({"enable.metrics.push": False}),
}


@dataclass(frozen=True)
class Place:
    """Where the rows and the offset go."""

    bootstrap: str
    topic: str
    log: TopicPartition
    member: Any
    control: KafkaPythonControl


class Steps:
    """A stop watch with named laps, in milliseconds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._begun = self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = (now - self._last) * 1000
        self._last = now

    @property
    def total(self) -> float:
        return (self._last - self._begun) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=100, help="of each variation")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, 3))
    parser.add_argument("--version", default="4.3.0", help="of the brokers")
    parser.add_argument("--seconds", type=float, default=200.0, help="stop after so long")
    parser.add_argument("--out", type=Path, help="default: bench/results/opening-<brokers>.json")
    arguments = parser.parse_args()
    with start_kafka(brokers=arguments.brokers, version=arguments.version) as kafka:
        found = measure(kafka, arguments.samples, arguments.seconds)
    found.write(arguments.out or RESULTS / f"opening-{arguments.brokers}.json")
    print(table(found))
    return 0


def measure(kafka: KafkaCluster, samples: int, seconds: float, warm_up: int = WARM_UP) -> Result:
    """Run rounds of all variations until there are enough samples or the time is over.

    Args:
        seconds: after which no round is begun, but one.
        warm_up: rounds that do not count.
    """
    notes = Notebook(
        "opening",
        kafka.version,
        {"brokers": len(kafka.nodes), "rows": ROWS, "partitions": PARTITIONS},
    )
    end = time.monotonic() + seconds
    with _place(kafka) as place:
        kept: dict[str, Task] = {}
        for number in range(warm_up + samples):
            for name, variation in VARIATIONS.items():
                task = Task(place, variation, f"opening-{name}-{number % 2}", kept)
                task.run()
                if number >= warm_up:
                    for step, took in task.steps.laps.items():
                        notes.note(step, "ms", took, variation=name)
                    notes.note("all", "ms", task.steps.total, variation=name)
            if number >= warm_up and time.monotonic() > end:
                break
        for last in kept.values():
            last.close()
    return notes.result()


class Task:
    """The life of one task's producer.

    Args:
        place: where to write.
        variation: how.
        transactional_id: of the slot.
        kept: the tasks whose producers can go on, by transactional id.
    """

    _producer: Producer

    def __init__(
        self, place: Place, variation: Variation, transactional_id: str, kept: dict[str, Task]
    ) -> None:
        self._place = place
        self._variation = variation
        self._id = transactional_id
        self._kept = kept
        self._known = threading.Event()
        self._identity = (-1, -1)
        self.steps = Steps()

    def run(self) -> None:
        """Prepare a transaction, each step timed, and commit it, untimed."""
        variation = self._variation
        rows = [(b"%d" % number, number % variation.partitions) for number in range(ROWS)]
        last = self._kept.pop(self._id, None)
        self.steps = Steps()
        if last is None:
            self._open()
        else:
            self._producer, self._identity, self._known = (
                last._producer,
                last._identity,
                last._known,
            )
            self._producer.commit_transaction(_WAIT_S)
            self.steps.lap("commit again")
        self._producer.begin_transaction()
        self.steps.lap("begin")
        for key, partition in rows:
            self._producer.produce(self._place.topic, VALUE, key, partition)
        self.steps.lap("produce")
        if variation.offset_first:
            self._send_offset()
            self.steps.lap("early offset")
        if variation.offset_beside:
            sending = threading.Thread(target=self._send_offset)
            sending.start()
        self._producer.flush(_WAIT_S)
        if variation.offset_beside:
            sending.join()
        self.steps.lap("flush")
        if variation.offset_last:
            self._send_offset()
            self.steps.lap("offset")
        if variation.settings.get("statistics.interval.ms", 1):
            while not self._known.is_set():
                self._producer.poll(0.01)
            self.steps.lap("identity")
        self._settle()

    def close(self) -> None:
        """Release the producer, which refers to this task."""
        del self._producer

    def _open(self) -> None:
        settings = {
            "bootstrap.servers": self._place.bootstrap,
            **AS_THE_SINK,
            **self._variation.settings,
            "transactional.id": self._id,
            "stats_cb": self._learn,
        }
        self._producer = Producer(settings)
        self.steps.lap("new")
        if self._variation.metadata_during_init:
            ask = self._producer.list_topics
            threading.Thread(target=ask, args=(self._place.topic, _WAIT_S)).start()
        self._producer.init_transactions(_WAIT_S)
        self.steps.lap("init")
        if self._variation.metadata_first:
            self._producer.list_topics(self._place.topic, _WAIT_S)
            self.steps.lap("metadata")

    def _send_offset(self) -> None:
        log, member = [self._place.log], self._place.member
        self._producer.send_offsets_to_transaction(log, member, _WAIT_S)

    def _settle(self) -> None:
        if not self._variation.kept:
            self._producer.commit_transaction(_WAIT_S)
            self.close()
            return
        transaction = Transaction(self._id, *self._identity)
        self._place.control.end([transaction], commit=True, deadline=Deadline(_WAIT_S))
        self._kept[self._id] = self

    def _learn(self, statistics: str) -> None:
        if self._known.is_set():
            return
        eos = json.loads(statistics).get("eos", {})
        self._identity = (eos.get("producer_id", -1), eos.get("producer_epoch", -1))
        if min(self._identity) >= 0:
            self._known.set()


def table(found: Result) -> str:
    """Medians of each step, and median and 95th percentile of all of them, by variation."""
    heads = (*STEPS, "all", "p95")
    lines = [f"| ms | {' | '.join(heads)} |", "|---|" + "--:|" * len(heads)]
    for name in VARIATIONS:
        cells = []
        for step in (*STEPS, "all"):
            series = list(found.having(step, variation=name))
            cells.append(f"{series[0].spread.median:.1f}" if series else "")
        whole = found.one("all", variation=name).spread
        lines.append(f"| {name} | {' | '.join(cells)} | {whole.p95:.1f} |")
    return "\n".join([*lines, "", f"{whole.n} samples each."])


@contextmanager
def _place(kafka: KafkaCluster) -> Iterator[Place]:
    """Two topics, and a group with one living member."""
    topic, log, group = (f"{name}-{uuid.uuid4().hex[:6]}" for name in ("rows", "log", "group"))
    kafka.create_topic(topic, partitions=PARTITIONS)
    kafka.create_topic(log, partitions=1)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "max.poll.interval.ms": 3_600_000,
        }
    )
    consumer.subscribe([log])
    control = KafkaPythonControl(
        {"bootstrap_servers": kafka.bootstrap_servers.split(",")},
        Acl("Write", Resource.TRANSACTIONAL_ID, "opening", prefixed=True),
        Deadline(_WAIT_S),
    )
    try:
        end = time.monotonic() + _WAIT_S
        while not consumer.assignment():
            if time.monotonic() > end:
                raise TimeoutError(f"the consumer was given no partition in {_WAIT_S:.0f} s")
            consumer.poll(0.1)
        member = consumer.consumer_group_metadata()
        yield Place(kafka.bootstrap_servers, topic, TopicPartition(log, 0, 5), member, control)
    finally:
        consumer.close()
        control.close()


if __name__ == "__main__":
    sys.exit(main())
