"""The transactions behind which read_committed readers of a topic wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.admin_requests import describe_topics
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.shared_clients import SharedClients


def find_blocking_transactions(
    clients: SharedClients, topic: str, stable: Mapping[int, int], deadline: Deadline
) -> dict[int, str]:
    """See `eos_sink.kafka.admin_interface.Admin.blocking_transactions`."""
    wire = clients.control().wire
    described = describe_topics(wire, [topic], deadline, settings=False)[topic]
    if isinstance(described, KafkaError):
        return {}
    by_leader: dict[int, list[int]] = {}
    for number in stable:
        leader = described.partitions[number].leader if number in described.partitions else -1
        if leader >= 0:
            by_leader.setdefault(leader, []).append(number)
    try:

        async def ask_leaders() -> dict[int, Any]:
            asked = DescribeProducersRequest.TopicRequest
            requests = {
                leader: wire.send(
                    DescribeProducersRequest(topics=[asked(name=topic, partition_indexes=numbers)]),
                    leader,
                    deadline,
                )
                for leader, numbers in by_leader.items()
            }
            return await wire.gather(requests, deadline)

        producers = {
            partition.partition_index: producer.producer_id
            for answer in wire.run(ask_leaders).values()
            for each in (answer.topics if answer else ())
            for partition in each.partitions
            for producer in partition.active_producers
            if producer.current_txn_start_offset == stable[partition.partition_index]
        }

        async def ask_coordinators() -> dict[int, Any]:
            request = ListTransactionsRequest(
                state_filters=[],
                producer_id_filters=sorted(set(producers.values())),
                max_version=0,
            )
            brokers = await wire.list_brokers(deadline) or []
            requests = {broker: wire.send(request, broker, deadline) for broker in brokers}
            return await wire.gather(requests, deadline)

        answers = wire.run(ask_coordinators).values() if producers else ()
    except EosSinkError:
        return {}
    ids = {
        row.producer_id: row.transactional_id
        for answer in answers
        for row in (answer.transaction_states if answer else ())
    }
    return {n: ids.get(each, f"producer id {each}") for n, each in producers.items()}
