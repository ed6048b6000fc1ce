"""Requests about topics, offsets, brokers and settings, over the control connections.

The sink and the operator commands share them. An error about one thing of many is that thing's
answer. None of them creates a topic, even with the brokers' `auto.create.topics.enable`.
librdkafka's admin client is not used: it sends them to the controller that it knows, which in KRaft
is any broker (KIP-590), and waits up to five minutes for that one after it has died
(`rd_kafka_broker_controller_async`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError
from kafka.protocol.admin.acl import ACLOperation
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.topics import CreateTopicsRequest

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    convert_error,
    is_denied,
    is_transient,
    remedy_for,
    silence,
)
from eos_sink.kafka.fetch import EARLIEST, LATEST, find_offsets
from eos_sink.kafka.interfaces import PartitionOffsets, PartitionState, TopicDescription, Unseen
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Resource, permission_error
from eos_sink.protocol.values import Place

K = TypeVar("K")
V = TypeVar("V")

# One broker that does not answer must not take the time of all questions of a command.
ANSWER_S = 5.0
TOPIC, BROKER = 2, 4  # ConfigResource.Type


def unseen(error: KafkaError, *needed: Acl) -> Unseen:
    """The first permission is the one that was refused; all of them would show everything."""
    if is_denied(error.code()) and needed:
        return Unseen(f"this principal lacks {needed[0]}", needed)
    why, remedy = error.str().rstrip("."), Unseen.remedy
    if is_transient(error):
        remedy = "Check that the brokers answer, then try again."
    return Unseen(why, remedy=remedy_for(why, remedy))


def ask_until_final(
    wire: Wire,
    things: Iterable[K],
    ask: Callable[[list[K]], Coroutine[Any, Any, Mapping[K, V | KafkaError]]],
    deadline: Deadline,
) -> dict[K, V | KafkaError]:
    """Ask about several things, and again about those whose answer is missing or transient."""
    found: dict[K, V | KafkaError] = dict.fromkeys(things, silence())

    def is_open(thing: K) -> bool:
        answer = found[thing]
        return isinstance(answer, KafkaError) and is_transient(answer)

    def attempt() -> bool:
        asked = list(filter(is_open, found))
        found.update(dict.fromkeys(asked, wire.silence) | dict(wire.run(ask, asked)))
        return not any(map(is_open, found))

    if found:
        retry_until(deadline, attempt, bool)
    return found


def list_brokers(wire: Wire, deadline: Deadline) -> dict[int, tuple[str, int]]:
    """Host and port of each live broker.

    Raises:
        OutcomeUnknownError: the cluster does not answer.
    """
    brokers = _ask_any(wire, wire.list_brokers, "The brokers cannot be listed", deadline)
    return {node: wire.address(node) for node in brokers}


def find_topic_ids(wire: Wire, names: Collection[str] | None, deadline: Deadline) -> dict[str, str]:
    """See `eos_sink.kafka.interfaces.Kafka.topic_ids`."""
    what = "The topics cannot be listed" if names is None else "The ids of topics cannot be read"
    ask = partial(wire.fetch_metadata, names)
    rows = _ask_any(wire, ask, what, deadline) if names is None or names else ()
    return {row.name: str(row.topic_id) for row in rows if not row.error_code}


def _ask_any(wire: Wire, ask: Callable[..., Any], what: str, deadline: Deadline) -> Any:
    found = retry_until(deadline, lambda: wire.run(ask, deadline), lambda it: it is not None)
    if found is None:
        raise convert_error(wire.silence, what)
    return found


def configs_request(kind: int, name: str, settings: Sequence[str] | None = None) -> Any:
    """For these settings of a TOPIC or BROKER; None: all."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=settings
    )
    return DescribeConfigsRequest(resources=[resource], max_version=4)


def describe_configs(
    wire: Wire,
    kind: int,
    names: Iterable[str],
    deadline: Deadline,
    settings: Sequence[str] | None = None,
) -> dict[str, dict[str, Any] | KafkaError]:
    """See `configs_request`; each setting has `value` and `read_only`."""

    def request(name: str) -> Any:
        node = int(name) if kind == BROKER else None
        return wire.send(configs_request(kind, name, settings), node, deadline)

    def read(result: Any) -> dict[str, Any] | KafkaError:
        if result.error_code:
            return KafkaError(result.error_code, result.error_message)
        return {entry.name: entry for entry in result.configs}

    async def ask(names: list[str]) -> dict[str, dict[str, Any] | KafkaError]:
        answers = await wire.gather({name: request(name) for name in names}, deadline)
        return {name: read(answer.results[0]) for name, answer in answers.items() if answer}

    return ask_until_final(wire, names, ask, deadline)


def describe_topics(
    wire: Wire, names: Iterable[str], deadline: Deadline, *, settings: bool = True
) -> dict[str, TopicDescription | KafkaError]:
    """Each topic with its settings, if they are wanted."""
    names = list(dict.fromkeys(names))
    if not names:
        return {}
    ask = partial(wire.fetch_metadata, operations=True)
    rows = retry_until(deadline, lambda: wire.run(ask, names, deadline), bool) or ()
    described = {row.name: row for row in rows}
    there = [name for name, row in described.items() if not row.error_code]
    configs = describe_configs(wire, TOPIC, there if settings else [], deadline)
    found: dict[str, TopicDescription | KafkaError] = {}
    for name in names:
        topic = described.get(name)
        if topic is None or topic.error_code:
            found[name] = KafkaError(topic.error_code) if topic else wire.silence
            continue
        entries = configs.get(name, {})
        found[name] = TopicDescription(
            name=name,
            partitions={
                part.partition_index: PartitionState(
                    part.leader_id, len(part.replica_nodes), len(part.isr_nodes)
                )
                for part in sorted(topic.partitions, key=lambda each: int(each.partition_index))
            },
            settings=unseen(entries, Acl("DescribeConfigs", Resource.TOPIC, name))
            if isinstance(entries, KafkaError)
            else {setting: str(entry.value) for setting, entry in entries.items()},
            allowed=_name_operations(topic.authorized_operations),
            id=str(topic.topic_id),
        )
    return found


def show_topic(
    name: str, answer: TopicDescription | KafkaError, *operations: str
) -> TopicDescription | Unseen | None:
    """An answer of `describe_topics` as `Kafka.describe_topics` gives it; the first of the
    operations is the one that shows a topic."""
    if not isinstance(answer, KafkaError):
        return answer
    if answer.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return None
    return unseen(answer, *(Acl(each, Resource.TOPIC, name) for each in operations))


def _name_operations(numbers: Iterable[int] | None) -> frozenset[str] | None:
    """Return names of operations, or None if the broker did not say (KIP-430)."""
    known = {int(each): each.name for each in ACLOperation}
    return None if numbers is None else frozenset(known.get(n, str(n)) for n in numbers)


def describe_usable_topic(
    wire: Wire,
    name: str,
    needs: Iterable[Acl],
    deadline: Deadline,
    *,
    settings: bool = False,
) -> TopicDescription | KafkaError:
    """Raises ClusterError if this principal lacks one of the permissions, before the step that
    needs it, which may be a recovery (KIP-430)."""
    found = describe_topics(wire, [name], deadline, settings=settings)[name]
    missing = [] if isinstance(found, KafkaError) else found.lacking(needs)
    if missing:
        raise permission_error(f"Topic {name} cannot be used", missing)
    return found


def create_topic(  # noqa: PLR0913, PLR0917 - the fields of the request
    wire: Wire,
    name: str,
    partitions: int,
    replication: int,
    settings: Mapping[str, str],
    deadline: Deadline,
    *,
    validate_only: bool = False,
) -> KafkaError | None:
    """Create a topic, or check if the brokers would. TOPIC_ALREADY_EXISTS may be the answer to a
    repetition of this very request."""
    topic = CreateTopicsRequest.CreatableTopic
    configs = [topic.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]

    def attempt() -> KafkaError | None:
        wanted = topic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[],
            configs=configs,
        )
        request = CreateTopicsRequest(
            topics=[wanted],
            timeout_ms=int(deadline.left * 1000),
            validate_only=validate_only,
        )
        answer = wire.run(wire.ask_controller, request, deadline)
        if answer is None:
            return wire.silence
        result = answer.topics[0]
        return KafkaError(result.error_code, result.error_message) if result.error_code else None

    return retry_until(deadline, attempt, lambda error: error is None or not is_transient(error))


def list_offsets(
    wire: Wire, places: Iterable[Place], deadline: Deadline
) -> dict[Place, PartitionOffsets | KafkaError]:
    """First, last stable and end offset of each partition."""
    soon = deadline.within(ANSWER_S)

    async def ask(places: list[Place]) -> dict[Place, PartitionOffsets | KafkaError]:
        earliest = await find_offsets(wire, places, EARLIEST, soon)
        stable = await find_offsets(wire, places, LATEST, soon, committed=True)
        latest = await find_offsets(wire, places, LATEST, soon)
        found: dict[Place, PartitionOffsets | KafkaError] = {}
        for place in places:
            answers = (earliest[place], stable[place], latest[place])
            errors = [each for each in answers if isinstance(each, KafkaError)]
            offsets = (each[1] for each in answers if not isinstance(each, KafkaError))
            found[place] = errors[0] if errors else PartitionOffsets(place[1], *offsets)
        return found

    return ask_until_final(wire, places, ask, soon)
