"""The query's one static group member, on confluent-kafka (KIP-345, KIP-447)."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    LOGGER,
    convert_error,
    describe_refusal,
    is_refusal,
    is_transient,
    remedy_for,
)
from eos_sink.kafka.shared_clients import SharedClients
from eos_sink.protocol.values import MemberRefused, MemberState, Position

_POLL_S = 0.05
# `poll` reports the assignment in a callback, then goes on waiting for a message that never comes.
_JOIN_POLL_S = 0.005
# Offsets are pending until the markers are written, some milliseconds; librdkafka asks again after
# this time (100 ms by default), and doubles it each time.
_RETRY_MS = 10
_STABLE_TRY_S = 1.0
_LONGEST_POLL_INTERVAL_MS = 86_400_000
_HEARTBEAT_MS = 3_000


class ConfluentMember:
    """Implements `eos_sink.kafka.interfaces.GroupMember`."""

    def __init__(
        self,
        clients: SharedClients,
        group: str,
        instance_id: str,
        session_ms: int,
    ) -> None:
        self._needs = (clients.permissions.group, clients.permissions.log_read)
        self._topic = clients.config.log_topic
        self._group = group
        self._ended = f"Membership in group {group} ended"
        self._assigned = False
        self._fatal: KafkaError | None = None
        self._why = ""
        self._refused = ""
        self._joined_as: bytes | None = None
        self._consumer = Consumer(
            {
                **clients.connection,
                "group.id": group,
                "group.instance.id": instance_id,
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": _HEARTBEAT_MS,
                # A planner polls once a batch, and a batch may be long.
                "max.poll.interval.ms": _LONGEST_POLL_INTERVAL_MS,
                "enable.auto.commit": False,
                "retry.backoff.ms": _RETRY_MS,
                # Sets require_stable when offsets are fetched (KIP-447).
                "isolation.level": "read_committed",
                "error_cb": self._note_error,
            },
            logger=LOGGER,
        )

    def join(self, deadline: Deadline) -> bytes:
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke
        )
        while not self._assigned:
            if deadline.passed:
                remedy = (
                    "Check that the group coordinator (topic __consumer_offsets) is available and "
                    "that the principal may read the group, then start again."
                )
                why = self._refused or self._why
                raise ClusterError(
                    f"The query's driver could not join group {self._group} within "
                    f"{deadline.seconds:.0f} s{why}.",
                    remedy=remedy_for(why, remedy),
                )
            self._check(min(_JOIN_POLL_S, deadline.left))
        self._joined_as = self._metadata()
        return self._joined_as

    def state(self) -> MemberState:
        try:
            error = self._poll(0)
        except MemberRefused:
            return MemberState.REPLACED
        # What ended the membership (a permission, 24 hours without a call) does not matter: the
        # planner joins again, which repairs it, or fails with the cause.
        if error is not None or self._metadata() != self._joined_as:
            return MemberState.EXPIRED
        return MemberState.CURRENT

    def wait_stable(self, position: Position, deadline: Deadline) -> bool:
        partition = TopicPartition(position.topic, position.partition)
        while True:
            self._check(0)
            try:
                answers = self._consumer.committed(
                    [partition], timeout=max(_POLL_S, min(_STABLE_TRY_S, deadline.left))
                )
                if answers[0].error is None:
                    return True
                raise KafkaException(answers[0].error)
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if not is_transient(error):
                    raise convert_error(
                        error, f"Group {self._group} is unreadable", self._needs
                    ) from raised
                # A coordinator that has moved answers with an error at once, without a wait.
                self._check(min(_POLL_S, deadline.left))
            if deadline.passed:
                return False

    def close(self) -> None:
        # A static member does not leave its group on close (KIP-345), so nothing is lost by it.
        self._consumer.close()

    def _check(self, seconds: float) -> None:
        error = self._poll(seconds)
        if error is not None:
            raise convert_error(error, self._ended, self._needs)

    def _poll(self, seconds: float) -> KafkaError | None:
        """An error that is neither transient nor means that the member was replaced.

        Raises:
            MemberRefused: it was.
        """
        try:
            message = self._consumer.poll(seconds)
            error = None if message is None else message.error()
        except KafkaException as raised:
            error = raised.args[0]
        if error is not None and error.code() == KafkaError._FATAL:
            self._fatal = error
        if self._fatal is not None:
            # librdkafka says it once and names no cause (_FATAL), but a member of a classic
            # group has one fatal error only: FENCED_INSTANCE_ID.
            raise MemberRefused(f"{self._ended}: {self._fatal.str()}.", replaced=True)
        return None if error is None or is_transient(error) else error

    def _metadata(self) -> bytes:
        metadata: bytes = self._consumer.consumer_group_metadata()
        return metadata

    def _on_assign(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        # The member fetches nothing; being one is all that is asked of it.
        consumer.assign([])
        self._assigned = True

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        consumer.unassign()

    def _note_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error
        if is_refusal(error):
            # What is said later, of a connection that is lost, hides the cause.
            self._refused = f": {describe_refusal(error.str())}"
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._why = f": {error.str()}"
