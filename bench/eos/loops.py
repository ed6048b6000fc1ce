"""Throughput and latency of plain loops, by client, partitions and commit interval."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.cpu import Account, CpuClock
from bench.eos.feed import Reader, feeding, fill, thinned
from bench.eos.players import Player, players
from bench.eos.turns import Turn
from bench.result import Label, Notebook, Result
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.waiting import to_stderr

INPUT_PARTITIONS = 4
RATE = 1_000
"""Records a second, where it is measured how soon they are visible."""
LATENCY_PARTITIONS = 10
PARTITIONS = (1, 10, 50, 200)
INTERVALS_MS = (10, 100, 1_000)
"""Between commits."""
RECORDS = 600_000
"""That wait in the input, where it is measured how fast the loops are."""
_WARM_UP_S = 1.0
_SHORTEST_S = 1.2


def measure(kafka: KafkaCluster, rounds: int) -> Result:
    """Every client in turns at each place of the grid."""
    notes = Notebook(
        "eos-loops",
        kafka.version,
        {"rate": RATE, "latency_partitions": LATENCY_PARTITIONS, "rounds": rounds},
    )
    with tempfile.TemporaryDirectory() as directory, players(Path(directory)) as clients:
        filled = new_topic(kafka, INPUT_PARTITIONS)
        fill(kafka, filled, RECORDS)
        outputs = [Output(kafka, filled, each) for each in PARTITIONS]
        for output in outputs:
            for client in clients:
                client.play(output.turn(100, _WARM_UP_S))
        for _ in range(rounds):
            for interval_ms in INTERVALS_MS:
                seconds = max(_SHORTEST_S, 2.5 * interval_ms / 1000)
                for output in outputs:
                    for client, declared in _ways(clients):
                        turn = output.turn(interval_ms, seconds, declared=declared)
                        _fast(kafka, client, turn, notes)
                for client in clients:
                    _soon(kafka, client, interval_ms, seconds, notes)
    return notes.result()


class Output:
    """A topic that is written, and where its records come from."""

    def __init__(self, kafka: KafkaCluster, source: str, partitions: int) -> None:
        self._bootstrap = kafka.bootstrap_servers
        self._source = source
        self._partitions = partitions
        self.topic = new_topic(kafka, partitions)

    def turn(self, interval_ms: float, seconds: float, *, declared: bool = False) -> Turn:
        """Of a group that has read nothing yet."""
        return Turn(
            bootstrap=self._bootstrap,
            input=self._source,
            output=self.topic,
            group=f"loop-{uuid.uuid4().hex[:8]}",
            partitions=self._partitions,
            interval_ms=interval_ms,
            seconds=seconds,
            declared=declared,
        )


def _ways(clients: Sequence[Player]) -> Iterator[tuple[Player, bool]]:
    for client in clients:
        yield client, False
        if client.declares:
            yield client, True


def _fast(kafka: KafkaCluster, client: Player, turn: Turn, notes: Notebook) -> None:
    brokers = [Account(node.pid) for node in kafka.nodes]
    cpu = CpuClock({"client": [Account(client.pid)], "brokers": brokers})
    before = cpu.read()
    played = client.play(turn)
    used = cpu.since(before)
    labels: dict[str, Label] = {
        "client": client.name,
        "declared": turn.declared,
        "partitions": turn.partitions,
        "interval_ms": turn.interval_ms,
    }
    rate = played.records / played.seconds
    notes.note("throughput", "records/s", rate, **labels)
    for who, seconds in used.items():
        notes.note(f"CPU of {who}", "µs/record", seconds * 1e6 / played.records, **labels)
    for kind, count in played.requests.items():
        notes.note(kind, "/transaction", count / played.transactions, **labels)
    to_stderr(f"{labels}: {rate:,.0f} records/s, {played.transactions} transactions")


def _soon(
    kafka: KafkaCluster, client: Player, interval_ms: float, seconds: float, notes: Notebook
) -> None:
    source = new_topic(kafka, INPUT_PARTITIONS)
    output = Output(kafka, source, LATENCY_PARTITIONS)
    with closing(Reader(kafka, output.topic, LATENCY_PARTITIONS)) as reader:
        with feeding(kafka, source, RATE):
            begun = time.monotonic()
            client.play(output.turn(interval_ms, _WARM_UP_S + seconds))
        ages = reader.ages_ms(since=begun + _WARM_UP_S)
    notes.note("visible", "ms", *thinned(ages), client=client.name, interval_ms=interval_ms)
    to_stderr(f"{client.name}, {interval_ms:g} ms: {len(ages)} records seen")


def new_topic(kafka: KafkaCluster, partitions: int) -> str:
    name = f"eos-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, partitions=partitions)
    return name
