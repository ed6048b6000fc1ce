"""Transactions ended, listed and described from outside their producers, with kafka-python.

Requests to one coordinator go side by side over several connections; one deadline spans all
retries. How an answer is judged stands in `eos_sink.protocol.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.transactions import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.producer.transaction import EndTxnRequest, InitProducerIdRequest

from eos_sink.errors import ClusterError, ConfigurationError, EosSinkError, OutcomeUnknownError
from eos_sink.kafka.calls import retry_until
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import Answer, classify_control_answer
from eos_sink.kafka.interfaces import EndOutcome, Transaction, TransactionState, TransactionStatus
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, permission_error
from eos_sink.kafka_config.broker_versions import VERIFICATION, check_broker, check_verification

R = TypeVar("R")

# Above version 4 EndTxn bumps the epoch (KIP-890): what a decision names would no longer be what
# the coordinator describes.
_END_TXN_VERSION = 4
_INVALID_TRANSACTION_TIMEOUT = 50
# A broker answers the requests of one connection one after the other, and each EndTxn waits for the
# copies of its coordinator's log: 200 on three brokers took 1.2 s over one connection to each, 0.55
# over 4, 0.24 over 16 and no less over 32; the brokers' own CPU fell from 1.5 s to 0.6.
_LANES = 16
_PROBE = "permission"
_BROKER = 4  # ConfigResource.Type


class KafkaPythonControl:
    """Implements `eos_sink.kafka.interfaces.TransactionControl`."""

    def __init__(self, settings: dict[str, object], needs: Acl, deadline: Deadline) -> None:
        self._wire = Wire(settings, deadline)
        self._needs = needs

    @property
    def wire(self) -> Wire:
        return self._wire

    def check_brokers(self, deadline: Deadline) -> None:
        for node, versions in self._of_all("ApiVersions", _api_versions, deadline).items():
            check_broker(str(node), {api.api_key: api.max_version for api in versions.api_keys})
        asked = self._of_all("DescribeConfigs", _verification, deadline, _unless_denied)
        for node, answer in asked.items():
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

        def read(_: list[str], response: Any) -> dict[str, int]:
            return {transactional_id: response.error_code}

        def judge(transactional_id: str, code: int) -> int | None:
            if code == _INVALID_TRANSACTION_TIMEOUT:
                raise ConfigurationError(
                    f"Option eos.transaction.timeout.ms is {timeout_ms}, above the brokers' "
                    "transaction.max.timeout.ms.",
                    remedy="Lower the option or raise transaction.max.timeout.ms on the brokers. "
                    "Nothing was written.",
                )
            return code if self._final(transactional_id, code, "InitProducerId") else None

        self._each([transactional_id], request, read, judge, deadline, batched=True)

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        outcomes: dict[Transaction, EndOutcome] = {}
        remaining = list(dict.fromkeys(transactions))
        while remaining:
            # An id may come twice, under the epochs of two attempts: one after the other.
            round_ = {t.transactional_id: t for t in reversed(remaining)}
            outcomes.update(self._end(round_, commit, deadline))
            remaining = [t for t in remaining if t not in round_.values()]
        return outcomes

    def _end(
        self, by_id: dict[str, Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:

        def request(ids: list[str]) -> Any:
            transaction = by_id[ids[0]]
            return EndTxnRequest(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                committed=commit,
                max_version=_END_TXN_VERSION,
            )

        def read(ids: list[str], response: Any) -> dict[str, int]:
            return {ids[0]: response.error_code}

        def judge(transactional_id: str, code: int) -> EndOutcome | None:
            answer = self._final(transactional_id, code, "EndTxn")
            if answer is None:
                return None
            return EndOutcome.DONE if answer is Answer.DONE else EndOutcome.REFUSED

        outcomes, _ = self._attempt(list(by_id), request, read, judge, deadline, batched=False)
        return {by_id[name]: outcome for name, outcome in outcomes.items()}

    def describe(self, ids: Iterable[str], deadline: Deadline) -> dict[str, TransactionState]:
        def request(names: list[str]) -> Any:
            return DescribeTransactionsRequest(transactional_ids=names)

        def read(_: list[str], response: Any) -> dict[str, Any]:
            return {row.transactional_id: row for row in response.transaction_states}

        def judge(name: str, row: Any) -> TransactionState | None:
            answer = self._final(name, row.error_code, "DescribeTransactions")
            if answer is None:
                return None
            if answer is Answer.REFUSED:
                return TransactionState(
                    Transaction(name, -1, -1), TransactionStatus.MISSING, -1, -1
                )
            return TransactionState(
                Transaction(name, row.producer_id, row.producer_epoch),
                TransactionStatus(row.transaction_state),
                row.transaction_start_time_ms,
                row.transaction_timeout_ms,
            )

        return self._each(list(ids), request, read, judge, deadline, batched=True)

    def list_open(self, prefix: str, deadline: Deadline) -> list[str]:
        return self._list(prefix, [TransactionStatus.ONGOING], deadline)

    def list_committed(self, prefix: str, deadline: Deadline) -> list[str]:
        committed = [TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT]
        return self._list(prefix, committed, deadline)

    def list_all(self, prefix: str, deadline: Deadline) -> list[str]:
        """Every transactional id that starts with `prefix`, cluster-wide."""
        return self._list(prefix, [], deadline)

    def _list(self, prefix: str, states: list[TransactionStatus], deadline: Deadline) -> list[str]:
        """Each broker answers for the coordinators that it hosts, so all of them have to."""

        def request(_: int) -> Any:
            return ListTransactionsRequest(
                state_filters=[state.value for state in states],
                producer_id_filters=[],
                max_version=0,
            )

        answers = self._of_all("ListTransactions", request, deadline)
        found = [row.transactional_id for a in answers.values() for row in a.transaction_states]
        # Kafka leaves out, in silence, what may not be described; asked for by name, it says so.
        self.describe([f"{prefix}{_PROBE}"], deadline)
        return [name for name in found if name.startswith(prefix)]

    def _of_all(
        self,
        name: str,
        request: Callable[[int], Any],
        deadline: Deadline,
        code: Callable[[Any], int] = lambda answer: answer.error_code,
    ) -> dict[int, Any]:
        """The answer of every live broker, by its id; `code` is its error code."""

        async def ask() -> dict[int, Any] | None:
            brokers = await self._wire.brokers(deadline)
            if brokers is None:
                return None
            requests = {node: self._wire.send(request(node), node, deadline) for node in brokers}
            answers = await self._wire.gather(requests, deadline)
            for node, answer in answers.items():
                if not answer or not self._final(f"broker {node}", code(answer), name):
                    return None
            return answers

        answers = retry_until(
            deadline, lambda: self._wire.run(ask), lambda found: found is not None
        )
        if answers is None:
            raise _unanswered(name, ["all brokers"], deadline)
        return answers

    def close(self) -> None:
        self._wire.close()

    def _each(  # noqa: PLR0913
        self,
        ids: list[str],
        request: Callable[[list[str]], Any],
        read: Callable[[list[str], Any], dict[str, Any]],
        judge: Callable[[str, Any], R | None],
        deadline: Deadline,
        *,
        batched: bool,
    ) -> dict[str, R]:
        results, pending = self._attempt(ids, request, read, judge, deadline, batched=batched)
        if pending:
            raise _unanswered("the transaction coordinator", pending, deadline)
        return results

    def _attempt(  # noqa: PLR0913
        self,
        ids: list[str],
        request: Callable[[list[str]], Any],
        read: Callable[[list[str], Any], dict[str, Any]],
        judge: Callable[[str, Any], R | None],
        deadline: Deadline,
        *,
        batched: bool,
    ) -> tuple[dict[str, R], list[str]]:
        """Ask the coordinator of each id until `judge` has a result for it or time is up.

        `request` is made for all ids of a coordinator (`batched`) or for each id alone.
        """
        results: dict[str, R] = {}

        async def round_() -> None:
            pending = [name for name in ids if name not in results]
            await self._find_coordinators(pending, deadline)
            requests: dict[tuple[str, ...], Any] = {}
            for node, names in self._by_coordinator(pending).items():
                groups = [names] if batched else [[name] for name in names]
                for number, group in enumerate(groups):
                    lane = self._wire.lane(node, number % _LANES)
                    requests[tuple(group)] = self._wire.send(request(group), lane, deadline)
            for asked, response in (await self._wire.gather(requests, deadline)).items():
                if response is None:
                    for name in asked:
                        self._wire.forget_coordinator(name)
                    continue
                for name, row in read(list(asked), response).items():
                    result = judge(name, row)
                    if result is not None:
                        results[name] = result

        def attempt() -> bool:
            self._wire.run(round_)
            return len(results) == len(ids)

        if ids:
            retry_until(deadline, attempt, bool)
        return results, [name for name in ids if name not in results]

    def _by_coordinator(self, ids: list[str]) -> dict[int, list[str]]:
        grouped: dict[int, list[str]] = {}
        for name in ids:
            node = self._wire.known_coordinator(name)
            if node is not None:
                grouped.setdefault(node, []).append(name)
        return grouped

    async def _find_coordinators(self, ids: list[str], deadline: Deadline) -> None:
        unknown = [name for name in ids if self._wire.known_coordinator(name) is None]
        if not unknown:
            return
        future = self._wire.send(self._wire.find_coordinators_request(unknown), None, deadline)
        response = (await self._wire.gather({"": future}, deadline))[""]
        for row in response.coordinators if response else []:
            if self._final(row.key, row.error_code, "FindCoordinator"):
                self._wire.remember_coordinator(row)

    def _final(self, name: str, code: int, request: str) -> Answer | None:
        """The answer behind an error code, or None if the request has to be repeated."""
        answer = classify_control_answer(code)
        if answer is Answer.REDISCOVER:
            self._wire.forget_coordinator(name)
        if answer in (Answer.REDISCOVER, Answer.RETRY):
            return None
        if answer is Answer.DENIED:
            raise permission_error(f"{request} for {name} is refused", [self._needs])
        if answer is Answer.STOP:
            raise ClusterError(
                f"{request} for {name} failed: {kafka_errors.for_code(code).__name__}.",
                remedy="Look at the broker's log for the cause, then start the query again.",
                data={"error_code": code},
            )
        return answer


def _api_versions(_: int) -> Any:
    return ApiVersionsRequest(client_software_name="eos-sink", client_software_version="1")


def _verification(node: int) -> Any:
    asked = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(node), configuration_keys=[VERIFICATION]
    )
    return DescribeConfigsRequest(resources=[asked], max_version=4)


def _unless_denied(answer: Any) -> int:
    """Without permission there is no value, which is no error."""
    code: int = answer.results[0].error_code
    return 0 if classify_control_answer(code) is Answer.DENIED else code


def _unanswered(what: str, names: list[str], deadline: Deadline) -> EosSinkError:
    return OutcomeUnknownError(
        f"No answer from {what} within {deadline.seconds:.0f} s for {', '.join(sorted(names)[:5])}"
        f"{' ...' if len(names) > 5 else ''}.",
        remedy="Check that the brokers and the topic __transaction_state are available, then start "
        "the query again; what was decided is finished first.",
    )
