"""The driver's transactional producer, which sends its requests over the control connections.

librdkafka sends a Produce request for each partition, and a broker answers the requests of one
connection one after the other. Here each leader gets one request for all its partitions, at the
same time as the group's coordinator gets the offset.

A transaction is tried once: after any failure the caller inits another producer, which ends the
transaction, and reads what became of it. So records without an answer are never sent again, and
neither threads nor time-outs of single records are needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer.produce import ProduceRequest
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    TxnOffsetCommitRequest,
)

from eos_sink.errors import FailureKind, OutcomeUnknownError
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    Answer,
    Meaning,
    classify_control_answer,
    convert_error,
    get_meaning,
    is_transient,
)
from eos_sink.kafka.group_metadata import GroupMetadata, read_group_metadata
from eos_sink.kafka.interfaces import (
    EndOutcome,
    Headers,
    LogPosition,
    ProduceFailed,
    ProducerFenced,
    ProducerIdentity,
    Transaction,
)
from eos_sink.kafka.record_batches import Compression, make_batch
from eos_sink.kafka.record_queue import Batch, OnOffset, Place, RecordQueue, UnknownPartition
from eos_sink.kafka.topic_leaders import TopicLeaders
from eos_sink.kafka.wire import GROUP, TRANSACTION, Wire
from eos_sink.kafka_config.acls import Acl, Permissions

if TYPE_CHECKING:
    from eos_sink.kafka.rows import Rows
    from eos_sink.kafka.transaction_control import KafkaPythonControl

# Those below the versions of transaction version 2 (KIP-890), with which each EndTxn bumps the
# epoch: a coordinator would no longer describe the transaction by the identity that wrote it.
_PRODUCE_VERSION = 11
_ADD_PARTITIONS_VERSION = 3
_OFFSETS_VERSION = 4
# How long a topic that was created a moment ago may be unknown to a broker, unless the user says.
_UNKNOWN_TOPIC_MS = 10_000
# The log's own records: less fits into one packet anyway. Readers are librdkafka and kafka-python,
# which has gzip only.
_PACKED_FROM_BYTES = 1_024
_PACKED = Compression("gzip", 1)
_PLAIN = Compression()
_SEQUENCES = 1 << 31
# Answers of a broker that did not take a batch now. The batch is sent again as it was: if a leader
# wrote it before it was deposed, its successor knows the sequence numbers.
_LATER = (
    # A leader also says so if it could not verify the transaction with the coordinator, as when it
    # connects to it for the first time (KIP-890; seen on Kafka 4.3).
    KafkaError.NOT_ENOUGH_REPLICAS,
    # Of a topic that was created a moment ago (seen), or the leader has changed.
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_TopicData = ProduceRequest.TopicProduceData


@dataclass
class _Offset:
    """The group offset that goes into the transaction."""

    position: LogPosition
    member: GroupMetadata
    added: bool = False
    committed: bool = False


class DriverProducer:
    """Implements `eos_sink.kafka.interfaces.TransactionalProducer`.

    Args:
        control: the control connections; asked for at each use, since they may have been closed.
        settings: librdkafka's, of the user.
        transactional_id: of the producer.
        timeout_ms: of its transactions.
        permissions: those that it needs, for errors about missing ones.
    """

    def __init__(
        self,
        control: Callable[[], KafkaPythonControl],
        settings: Mapping[str, str],
        transactional_id: str,
        timeout_ms: int,
        permissions: Permissions,
    ) -> None:
        self._control = control
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._permissions = permissions
        self._compression = Compression(
            settings.get("compression.type", "none"), int(settings.get("compression.level", -1))
        )
        self._queue = RecordQueue(settings, permissions.log)
        patience_ms = settings.get("topic.metadata.propagation.max.ms", _UNKNOWN_TOPIC_MS)
        self._unknown_topic_s = int(patience_ms) / 1000
        self._leaders = TopicLeaders(permissions, self._unknown_topic_s)
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[Place, int] = {}
        self._batches: dict[Place, deque[Batch]] = {}
        self._added: set[Place] = set()
        self._opened = False
        self._failure: BaseException | None = None
        self._refusal: Exception | None = None
        # Whether a leader may have a batch that this producer does not know of: the next sequence
        # numbers are unknown then, and a broker takes a batch with the numbers of an earlier one
        # for that one, without an error. Or whether the transaction may still be open.
        self._unsure = False

    def init(self, deadline: Deadline) -> None:
        identity = self._control().init(self._id, self._timeout_ms, deadline)
        if identity is None:
            raise ProducerFenced(f"Transactional id {self._id} could not be initialized.")
        self._identity = identity

    def begin(self) -> None:
        assert not self._unsure, "init another producer"
        self._queue.clear()
        self._batches.clear()
        self._added.clear()
        self._opened = False
        self._failure = None

    def produce(  # noqa: PLR0913, PLR0917 - a Kafka record has this many parts
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_offset: Callable[[int, int], None] | None = None,
    ) -> None:
        row = (value, key, topic, list(headers) if headers else None, partition, timestamp)
        report = None if on_offset is None else lambda _, *at: on_offset(*at)
        with self._failing():
            self._queue.add(row, report)

    def produce_rows(self, rows: Rows, on_offset: OnOffset | None = None) -> None:
        with self._failing():
            self._queue.add_rows(rows, on_offset)

    def send_offset(self, position: LogPosition, member: bytes, deadline: Deadline) -> None:
        self._send(_Offset(position, read_group_metadata(member)), deadline)

    def flush(self, deadline: Deadline) -> None:
        self._send(None, deadline)

    def identity(self, deadline: Deadline) -> ProducerIdentity:  # noqa: ARG002 - known at once
        assert self._identity is not None, "not inited"
        return self._identity

    def commit(self, deadline: Deadline) -> None:
        self._send(None, deadline)
        if self._end(commit=True, deadline=deadline) is EndOutcome.REFUSED:
            raise ProducerFenced(
                f"The transaction of {self._id} was not committed: another producer has ended it."
            )

    def abort(self, deadline: Deadline) -> None:
        # A refusal says that it was ended already, or was not opened.
        self._end(commit=False, deadline=deadline)

    def close(self) -> None:
        self._queue.clear()
        self._batches.clear()

    @property
    def _transaction(self) -> Transaction:
        assert self._identity is not None, "not inited"
        return Transaction(self._id, self._identity.producer_id, self._identity.epoch)

    def _end(self, *, commit: bool, deadline: Deadline) -> EndOutcome:
        if not self._opened:
            return EndOutcome.DONE
        outcome = self._control().end([self._transaction], commit, deadline).get(self._transaction)
        if outcome is None:
            self._unsure = True
            raise self._no_answer("the transaction coordinator", deadline)
        return outcome

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Nothing follows a failure but the end of the transaction."""
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except BaseException as error:
            self._failure = error
            self._leaders.forget()
            raise

    def _send(self, offset: _Offset | None, deadline: Deadline) -> None:
        """Send what is queued, and the offset. Each partition takes one batch a request."""
        with self._failing():
            wire = self._control().wire
            if self._queue.topics:
                self._batches = self._take_batches(wire, deadline)
            while self._batches or (offset is not None and not offset.committed):
                refusal = retry_until(
                    deadline,
                    lambda: self._send_round(offset, wire, deadline),
                    lambda refusal: refusal is None,
                )
                if refusal is not None:
                    raise refusal

    def _take_batches(self, wire: Wire, deadline: Deadline) -> dict[Place, deque[Batch]]:
        topics = set(self._queue.topics)
        try:
            return self._queue.take(self._leaders.find(topics, wire, deadline))
        except UnknownPartition:
            # It may be new.
            self._leaders.forget()
        try:
            return self._queue.take(self._leaders.find(topics, wire, deadline))
        except UnknownPartition as unknown:
            rejected = FailureKind.MESSAGE_REJECTED
            raise ProduceFailed(str(unknown), rejected, unknown.topic) from unknown

    def _send_round(
        self, offset: _Offset | None, wire: Wire, deadline: Deadline
    ) -> Exception | None:
        """The first batch of each partition, and the offset unless it was sent before.

        Returns:
            Why a batch has to be sent again later.
        """
        self._refusal = None
        leaders = self._leaders.connect(self._batches, wire, deadline) if self._batches else {}
        requests = self._make_requests(leaders, deadline)
        patience = deadline.within(self._unknown_topic_s)

        async def attempt() -> bool:
            coordinator = await self._find_coordinator(self._id, TRANSACTION, wire, deadline)
            if coordinator is None:
                return False
            self._opened = True
            # The first requests of both go over one connection: the coordinator takes one change of
            # a transaction at a time.
            steps = [self._write(requests, coordinator, wire, deadline, patience)]
            if offset is not None and not offset.committed:
                steps.append(self._commit_offset(offset, coordinator, wire, deadline))
            return all(await wire.gather_all(steps))

        if not retry_until(deadline, lambda: wire.run(attempt), bool):
            raise self._no_answer("the transaction coordinator", deadline)
        return self._refusal

    async def _write(
        self,
        requests: dict[int, Any],
        coordinator: int,
        wire: Wire,
        deadline: Deadline,
        patience: Deadline,
    ) -> bool:
        """Add the partitions to the transaction, then send the batches; False: not yet."""
        if places := self._batches.keys() - self._added:
            answer = await wire.ask(self._add_partitions(places), coordinator, deadline)
            if not self._read_added(answer, wire, patience):
                return False
            self._added |= places
        if requests:
            self._unsure = True
            sent = {node: wire.send(requests.pop(node), node, deadline) for node in [*requests]}
            answers = await wire.gather(sent, deadline)
            if any(answer is None for answer in answers.values()):
                raise self._no_answer("a leader", deadline)
            self._read_produced(answers.values())
        return True

    async def _commit_offset(
        self, offset: _Offset, coordinator: int, wire: Wire, deadline: Deadline
    ) -> bool:
        """Add the group to the transaction, then the offset; False: not yet."""
        what = f"The group offset was not added to the transaction of {self._id}"
        needs = (self._permissions.group, self._permissions.log_read)
        if not offset.added:
            answer = await wire.ask(self._add_group(offset.member.group), coordinator, deadline)
            code = None if answer is None else answer.error_code
            if not self._is_done(code, what, needs, wire, self._id):
                return False
            offset.added = True
        group = offset.member.group
        node = await self._find_coordinator(group, GROUP, wire, deadline)
        if node is None:
            return False
        answer = await wire.ask(self._commit_group_offset(offset), node, deadline)
        code = None if answer is None else answer.topics[0].partitions[0].error_code
        offset.committed = self._is_done(code, what, needs, wire, group, GROUP)
        return offset.committed

    async def _find_coordinator(
        self, key: str, kind: CoordinatorType, wire: Wire, deadline: Deadline
    ) -> int | None:
        """None: it is not known yet."""
        for code in (await wire.find_coordinators([key], deadline, kind)).values():
            what = f"The coordinator of {key} could not be found"
            needs = (self._permissions.transactions, self._permissions.group)
            self._is_done(code, what, needs, wire, key, kind)
        return wire.get_coordinator(key, kind)

    def _make_requests(self, leaders: Mapping[Place, int], deadline: Deadline) -> dict[int, Any]:
        """One Produce request for each leader."""
        parts: dict[int, dict[str, list[Any]]] = {}
        for (topic, partition), node in leaders.items():
            batch = self._batches[topic, partition][0]
            compression = self._compression
            if topic == self._permissions.log:
                compression = _PACKED if len(batch.records.data) >= _PACKED_FROM_BYTES else _PLAIN
            sequence = self._sequences.get(batch.place, 0)
            assert self._identity is not None, "not inited"
            records = make_batch(batch.records, self._identity, sequence, compression)
            part = _TopicData.PartitionProduceData(index=partition, records=records)
            parts.setdefault(node, {}).setdefault(topic, []).append(part)
        return {
            node: ProduceRequest(
                transactional_id=self._id,
                acks=-1,
                timeout_ms=int(deadline.left * 1000),
                topic_data=[
                    _TopicData(name=name, partition_data=data) for name, data in topics.items()
                ],
                max_version=_PRODUCE_VERSION,
            )
            for node, topics in parts.items()
        }

    def _add_partitions(self, places: Iterable[Place]) -> Any:
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._transaction.producer_id,
            v3_and_below_producer_epoch=self._transaction.epoch,
            v3_and_below_topics=[added(name=name, partitions=of) for name, of in topics.items()],
            max_version=_ADD_PARTITIONS_VERSION,
        )

    def _add_group(self, group: str) -> Any:
        return AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self._transaction.producer_id,
            producer_epoch=self._transaction.epoch,
            group_id=group,
            max_version=_OFFSETS_VERSION,
        )

    def _commit_group_offset(self, offset: _Offset) -> Any:
        place, member = offset.position, offset.member
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=member.group,
            producer_id=self._transaction.producer_id,
            producer_epoch=self._transaction.epoch,
            generation_id=member.generation,
            member_id=member.member,
            group_instance_id=member.instance,
            topics=[
                topic(
                    name=place.topic,
                    partitions=[
                        topic.TxnOffsetCommitRequestPartition(
                            partition_index=place.partition,
                            committed_offset=place.offset,
                            committed_leader_epoch=-1,
                            committed_metadata=None,
                        )
                    ],
                )
            ],
            max_version=_OFFSETS_VERSION,
        )

    def _read_added(self, answer: Any, wire: Wire, patience: Deadline) -> bool:
        """Whether the partitions are in the transaction; False: ask again."""
        if answer is None:
            wire.forget_coordinator(self._id)
            return False
        done = True
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                code = part.partition_error_code
                if code == KafkaError.OPERATION_NOT_ATTEMPTED:
                    # Because of another one.
                    continue
                if get_meaning(code) is Meaning.MISSING and not patience.passed:
                    done = False
                    continue
                what = f"{_describe(topic.name, part.partition_index)} cannot be written"
                needs = (self._permissions.transactions, *self._needs(topic.name))
                done &= self._is_done(code, what, needs, wire, self._id)
        return done

    def _read_produced(self, answers: Iterable[Any]) -> None:
        """Take the batches that are on the brokers off their queues.

        Raises:
            The error of a batch that is not.
        """
        errors: list[Exception] = []
        self._unsure = False
        for answer in answers:
            for topic in answer.responses:
                for part in topic.partition_responses:
                    self._unsure |= not _is_known(part.error_code)
                    place = topic.name, part.index
                    queue = self._batches[place]
                    batch = queue.popleft()
                    if part.error_code in _TOO_LARGE and batch.records.count > 1:
                        # The topic takes less. The broker kept none of them.
                        queue.extendleft(reversed(batch.halve()))
                    elif part.error_code in _LATER:
                        queue.appendleft(batch)
                        self._refusal = self._convert(part, place)
                        self._leaders.forget()
                    elif part.error_code:
                        errors.append(self._convert(part, place))
                    else:
                        number = self._sequences.get(place, 0) + batch.records.count
                        self._sequences[place] = number % _SEQUENCES
                        for index, report in batch.reports:
                            report(*place, part.base_offset + index)
                    if not queue:
                        del self._batches[place]
        if errors:
            raise errors[0]

    def _convert(self, part: Any, place: Place) -> Exception:
        """The error of a batch that was not written."""
        error = KafkaError(part.error_code)
        reasons = [part.error_message, *(e.batch_index_error_message for e in part.record_errors)]
        said = "; ".join(dict.fromkeys(filter(None, reasons)))
        what = f"A record for {_describe(*place)} was not written" + (f" ({said})" if said else "")
        if is_transient(error) or error.code() in _LATER:
            kind = FailureKind.DELIVERY_FAILED
            return ProduceFailed(f"{what}: {error.str()}.", kind, place[0])
        needs = (self._permissions.transactions, *self._needs(place[0]))
        converted = convert_error(error, what, needs)
        if isinstance(converted, ProduceFailed):
            converted.topic = place[0]
        return converted

    def _needs(self, topic: str) -> tuple[Acl, ...]:
        return self._permissions.topic(topic)[:1]

    def _is_done(  # noqa: PLR0913, PLR0917
        self,
        code: int | None,
        what: str,
        needs: Iterable[Acl],
        wire: Wire,
        key: str,
        kind: CoordinatorType = TRANSACTION,
    ) -> bool:
        """Whether a coordinator has done a request; False: send it again.

        Raises:
            The error of a code that says neither.
        """
        answer = Answer.REDISCOVER if code is None else classify_control_answer(code)
        if answer is Answer.REDISCOVER:
            wire.forget_coordinator(key, kind)
        if code is None or answer in (Answer.REDISCOVER, Answer.RETRY):
            return False
        if answer is not Answer.DONE:
            raise convert_error(KafkaError(code), what, needs)
        return True

    def _no_answer(self, whose: str, deadline: Deadline) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"No answer from {whose} within {deadline.seconds:.0f} s for the transaction of "
            f"{self._id}.",
            remedy="Check that the brokers answer, then start the query again: it reads decisions "
            "back and finishes them first.",
        )


def _is_known(code: int) -> bool:
    """Whether the answer to a batch says for certain whether the leader has it."""
    return not code or get_meaning(code) in (Meaning.REJECTED, Meaning.DENIED)


def _describe(topic: str, partition: int) -> str:
    return f"topic {topic}, partition {partition}"
