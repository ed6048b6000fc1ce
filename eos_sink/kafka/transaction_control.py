"""Ends, lists and describes transactions from outside their producers, with kafka-python.

Requests to one coordinator are sent in parallel over several connections; one deadline spans all
retries. `eos_sink.protocol.rules` decides what the answers mean for a batch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.protocol.admin.transactions import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.producer.transaction import EndTxnRequest, InitProducerIdRequest

from eos_sink.errors import ClusterError, ConfigurationError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    Answer,
    classify_control_answer,
    is_denied,
    lacks_coordinator,
    no_answer,
)
from eos_sink.kafka.leaders import Leaders
from eos_sink.kafka.retry import retry_until
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions, permission_error
from eos_sink.protocol.values import (
    RECORDED_MS,
    EndOutcome,
    FirstOpen,
    Hanging,
    HangingLook,
    Place,
    Transaction,
    TransactionState,
    TransactionStatus,
)

R = TypeVar("R")

# Above version 4 EndTxn bumps the epoch (KIP-890): the coordinator would no longer describe the
# transaction that a decision names.
_END_TXN_VERSION = 4
_INVALID_TRANSACTION_TIMEOUT = 50
# A broker answers the requests of one connection one after the other, and each EndTxn waits for the
# replicas of its coordinator's log: 200 on three brokers took 1.2 s over one connection to each,
# 0.55 over 4, 0.24 over 16 and no less over 32; the brokers' own CPU fell from 1.5 s to 0.6.
# Each connection is a login, so one is opened for every four.
_LANES, _FOR_A_LANE = 16, 4
_LEARN_S, _LEADERS_AGAIN_S = 5.0, 0.2
# An end takes milliseconds. It takes seconds while a broker has just died, and only then may a
# partition that had a leader before have none after it.
_LONG_S = 1.0
_PROBE = "permission"
# With these it only looks; Describe is enough for them.
_LOOKS = ("DescribeTransactions", "FindCoordinator", "ListTransactions")


class KafkaPythonControl:
    """Implements `eos_sink.kafka.interfaces.TransactionControl`."""

    def __init__(
        self, settings: dict[str, object], permissions: Permissions, deadline: Deadline
    ) -> None:
        """Args:
        settings: kafka-python's.
        permissions: those that its requests need.
        deadline: for the first answer of a broker.
        """
        self.wire = Wire(settings, deadline)
        self._leaders = Leaders(self.wire)
        self._permissions = permissions
        # Ids whose last answer was that no coordinator is available.
        self._without: set[str] = set()

    def check_brokers(self, deadline: Deadline) -> None:
        from eos_sink.kafka.admin_requests import BROKER, configs_request
        from eos_sink.kafka_config.broker_versions import (
            VERIFICATION,
            check_broker,
            check_verification,
        )

        versions = self._ask_brokers("ApiVersions", lambda _: Wire.versions_request(), deadline)
        for node, answer in versions.items():
            check_broker(str(node), {api.api_key: api.max_version for api in answer.api_keys})

        def ask_verification(node: int) -> Any:
            return configs_request(BROKER, str(node), [VERIFICATION])

        def read_code(answer: Any) -> int:
            # Without the permission the value is unknown, which is not an error.
            code: int = answer.results[0].error_code
            return 0 if is_denied(code) else code

        settings = self._ask_brokers("DescribeConfigs", ask_verification, deadline, read_code)
        for node, answer in settings.items():
            values = {entry.name: entry.value for entry in answer.results[0].configs or ()}
            check_verification(str(node), values.get(VERIFICATION))

    def check_timeout(self, transactional_id: str, timeout_ms: int, deadline: Deadline) -> None:
        def request(_: list[str]) -> Any:
            return InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
                max_version=5,
            )

        def read(_: list[str], response: Any) -> dict[str, Answer | None]:
            if response.error_code == _INVALID_TRANSACTION_TIMEOUT:
                raise ConfigurationError(
                    f"The query needs transactions of {timeout_ms} ms "
                    "(eos.transaction.timeout.ms), above the brokers' transaction.max.timeout.ms.",
                    remedy="Raise transaction.max.timeout.ms on the brokers, or lower "
                    f"eos.transaction.timeout.ms; the driver's own need {RECORDED_MS} ms in any "
                    "case. Nothing was written.",
                )
            answer = self._classify("InitProducerId", transactional_id, response.error_code)
            return {transactional_id: answer}

        self._ask_coordinators([transactional_id], request, read, deadline)

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        outcomes: dict[Transaction, EndOutcome] = {}
        remaining = list(dict.fromkeys(transactions))
        while remaining:
            unheard = self._learn_partitions(remaining, deadline)
            waiting = unheard | self._leaders.find_missing(remaining, deadline)
            # An id may occur twice, with the epochs of two attempts: one after the other.
            by_id = {t.transactional_id: t for t in reversed(remaining) if t not in waiting}
            begun = time.monotonic()
            found = self._end(by_id, commit, deadline)
            doubtful: frozenset[Transaction] = frozenset()
            if time.monotonic() - begun > _LONG_S:
                doubtful = self._leaders.find_ended_leaderless(by_id.values(), deadline)
            answered = {by_id[name]: outcome for name, outcome in found.items()}
            outcomes |= {each: answered[each] for each in answered.keys() - doubtful}
            remaining = [t for t in remaining if t not in by_id.values()]
            if waiting and not by_id:
                if deadline.passed:
                    break
                time.sleep(_LEADERS_AGAIN_S)
        return outcomes

    def _learn_partitions(
        self, transactions: Sequence[Transaction], deadline: Deadline
    ) -> frozenset[Transaction]:
        """Ask for the partitions of the transactions unless they are known; return those for which
        no coordinator answers. These must not keep the others waiting.

        A vote or a look-up has described them already, as a rule.
        """
        if all(map(self._leaders.knows, transactions)):
            return frozenset()
        ids = dict.fromkeys(each.transactional_id for each in transactions)
        with contextlib.suppress(OutcomeUnknownError):
            self.describe(ids, deadline.within(_LEARN_S))
        described = self._leaders.described_ids
        return frozenset(each for each in transactions if each.transactional_id not in described)

    def _end(
        self, by_id: Mapping[str, Transaction], commit: bool, deadline: Deadline
    ) -> dict[str, EndOutcome]:
        def request(ids: list[str]) -> Any:
            transaction = by_id[ids[0]]
            return EndTxnRequest(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                committed=commit,
                max_version=_END_TXN_VERSION,
            )

        def read(ids: list[str], response: Any) -> dict[str, EndOutcome | None]:
            answer = self._classify("EndTxn", ids[0], response.error_code)
            outcome = EndOutcome.DONE if answer is Answer.DONE else EndOutcome.REFUSED
            return {ids[0]: None if answer is None else outcome}

        return self._ask_coordinators(list(by_id), request, read, deadline, each=True)

    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        ids = list(ids)
        for name in ids if anew else ():
            self.wire.forget_coordinator(name)

        def request(names: list[str]) -> Any:
            return DescribeTransactionsRequest(transactional_ids=names)

        def read(_: list[str], response: Any) -> dict[str, TransactionState | None]:
            return {row.transactional_id: read_row(row) for row in response.transaction_states}

        self._leaders.forget()

        def read_row(row: Any) -> TransactionState | None:
            name = row.transactional_id
            answer = self._classify("DescribeTransactions", name, row.error_code)
            if answer is None:
                return None
            if answer is Answer.REFUSED:
                missing = Transaction(name, -1, -1)
                self._leaders.remember(missing, ())
                return TransactionState(missing, TransactionStatus.MISSING, -1, -1)
            transaction = Transaction(name, row.producer_id, row.producer_epoch)
            places = tuple((each.topic, part) for each in row.topics for part in each.partitions)
            self._leaders.remember(transaction, places)
            return TransactionState(
                transaction,
                TransactionStatus(row.transaction_state),
                row.transaction_start_time_ms,
                row.transaction_timeout_ms,
                places,
            )

        return self._ask_coordinators(ids, request, read, deadline)

    def find_hanging(
        self, topics: Iterable[str], ids: Collection[str], prefix: str, deadline: Deadline
    ) -> HangingLook:
        from eos_sink.kafka import hanging

        return hanging.find_hanging(self, topics, ids, prefix, deadline)

    def find_holders(
        self, places: Iterable[Place], deadline: Deadline
    ) -> dict[Place, FirstOpen | None]:
        from eos_sink.kafka import hanging

        return hanging.find_holders(self, frozenset(places), deadline)

    def name_producers(self, producers: Iterable[int], deadline: Deadline) -> dict[int, str]:
        """The transactional ids of producer ids. A coordinator without a leader says nothing, one
        that is moving may say nothing, and Kafka leaves out in silence what may not be described.
        """
        rows = self._list_rows(deadline, producers=producers)
        return {row.producer_id: row.transactional_id for row in rows}

    def end_hanging(self, ended: Hanging, commit: bool, deadline: Deadline) -> bool:
        from eos_sink.kafka import hanging

        return hanging.end_hanging(self.wire, ended, commit, deadline)

    def list_transactions(
        self, prefix: str, deadline: Deadline, *statuses: TransactionStatus
    ) -> list[TransactionState]:
        every = {row.transactional_id for row in self._list_rows(deadline, statuses)}
        ids = sorted(name for name in every if name.startswith(prefix))
        # Kafka silently leaves out ids that may not be described. Describing one raises an error.
        states = self.describe({f"{prefix}{_PROBE}", *ids}, deadline)
        return [states[name] for name in ids]

    def _list_rows(
        self,
        deadline: Deadline,
        states: Iterable[TransactionStatus] = (),
        producers: Iterable[int] = (),
    ) -> list[Any]:
        """A broker answers for the coordinators that it hosts, so all of them have to answer."""
        answers = self._ask_brokers(
            "ListTransactions",
            lambda _: ListTransactionsRequest(
                state_filters=[state.value for state in states],
                producer_id_filters=sorted(producers),
                max_version=0,
            ),
            deadline,
        )
        return [row for answer in answers.values() for row in answer.transaction_states]

    def close(self) -> None:
        self.wire.close()

    def _ask_brokers(
        self,
        name: str,
        request: Callable[[int], Any],
        deadline: Deadline,
        read_code: Callable[[Any], int] = lambda answer: answer.error_code,
    ) -> dict[int, Any]:
        """The answers of all live brokers, by their ids."""

        async def ask() -> dict[int, Any] | None:
            brokers = await self.wire.list_brokers(deadline)
            if brokers is None:
                return None
            requests = {node: request(node) for node in brokers}
            answers = await self.wire.ask_each(requests, deadline)
            for node, answer in answers.items():
                if not answer or not self._classify(name, f"broker {node}", read_code(answer)):
                    return None
            return answers

        answers = retry_until(deadline, lambda: self.wire.run(ask), lambda all_: all_ is not None)
        if answers is None:
            raise no_answer(name, ["all brokers"], deadline, self.wire.silence)
        return answers

    def _ask_coordinators(
        self,
        ids: Sequence[str],
        request: Callable[[list[str]], Any],
        read: Callable[[list[str], Any], Mapping[str, R | None]],
        deadline: Deadline,
        *,
        each: bool = False,
    ) -> dict[str, R]:
        """Send requests to the coordinators of transactional ids until all have a result.

        Args:
            ids: transactional ids.
            request: makes one for some ids.
            read: the results in its answer; None: the request has to be repeated.
            deadline: for all results.
            each: a request for each id, and no error if some have no result at the deadline; else
                one request for all ids of a coordinator.
        """
        results: dict[str, R] = {}

        async def ask() -> None:
            pending = [name for name in ids if name not in results]
            requests: dict[tuple[str, ...], Any] = {}
            for node, names in (await self._find_coordinators(pending, deadline)).items():
                groups = [[name] for name in names] if each else [names]
                lanes = min(_LANES, -(-len(groups) // _FOR_A_LANE))
                for number, group in enumerate(groups):
                    lane = self.wire.get_lane(node, number % lanes)
                    requests[tuple(group)] = self.wire.send(request(group), lane, deadline)
            for asked, response in (await self.wire.gather(requests, deadline)).items():
                if response is None:
                    for name in asked:
                        self.wire.forget_coordinator(name)
                    continue
                found = read(list(asked), response)
                results.update({n: result for n, result in found.items() if result is not None})

        def attempt() -> bool:
            self.wire.run(ask)
            return len(results) == len(ids)

        if ids and not retry_until(deadline, attempt, bool) and not each:
            missing = [name for name in ids if name not in results]
            raise no_answer(
                "the transaction coordinator",
                missing,
                deadline,
                self.wire.silence,
                self._without & {*missing},
            )
        return results

    async def _find_coordinators(
        self, ids: Sequence[str], deadline: Deadline
    ) -> dict[int, list[str]]:
        """The ids by their coordinators, without those whose coordinator is not known yet."""
        unknown = [name for name in ids if self.wire.get_coordinator(name) is None]
        if unknown:
            response = await self.wire.ask(
                self.wire.find_coordinators_request(unknown), None, deadline
            )
            for row in response.coordinators if response else []:
                if self._classify("FindCoordinator", row.key, row.error_code):
                    self.wire.remember_coordinator(row)
        grouped: dict[int, list[str]] = {}
        for name in ids:
            node = self.wire.get_coordinator(name)
            if node is not None:
                grouped.setdefault(node, []).append(name)
        return grouped

    def _classify(self, request: str, name: str, code: int) -> Answer | None:
        """DONE or REFUSED; None: the request has to be repeated.

        Raises:
            ClusterError: a permission is missing, or the code is not listed.
        """
        answer = classify_control_answer(code)
        if lacks_coordinator(code):
            self._without.add(name)
        else:
            self._without.discard(name)
        if answer is Answer.REDISCOVER:
            self.wire.forget_coordinator(name)
        if answer in (Answer.REDISCOVER, Answer.RETRY):
            return None
        if answer is Answer.DENIED:
            needs = self._permissions
            if request in _LOOKS and not needs.of_query:
                raise permission_error("Transactions cannot be seen", [needs.look], of_query=False)
            raise permission_error(f"{request} for {name} is refused", [needs.transactions])
        if answer is Answer.STOP:
            raise ClusterError(
                f"{request} for {name} failed: {kafka_errors.for_code(code).__name__}.",
                remedy="Look at the broker's log for the cause, then start the query again.",
                data={"error_code": code},
            )
        return answer
