"""Poll, process, produce with librdkafka. Reads one turn per line and answers each with a line.

librdkafka has no call that declares partitions. With `declared`, another client adds them all
to the transaction, under the producer's id and epoch, before the first record; librdkafka still
asks for each as it comes, and the coordinator has it already.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest

from bench.eos.turns import Played, Turn
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.wire import Wire

_WAIT_S = 30.0
_FEWEST = 3
_AT_ONCE = 500
# The last version that clients may use.
_ADD_PARTITIONS_VERSION = 3
_KINDS = ("AddPartitionsToTxn", "Produce")


def main() -> int:
    for line in sys.stdin:
        print(Loop(Turn.parse(line)).play().line(), flush=True)
    return 0


class Loop:
    """One turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._eos: dict[str, int] = {}
        self._requests: dict[str, int] = {}
        self._told = 0
        self._written = 0
        self._ended = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": turn.bootstrap,
                "group.id": turn.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": turn.bootstrap,
                "transactional.id": turn.group,
                "enable.sparse.connections": False,
                "linger.ms": 5,
                "batch.size": 262_144,
                "queue.buffering.max.messages": 500_000,
                "statistics.interval.ms": 200,
                "stats_cb": self._learn,
            }
        )
        self._others: _Declarer | None = None

    def play(self) -> Played:
        turn = self._turn
        self._producer.init_transactions(_WAIT_S)
        if turn.declared:
            self._next_statistics()
            self._others = _Declarer(turn, self._eos)
        self._consumer.subscribe([turn.input])
        polled: list[Message] = []
        while not polled:
            polled = self._consumer.consume(_AT_ONCE, 0.1)
        begun = time.perf_counter()
        stop = begun + turn.seconds
        while time.perf_counter() < stop or self._ended < _FEWEST:
            if polled:
                self._transaction(polled, time.perf_counter() + turn.interval_ms / 1000)
            polled = self._consumer.consume(_AT_ONCE, 0.1)
        seconds = time.perf_counter() - begun
        self._next_statistics()
        self._close()
        return Played(self._written, seconds, self._ended, self._requests)

    def _transaction(self, polled: list[Message], until: float) -> None:
        self._producer.begin_transaction()
        if self._others is not None:
            self._others.declare()
        offsets: dict[int, int] = {}
        while True:
            self._write(polled, offsets)
            left = until - time.perf_counter()
            if left <= 0:
                break
            polled = self._consumer.consume(_AT_ONCE, min(left, 0.1))
        places = [TopicPartition(self._turn.input, *place) for place in offsets.items()]
        member = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(places, member, _WAIT_S)
        self._producer.commit_transaction(_WAIT_S)
        self._ended += 1

    def _write(self, polled: Iterable[Message], offsets: dict[int, int]) -> None:
        topic, partitions = self._turn.output, self._turn.partitions
        for read in polled:
            value, partition, offset = read.value(), read.partition(), read.offset()
            assert value is not None
            assert partition is not None
            assert offset is not None
            while True:
                try:
                    self._producer.produce(
                        topic, value[:-1] + b"p", read.key(), self._written % partitions
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._written += 1
            offsets[partition] = offset + 1
        self._producer.poll(0)

    def _learn(self, statistics: str) -> None:
        found: dict[str, Any] = json.loads(statistics)
        self._eos = found["eos"]
        sent = [broker["req"] for broker in found["brokers"].values()]
        self._requests = {kind: sum(each.get(kind, 0) for each in sent) for kind in _KINDS}
        self._told += 1

    def _next_statistics(self) -> None:
        """All that has happened so far is in them."""
        told = self._told
        # The first may have been made before.
        while self._told < told + 2:
            self._producer.poll(0.1)

    def _close(self) -> None:
        self._consumer.close()
        if self._others is not None:
            self._others.close()
        # It knows this loop, which knows it.
        del self._producer


class _Declarer:
    """Adds all partitions of the output to a producer's transaction in one request."""

    def __init__(self, turn: Turn, eos: dict[str, int]) -> None:
        self._turn = turn
        self._eos = eos
        self._wire = Wire({"bootstrap_servers": turn.bootstrap.split(",")}, Deadline(_WAIT_S))

    def declare(self) -> None:
        while not self._wire.run(self._all_added):
            # The markers of the transaction before are not written yet.
            time.sleep(0.001)

    async def _all_added(self) -> bool:
        deadline = Deadline(_WAIT_S)
        node = self._wire.get_coordinator(self._turn.group)
        if node is None:
            asked = self._wire.find_coordinators_request([self._turn.group])
            found = await self._wire.send(asked, None, deadline)
            self._wire.remember_coordinator(found.coordinators[0])
            node = self._wire.get_coordinator(self._turn.group)
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=self._turn.output, partitions=list(range(self._turn.partitions))
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._turn.group,
            v3_and_below_producer_id=self._eos["producer_id"],
            v3_and_below_producer_epoch=self._eos["producer_epoch"],
            v3_and_below_topics=[topic],
            max_version=_ADD_PARTITIONS_VERSION,
        )
        answer = await self._wire.send(request, node, deadline)
        results = answer.results_by_topic_v3_and_below
        return not any(code for _, partitions in results for _, code in partitions)

    def close(self) -> None:
        self._wire.close()


if __name__ == "__main__":
    sys.exit(main())
