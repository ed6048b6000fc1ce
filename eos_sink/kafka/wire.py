"""Kafka requests over kafka-python's connections: the one place that uses its private parts.

KafkaAdminClient has no public way to send a request of one's own. `tests/kafka/test_wire.py` fails
when a new version moves what is used here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from itertools import cycle
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.net import connection
from kafka.protocol import parser
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataResponse

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline

K = TypeVar("K")
T = TypeVar("T")

# Connection failures while a broker is down or a coordinator moves: the request may be sent again,
# since each control request is idempotent.
_RETRIABLE = (
    kafka_errors.Cancelled,
    kafka_errors.KafkaConnectionError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.RequestTimedOutError,
    kafka_errors.UnknownBrokerIdError,
)
# A paused broker never answers; its coordinators move elsewhere meanwhile.
_ATTEMPT_S = 10.0
_FIRST_ANSWER_S = 5.0
# Requests in flight per connection: kafka-python refuses the one after them (5 by default), so that
# it would be sent again, and its coordinator looked up again, in another round.
_PIPELINE = 10_000


class _WithoutLogins(logging.Filter):
    """kafka-python logs each request for debugging, as it is and in bytes, with every password
    and token that it holds."""

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args if isinstance(record.args, tuple) else ()
        return not any(
            isinstance(each, (bytes, bytearray)) or type(each).__name__ in _LOGINS
            for each in arguments
        )


_LOGINS = {"SaslAuthenticateRequest", "SaslBytesRequest"}
_WITHOUT_LOGINS = _WithoutLogins()
_LOGGERS_OF_REQUESTS = (connection.__name__, parser.__name__)


class _Admin(KafkaAdminClient):  # type: ignore[misc]
    """Ends its thread if it cannot begin: it starts that first, and is not yet one to be closed."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except BaseException:
            if hasattr(self, "_net"):
                self._closed = False
                self.close()
            raise


def _connected(settings: dict[str, object], deadline: Deadline) -> KafkaAdminClient:
    """Begin with each bootstrap server in turn: kafka-python chooses one by chance, and gives it
    all of the time if it takes the connection and answers nothing."""
    servers = settings["bootstrap_servers"]
    assert isinstance(servers, list)
    for server in cycle(servers):
        soon = deadline.within(_FIRST_ANSWER_S if len(servers) > 1 else deadline.left)
        try:
            return _Admin(
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


class Wire:
    """One admin client and its event loop, which runs in a thread of its own."""

    def __init__(self, settings: dict[str, object], deadline: Deadline) -> None:
        for name in _LOGGERS_OF_REQUESTS:
            logging.getLogger(name).addFilter(_WITHOUT_LOGINS)
        self._client = _connected(settings, deadline)
        self._manager = self._client._manager

    def run(self, step: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
        """Run a coroutine on the client's event loop and wait for it.

        Raises:
            ClusterError: a request failed for a reason that a retry does not mend.
        """
        try:
            result: T = self._manager.run(step, *given)
        except kafka_errors.KafkaError as error:
            raise ClusterError(
                f"A request to Kafka failed: {type(error).__name__}: {error}.",
                remedy="If a permission or a broker version is named, mend that; otherwise look at "
                "the broker's log. Then start the query again.",
            ) from error
        return result

    def lane(self, node: int, number: int) -> int | str:
        """A node id that stands for one more connection to the same broker; lane 0 is the broker.

        kafka-python connects once to each node id, and looks unknown ones up among coordinators.
        """
        broker = self._manager.cluster.broker_metadata(node)
        if number == 0 or broker is None:
            return node
        name = f"{node}-lane-{number}"
        # Each time, since a broker that comes back may have moved.
        self._manager.cluster._coordinator_brokers[name] = MetadataResponse.MetadataResponseBroker(
            name, broker.host, broker.port, None
        )
        return name

    def send(self, request: Any, node: int | str | None, deadline: Deadline) -> Any:
        """A future of the answer; sending does not wait for earlier answers."""
        seconds = min(deadline.left, _ATTEMPT_S)
        try:
            return self._manager.send(
                request, node_id=node, request_timeout_ms=max(1, int(seconds * 1000))
            )
        except kafka_errors.UnknownBrokerIdError as error:
            # It was down when the metadata was fetched, and may be the leader again.
            self._manager.cluster.request_update()
            return Future().failure(error)

    async def gather(self, futures: Mapping[K, Any], deadline: Deadline) -> dict[K, Any]:
        """The answer to each request, None where it has to be sent again. A request that waits for
        its connection does not heed its own time-out."""
        answers: dict[K, Any] = {}
        soon = deadline.within(_ATTEMPT_S)
        for key, future in futures.items():
            try:
                answers[key] = await self._manager.wait_for(future, soon.left * 1000)
            except _RETRIABLE:
                answers[key] = None
        return answers

    async def brokers(self, deadline: Deadline) -> list[int] | None:
        """Ids of all live brokers, from fresh metadata; None where it has to be asked again."""
        asked = {"": self._manager.call_soon(self._refresh)}
        if not (await self.gather(asked, deadline))[""]:
            return None
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    async def _refresh(self) -> bool:
        await self._manager.cluster.refresh_metadata()
        return True

    def known_coordinator(self, transactional_id: str) -> int | None:
        node: int | None = self._manager.cluster.get_coordinator(
            transactional_id, CoordinatorType.TRANSACTION
        )
        return node

    def remember_coordinator(self, row: Any) -> None:
        self._manager.cluster.add_coordinator(
            row, CoordinatorType.TRANSACTION, row.key, synthesize_node_id=False
        )

    def forget_coordinator(self, transactional_id: str) -> None:
        self._manager.cluster._coordinators.pop(
            (CoordinatorType.TRANSACTION, transactional_id), None
        )

    @staticmethod
    def find_coordinators_request(ids: list[str]) -> Any:
        """All at once (KIP-699, Kafka 3.0 and later)."""
        return FindCoordinatorRequest(
            key_type=CoordinatorType.TRANSACTION.value, coordinator_keys=ids, min_version=4
        )

    def close(self) -> None:
        self._client.close()
