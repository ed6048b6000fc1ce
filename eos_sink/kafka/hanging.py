"""Finds and ends transactions that Kafka has ended everywhere but in a partition.

Kafka 4 drops the marker for a partition that has no leader when a transaction ends (KAFKA-20734).
The partition's next leader still has the transaction open: readers wait behind it, no timeout ends
it, and the next transaction of the same producer that writes there ends it with its own outcome.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

from eos_sink.errors import EosSinkError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import is_denied, no_answer
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.wire import Leader, Wire
from eos_sink.kafka_config.acls import Acl, Permissions, Resource, permission_error
from eos_sink.protocol.values import (
    FirstOpen,
    Hanging,
    HangingLook,
    Place,
    Transaction,
    TransactionStatus,
)

if TYPE_CHECKING:
    from eos_sink.kafka.interfaces import TransactionControl
    from eos_sink.kafka.transaction_control import KafkaPythonControl

# A broker that died is known to be dead within its session, 9 s by default.
_ANSWER_S = 12.0
_MARKERS_S = 5.0
# Ids with consecutive hashes, twice as many as __transaction_state has partitions, 50 by default:
# of these every one coordinates some, wherever the hashes change their sign.
_PROBES, _RADIX = 1_000, 31
# Of a leader in one answer, which is refused from 100 MB on: 300,000 producers in each.
_PARTITIONS = 8


class OpenTransaction(NamedTuple):
    """An open transaction as the leader of a partition knows it."""

    place: Place
    producer_id: int
    epoch: int
    start: int
    coordinator_epoch: int


def find_hanging(
    control: KafkaPythonControl,
    topics: Iterable[str],
    names: Collection[str],
    prefix: str,
    deadline: Deadline,
) -> HangingLook:
    """See `eos_sink.kafka.interfaces.TransactionControl.find_hanging`, whose `ids` are `names`."""
    wire, ids = control.wire, dict[int, str]()
    opened, unknown = find_open(wire, topics, deadline)
    producers = frozenset(each.producer_id for each in opened)
    if producers:
        states = control.describe(names, deadline)
        ids = {state.transaction.producer_id: name for name, state in states.items()}
    if prefix and (others := producers - ids.keys()):
        ids |= control.name_producers(others, deadline)
        if (unnamed := others - ids.keys()) and _all_coordinate(control, prefix, deadline):
            # A coordinator may have moved when it was asked. Else they are of other principals.
            ids |= control.name_producers(unnamed, deadline)
        else:
            unknown |= {each.place for each in opened if each.producer_id in unnamed}
    own = {i for i, name in ids.items() if name in names or (prefix and name.startswith(prefix))}
    opened = {each for each in opened if each.producer_id in own}
    soon = deadline.within(_MARKERS_S)
    while opened:
        states = control.describe(sorted({ids[each.producer_id] for each in opened}), deadline)
        opened = {
            each
            for each in opened
            if (state := states[ids[each.producer_id]]).status is not TransactionStatus.ONGOING
            and state.transaction.producer_id == each.producer_id
        }
        # Asked again after the coordinators: a marker may have been under way before.
        now, still = find_open(wire, {each.place[0] for each in opened}, deadline)
        opened, unknown = opened & now, unknown | still
        ending = {each for each in opened if not states[ids[each.producer_id]].has_ended}
        if not ending or soon.passed:
            hanging = [
                Hanging(
                    Transaction(ids[each.producer_id], each.producer_id, each.epoch),
                    *each.place,
                    each.start,
                    each.coordinator_epoch,
                    states[ids[each.producer_id]],
                )
                for each in sorted(opened - ending)
            ]
            return HangingLook(hanging, unknown | {each.place for each in ending})
    return HangingLook([], unknown)


def check_coordinators(control: TransactionControl, prefix: str, deadline: Deadline) -> None:
    """Check that each partition of __transaction_state has a coordinator that answers. What has
    none is in no list of transactions.

    Raises:
        OutcomeUnknownError: one has none.
    """
    try:
        control.describe(probe_ids(prefix), deadline.within(_MARKERS_S))
    except OutcomeUnknownError:
        raise OutcomeUnknownError(
            "A partition of __transaction_state has no coordinator that answers: the transactions "
            "of its ids are not seen.",
            remedy="Bring its broker back, then look again.",
        ) from None


def _all_coordinate(control: KafkaPythonControl, prefix: str, deadline: Deadline) -> bool:
    """True if all do: what none of them names then is hidden from this principal, so it is none of
    the query's."""
    with contextlib.suppress(OutcomeUnknownError):
        check_coordinators(control, prefix, deadline)
        return True
    return False


def probe_ids(prefix: str) -> list[str]:
    """Ids that have all coordinators, with up to 500 partitions: an id's follows from its hash,
    which Java computes to the base of 31."""
    digits = (divmod(number, _RADIX) for number in range(_PROBES))
    return [f"{prefix}{chr(ord('0') + high)}{chr(ord('0') + low)}" for high, low in digits]


def find_holders(
    control: KafkaPythonControl, places: frozenset[Place], deadline: Deadline
) -> dict[Place, FirstOpen | None]:
    """See `eos_sink.kafka.interfaces.TransactionControl.find_holders`."""
    opened, unheard = find_open(control.wire, {topic for topic, _ in places}, deadline)
    oldest = {
        each.place: each
        for each in sorted(opened, key=lambda each: -each.start)
        if each.place in places
    }
    producers, names = {each.producer_id for each in oldest.values()}, dict[int, str]()
    with contextlib.suppress(EosSinkError):
        names = control.name_producers(producers, deadline) if producers else {}
    found: dict[Place, FirstOpen | None] = dict.fromkeys(places & unheard)
    for place, each in oldest.items():
        name = names.get(each.producer_id, "")
        found[place] = FirstOpen(Transaction(name, each.producer_id, each.epoch), each.start)
    return found


def end_hanging(wire: Wire, hanging: Hanging, commit: bool, deadline: Deadline) -> bool:
    """See `eos_sink.kafka.interfaces.TransactionControl.end_hanging`."""
    transaction, place = hanging.transaction, (hanging.topic, hanging.partition)
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    topic = marker.WritableTxnMarkerTopic(name=hanging.topic, partition_indexes=[hanging.partition])
    request = WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                transaction_result=commit,
                topics=[topic],
                coordinator_epoch=max(hanging.coordinator_epoch, 0),
            )
        ],
        max_version=1,
    )

    async def write() -> int | None:
        leader = (await wire.find_leaders([place], deadline)).get(place)
        if not isinstance(leader, Leader):
            return None
        answer = await wire.ask(request, leader.node, deadline)
        if answer is None:
            wire.forget_leader(place)
            return None
        code: int = answer.markers[0].topics[0].partitions[0].error_code
        return code

    def is_final(code: int | None) -> bool:
        if code is not None and kafka_errors.for_code(code).retriable:
            wire.forget_leader(place)
            return False
        return code is not None

    code = retry_until(deadline, lambda: wire.run(write), is_final)
    if code is not None and is_denied(code):
        raise permission_error(
            f"{hanging} is not ended, because Kafka forgot that when the partition had no leader "
            "(KAFKA-20734), and its marker may not be written",
            [Acl("Alter", Resource.CLUSTER, "kafka-cluster")],
        )
    return code == 0


def find_open(
    wire: Wire, topics: Iterable[str], deadline: Deadline
) -> tuple[set[OpenTransaction], frozenset[Place]]:
    """The open transactions of all partitions, and the partitions that no broker answers for. It
    waits for brokers, but for no leader.

    Raises:
        OutcomeUnknownError: no broker names the partitions.
    """

    async def ask() -> tuple[set[OpenTransaction], set[Place], set[Place]] | None:
        leaders = await wire.fetch_leaders(topics, deadline)
        if leaders is None:
            return None
        leaderless = {place for place, leader in leaders.items() if leader < 0}
        found: set[OpenTransaction] = set()
        answered = set(leaderless)
        for requests in _describe_requests(leaders):
            for answer in (await wire.ask_each(requests, deadline)).values():
                for topic in answer.topics if answer else ():
                    for part in topic.partitions:
                        if part.error_code == 0:
                            answered.add((topic.name, part.partition_index))
                        found |= _read(topic.name, part)
        return found, leaderless, leaders.keys() - answered

    asked, soon = frozenset(topics), deadline.within(_ANSWER_S)
    if not asked:
        return set(), frozenset()
    result = retry_until(
        deadline,
        lambda: wire.run(ask),
        lambda result: result is not None and (not result[2] or soon.passed),
    )
    if result is None:
        raise no_answer("any broker", asked, deadline, wire.silence)
    found, leaderless, silent = result
    return found, frozenset(leaderless | silent)


def _describe_requests(leaders: Mapping[Place, int]) -> Iterator[dict[int, Any]]:
    """Requests by leader, one for each at a time: an answer has every producer of the last day."""
    by_leader: dict[int, list[Place]] = {}
    for place, leader in leaders.items():
        if leader >= 0:
            by_leader.setdefault(leader, []).append(place)
    row = DescribeProducersRequest.TopicRequest
    for first in range(0, max(map(len, by_leader.values()), default=0), _PARTITIONS):
        requests = {}
        for leader, places in by_leader.items():
            by_topic: dict[str, list[int]] = {}
            for topic, number in places[first : first + _PARTITIONS]:
                by_topic.setdefault(topic, []).append(number)
            rows = [row(name=name, partition_indexes=each) for name, each in by_topic.items()]
            requests[leader] = DescribeProducersRequest(topics=rows)
        yield {leader: request for leader, request in requests.items() if request.topics}


def _read(topic: str, part: Any) -> set[OpenTransaction]:
    """The open ones of a partition in an answer."""
    if is_denied(part.error_code):
        what = f"DescribeProducers for {topic} is refused"
        raise permission_error(what, [Permissions.witness(topic)])
    place = topic, part.partition_index
    return {
        OpenTransaction(
            place,
            row.producer_id,
            row.producer_epoch,
            row.current_txn_start_offset,
            row.coordinator_epoch,
        )
        for row in part.active_producers
        if row.current_txn_start_offset >= 0
    }
