"""Sends any Kafka request over kafka-python's connections.

KafkaAdminClient has no public method for that. `tests/kafka/test_wire.py` fails if a new version
changes what is used here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from itertools import cycle
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.net import connection
from kafka.protocol import parser
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    CoordinatorType,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import silence
from eos_sink.kafka.internals import AdminClient, add_node, forget_coordinator
from eos_sink.protocol.values import Place

K = TypeVar("K")
T = TypeVar("T")

# Failures while a broker is down or a coordinator moves. Every control request is idempotent, so it
# may be sent again.
_RETRIABLE = (
    kafka_errors.Cancelled,
    kafka_errors.KafkaConnectionError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.RequestTimedOutError,
    # Some clusters refuse logins above a number in a second. `check_login` tells wrong ones.
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnknownBrokerIdError,
)
# A paused broker never answers, but its coordinators move to others.
_ATTEMPT_S = 10.0
_FIRST_ANSWER_S = 5.0
# Requests in flight per connection. kafka-python refuses more than that (5 by default), which would
# cost another round with another look-up of the coordinator.
_PIPELINE = 10_000
_UNKNOWN_TOPIC_OR_PARTITION = kafka_errors.UnknownTopicOrPartitionError.errno


def _has_no_secret(record: logging.LogRecord) -> bool:
    """A log filter: kafka-python logs each request and response at level DEBUG, as text and as
    bytes, with the passwords, tokens and rows in it."""
    secret = {"FetchResponse", "ProduceRequest", "SaslAuthenticateRequest", "SaslBytesRequest"}
    arguments = record.args if isinstance(record.args, tuple) else ()
    return not any(
        isinstance(each, (bytes, bytearray)) or type(each).__name__ in secret for each in arguments
    )


def _connect(settings: dict[str, object], deadline: Deadline) -> AdminClient:
    """Try each bootstrap server in turn. kafka-python tries a random one, and waits until the
    deadline if it accepts the connection without an answer."""
    servers = settings["bootstrap_servers"]
    assert isinstance(servers, list)
    for server in cycle(servers):
        soon = deadline.within(_FIRST_ANSWER_S if len(servers) > 1 else deadline.left)
        try:
            return AdminClient(
                **{**settings, "bootstrap_servers": [server]},
                max_in_flight_requests_per_connection=_PIPELINE,
                bootstrap_timeout_ms=int(soon.left * 1000),
            )
        except kafka_errors.KafkaError as error:
            if deadline.passed:
                raise ClusterError(
                    f"No broker of {', '.join(servers)} answers: {error}",
                    remedy="Check kafka.bootstrap.servers, the network and the security settings.",
                ) from error
    raise AssertionError("there is no bootstrap server")


class Leader(NamedTuple):
    """The broker that leads a partition, and since which leader epoch (KIP-320)."""

    node: int
    epoch: int


class Wire:
    """An admin client and its event loop, which runs in a thread."""

    def __init__(self, settings: dict[str, object], deadline: Deadline) -> None:
        for name in (connection.__name__, parser.__name__):
            logging.getLogger(name).addFilter(_has_no_secret)
        self._client = _connect(settings, deadline)
        self._manager = self._client.manager
        self._leaders: dict[Place, Leader] = {}

    @property
    def silence(self) -> KafkaError:
        """The error of what has no answer, with the reason if a broker has refused to talk."""
        return silence(*self._manager.refused.values())

    def run(self, step: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
        """Run a coroutine on the client's event loop and wait for it.

        Raises:
            ClusterError: a request failed, and a retry would not help.
        """
        try:
            result: T = self._manager.run(step, *given)
        except kafka_errors.KafkaError as error:
            raise ClusterError(
                f"A request to Kafka failed: {type(error).__name__}: {error}.",
                remedy="If it names a permission or a broker version, correct that; otherwise look "
                "at the broker's log. Then start the query again.",
            ) from error
        return result

    def get_lane(self, node: int, number: int) -> int | str:
        """A node id for one more connection to the same broker; lane 0 is the broker itself.

        kafka-python opens one connection for each node id, and looks up unknown ids among the
        coordinators.
        """
        broker = self._manager.cluster.broker_metadata(node)
        if number == 0 or broker is None:
            return node
        name = f"{node}-lane-{number}"
        # Set each time, since a broker may have another address after a restart.
        address = MetadataResponse.MetadataResponseBroker(name, broker.host, broker.port, None)
        add_node(self._manager.cluster, address)
        return name

    def send(self, request: Any, node: int | str | None, deadline: Deadline) -> Any:
        """A future of the answer. Sending does not wait for earlier answers."""
        node = self._manager.least_loaded_node() if node is None else node
        seconds = deadline.within(_ATTEMPT_S).left
        try:
            return self._manager.send(
                request, node_id=node, request_timeout_ms=max(1, int(seconds * 1000))
            )
        except kafka_errors.UnknownBrokerIdError as error:
            # The broker was down when the metadata was fetched, and may be a leader again.
            self._manager.cluster.request_update()
            return Future().failure(error)

    async def gather(self, futures: Mapping[K, Any], deadline: Deadline) -> dict[K, Any]:
        """The answer to each request; None: send it again. kafka-python's own timeout does not
        cover the wait for a connection."""
        answers: dict[K, Any] = {}
        soon = deadline.within(_ATTEMPT_S)
        for key, future in futures.items():
            try:
                answers[key] = await self._manager.wait_for(future, soon.left * 1000)
            except _RETRIABLE:
                answers[key] = None
        return answers

    async def ask(self, request: Any, node: int | str | None, deadline: Deadline) -> Any:
        """The answer to one request; None: send it again."""
        return (await self.gather({"": self.send(request, node, deadline)}, deadline))[""]

    async def ask_each(self, requests: Mapping[int, Any], deadline: Deadline) -> dict[int, Any]:
        """The answer of each node to its request, which is for that node alone; None: send it
        again."""
        sent = {node: self.send(request, node, deadline) for node, request in requests.items()}
        return await self.gather(sent, deadline)

    async def list_brokers(self, deadline: Deadline) -> list[int] | None:
        """Ids of all live brokers, from fresh metadata; None: ask again."""
        asked = {"": self._manager.call_soon(self._refresh)}
        if not (await self.gather(asked, deadline))[""]:
            return None
        return [broker.node_id for broker in self._manager.cluster.brokers()] or None

    def address(self, node: int) -> tuple[str, int]:
        """Host and port of a broker that is known."""
        broker = self._manager.cluster.broker_metadata(node)
        return broker.host, broker.port

    async def ask_controller(self, request: Any, deadline: Deadline) -> Any:
        """The answer of the controller, or of a broker that forwards to it (KIP-590); None: send it
        again."""
        await self.list_brokers(deadline)
        controller = self._manager.cluster.controller
        if controller is None:
            return None
        return await self.ask(request, controller.node_id, deadline)

    async def _refresh(self) -> bool:
        await self._manager.cluster.refresh_metadata()
        return True

    def get_coordinator(self, transactional_id: str) -> int | None:
        node: int | None = self._manager.cluster.get_coordinator(
            transactional_id, CoordinatorType.TRANSACTION
        )
        return node

    def remember_coordinator(self, row: Any) -> None:
        self._manager.cluster.add_coordinator(
            row, CoordinatorType.TRANSACTION, row.key, synthesize_node_id=False
        )

    def forget_coordinator(self, transactional_id: str) -> None:
        forget_coordinator(self._manager.cluster, CoordinatorType.TRANSACTION, transactional_id)

    @staticmethod
    def versions_request() -> Any:
        """For the versions of each request that a broker knows, and the cluster's features."""
        return ApiVersionsRequest(client_software_name="eos-sink", client_software_version="1")

    @staticmethod
    def find_coordinators_request(
        names: list[str], kind: CoordinatorType = CoordinatorType.TRANSACTION
    ) -> Any:
        """One request for all transactional ids or groups (KIP-699, Kafka 3.0 and later)."""
        return FindCoordinatorRequest(key_type=kind.value, coordinator_keys=names, min_version=4)

    async def fetch_metadata(
        self, topics: Iterable[str] | None, deadline: Deadline, *, operations: bool = False
    ) -> Any:
        """The topics in a response to Metadata, whose brokers are known from then on; None: ask
        again. Creates no topic.

        Args:
            topics: None: all.
            deadline: for the answer.
            operations: whether the principal's permissions for each topic are asked for.
        """
        request = self._metadata_request(topics, operations=operations)
        response = await self.ask(request, None, deadline)
        if response is None or not response.brokers:
            return None
        self._manager.cluster.update_metadata(response)
        return response.topics

    async def fetch_leaders(
        self, topics: Iterable[str], deadline: Deadline
    ) -> dict[Place, int] | None:
        """The leader of each partition now, below 0 if it has none; None: ask again."""
        rows = await self.fetch_metadata(topics, deadline)
        if rows is None:
            return None
        return {(r.name, p.partition_index): p.leader_id for r in rows for p in r.partitions}

    async def find_leaders(
        self, places: Collection[Place], deadline: Deadline
    ) -> dict[Place, Leader | int]:
        """The leader of each partition, or the error code of its topic or partition. Leaders are
        remembered until `forget_leader`.

        Args:
            places: topics and partitions.

        Returns:
            Without those for which no broker answered.
        """
        unknown = [place for place in places if place not in self._leaders]
        topics = {topic for topic, _ in unknown}
        rows = await self.fetch_metadata(topics, deadline) if topics else None
        found: dict[Place, Leader | int] = {}
        for row in rows or ():
            missing = row.error_code or _UNKNOWN_TOPIC_OR_PARTITION
            found |= {place: missing for place in unknown if place[0] == row.name}
            for part in row.partitions:
                place = row.name, part.partition_index
                if part.leader_id >= 0:
                    self._leaders[place] = Leader(part.leader_id, part.leader_epoch)
                else:
                    found[place] = part.error_code
        found |= {place: self._leaders[place] for place in places if place in self._leaders}
        return {place: found[place] for place in places if place in found}

    async def find_newest_leader(self, place: Place, deadline: Deadline) -> None:
        """Ask all brokers for the leader, and remember the one of the latest epoch. Waits for the
        slowest broker, at most until the deadline."""
        requests = {
            broker.node_id: self._metadata_request(place[:1])
            for broker in self._manager.cluster.brokers()
        }
        leaders = [
            Leader(part.leader_id, part.leader_epoch)
            for response in (await self.ask_each(requests, deadline)).values()
            for topic in (response.topics if response else ())
            for part in topic.partitions
            if part.partition_index == place[1] and part.leader_id >= 0
        ]
        self.forget_leader(place)
        if leaders:
            self._leaders[place] = max(leaders, key=lambda leader: leader.epoch)

    @staticmethod
    def _metadata_request(topics: Iterable[str] | None, *, operations: bool = False) -> Any:
        topic = MetadataRequest.MetadataRequestTopic
        return MetadataRequest(
            topics=None if topics is None else [topic(name=each) for each in topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=operations,
        )

    def forget_leader(self, place: Place) -> None:
        """After an error: the next `find_leaders` asks for it."""
        self._leaders.pop(place, None)

    def close(self) -> None:
        self._client.close()
