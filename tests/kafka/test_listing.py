"""A list of transactions is whole, or there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import silence
from eos_sink.kafka.leaders import Leaders
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka_config.acls import Permissions

DENIED = 53


class Brokers:
    """Two brokers, with one answer each; None: it is silent."""

    silence = silence()

    def __init__(self, *codes: int | None) -> None:
        self._codes = codes

    def run(self, step: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> Any:
        return asyncio.run(step(*given))

    def get_coordinator(self, _: str) -> int:
        return 1

    def get_lane(self, node: int, _: int) -> int:
        return node

    def send(self, request: Any, *_: Any) -> Any:
        return request

    async def gather(
        self, requests: Mapping[tuple[str, ...], Any], _: Deadline
    ) -> dict[tuple[str, ...], Any]:
        """What a coordinator says of ids that may not be described."""
        return {
            asked: SimpleNamespace(
                transaction_states=[
                    SimpleNamespace(transactional_id=name, error_code=DENIED) for name in asked
                ]
            )
            for asked in requests
        }

    async def list_brokers(self, _: Deadline) -> list[int]:
        return [1, 2]

    async def ask_each(self, requests: Mapping[int, Any], _: Deadline) -> dict[int, Any]:
        rows = [SimpleNamespace(transactional_id="id")]
        return {
            node: None
            if code is None
            else SimpleNamespace(error_code=code, transaction_states=rows)
            for node, code in zip(requests, self._codes, strict=True)
        }


def control(*codes: int | None) -> KafkaPythonControl:
    made = object.__new__(KafkaPythonControl)
    made.wire = Brokers(*codes)  # type: ignore[assignment]
    made._leaders = Leaders(made.wire)
    made._permissions, made._without = Permissions("id-", "log"), set()
    return made


def test_each_broker_has_answered() -> None:
    assert len(control(0, 0)._list_rows(Deadline(5))) == 2


def test_a_silent_broker_may_have_more() -> None:
    with pytest.raises(OutcomeUnknownError):
        control(0, None)._list_rows(Deadline(0.2))


def test_one_that_refuses_is_an_error() -> None:
    with pytest.raises(ClusterError, match="lacks"):
        control(0, DENIED)._list_rows(Deadline(5))


def test_a_list_that_leaves_out_in_silence_what_may_not_be_described_is_none() -> None:
    with pytest.raises(ClusterError, match="DescribeTransactions for id-"):
        control(0, 0).list_transactions("id-", Deadline(5))


@pytest.mark.parametrize(
    ("request_name", "operation"),
    [("FindCoordinator", "Describe"), ("DescribeTransactions", "Describe"), ("EndTxn", "Write")],
)
def test_a_command_is_told_to_need_no_more_than_its_request(
    request_name: str, operation: str
) -> None:
    command = control()
    command._permissions = Permissions("id-", "log", of_query=False)
    with pytest.raises(ClusterError) as caught:
        command._classify(request_name, "id-1", DENIED)
    needed = f"{operation} on every transactional id that starts with id-"
    assert caught.value.data["missing"] == [needed]
