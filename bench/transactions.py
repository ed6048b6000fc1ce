"""Opens hundreds of transactions, as tasks leave them, without a producer for each.

A producer's own requests (InitProducerId, AddPartitionsToTxn, Produce), sent side by side over one
client: what a broker and its coordinators have to do later does not tell the difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, InitProducerIdRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.protocol.values import Position, Transaction

_TIMEOUT_MS = 600_000
_DEADLINE_S = 120.0
_LANES = 16
# CONCURRENT_TRANSACTIONS and NOT_LEADER among them: asked again until they are not.
_PAUSE_S = 0.02
_RETRIABLE = {3, 5, 6, 7, 14, 15, 16, 51}


@dataclass(frozen=True)
class Opened:
    """A transaction with one record in each of its partitions.

    `witness` is the first of them.
    """

    transaction: Transaction
    witness: Position


def open_transactions(
    control: KafkaPythonControl, names: Sequence[str], places: Sequence[tuple[str, int]]
) -> list[Opened]:
    """A transaction under each name with a record in each of `places` (topic, partition).

    Raises:
        RuntimeError: a broker refuses something, or two minutes were not enough.
    """
    maker = _Maker(control, Deadline(_DEADLINE_S))
    identities = maker.inited(names)
    maker.joined(identities, places)
    return maker.written(identities, places)


class _Maker:
    def __init__(self, control: KafkaPythonControl, deadline: Deadline) -> None:
        self._wire = control.wire
        self._deadline = deadline
        self._control = control

    def _find(self, names: Sequence[str]) -> None:
        """After a describe, the coordinator of the id is known."""
        self._control.describe(names, self._deadline)

    def inited(self, names: Sequence[str]) -> list[Transaction]:
        self._find(names)

        def request(name: str) -> tuple[int, Any]:
            asked = InitProducerIdRequest(
                transactional_id=name,
                transaction_timeout_ms=_TIMEOUT_MS,
                producer_id=-1,
                producer_epoch=-1,
                max_version=4,
            )
            return self._coordinator(name), asked

        answers = self._each(list(names), request, lambda answer: answer.error_code)
        return [Transaction(n, answers[n].producer_id, answers[n].producer_epoch) for n in names]

    def joined(self, opened: Sequence[Transaction], places: Sequence[tuple[str, int]]) -> None:
        of_topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = sorted({topic for topic, _ in places})
        by_topic = [
            of_topic(name=topic, partitions=[p for t, p in places if t == topic])
            for topic in topics
        ]

        def request(each: Transaction) -> tuple[int, Any]:
            asked = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=each.transactional_id,
                v3_and_below_producer_id=each.producer_id,
                v3_and_below_producer_epoch=each.epoch,
                v3_and_below_topics=by_topic,
                max_version=3,
            )
            return self._coordinator(each.transactional_id), asked

        def code(answer: Any) -> int:
            codes = [
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            ]
            return next((one for one in codes if one), 0)

        self._each(list(opened), request, code)

    def written(
        self, opened: Sequence[Transaction], places: Sequence[tuple[str, int]]
    ) -> list[Opened]:
        leaders = self._leaders(places)
        offsets: dict[tuple[Transaction, tuple[str, int]], int] = {}
        keys = [(each, place) for each in opened for place in places]

        def request(key: tuple[Transaction, tuple[str, int]]) -> tuple[int, Any]:
            each, place = key
            return leaders[place], _produce(each, *place)

        def answered(answer: Any) -> Any:
            return answer.responses[0].partition_responses[0]

        answers = self._each(keys, request, lambda answer: answered(answer).error_code)
        for key, answer in answers.items():
            offsets[key] = answered(answer).base_offset
        first = places[0]
        return [Opened(each, Position(*first, offsets[each, first])) for each in opened]

    def _leaders(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        cluster = self._wire._manager.cluster
        for topic in {topic for topic, _ in places}:
            cluster.add_topic(topic)
        self._wire.run(self._wire.list_brokers)
        return {(t, p): cluster._partitions[t][p].leader_id for t, p in places}

    def _coordinator(self, name: str) -> int:
        node = self._wire.get_coordinator(name)
        if node is None:
            self._find([name])
            node = self._wire.get_coordinator(name)
        assert node is not None
        return node

    def _each(
        self,
        keys: list[Any],
        request: Callable[[Any], tuple[int, Any]],
        code: Callable[[Any], int],
    ) -> dict[Any, Any]:
        done: dict[Any, Any] = {}
        while len(done) < len(keys):
            if self._deadline.passed:
                raise RuntimeError(f"{len(keys) - len(done)} of {len(keys)} are not answered")
            wanted = {key: request(key) for key in keys if key not in done}

            async def ask(wanted: dict[Any, Any] = wanted) -> dict[Any, Any]:
                sent = {
                    key: self._wire.send(
                        asked, self._wire.get_lane(node, place % _LANES), self._deadline
                    )
                    for place, (key, (node, asked)) in enumerate(wanted.items())
                }
                return await self._wire.gather(sent, self._deadline)

            for key, answer in self._wire.run(ask).items():
                found = 7 if answer is None else code(answer)
                if found == 0:
                    done[key] = answer
                elif found not in _RETRIABLE:
                    raise RuntimeError(f"{key} is refused with Kafka's error code {found}")
            if len(done) < len(keys):
                time.sleep(_PAUSE_S)
        return done


def _produce(each: Transaction, topic: str, partition: int) -> Any:
    records = MemoryRecordsBuilder(
        magic=2,
        compression_type=0,
        batch_size=1_000,
        transactional=True,
        producer_id=each.producer_id,
        producer_epoch=each.epoch,
        base_sequence=0,
    )
    records.append(timestamp=int(time.time() * 1000), key=None, value=b"x" * 100)
    records.close()
    of_topic = ProduceRequest.TopicProduceData
    data = of_topic.PartitionProduceData(index=partition, records=records.buffer())
    return ProduceRequest(
        transactional_id=each.transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[of_topic(name=topic, partition_data=[data])],
        min_version=3,
        max_version=9,
    )
