"""A list of transactions is whole, or there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from eos_sink.errors import ClusterError, OutcomeUnknownError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.kafka_config.acls import Permissions

DENIED = 53


class Brokers:
    """Two brokers, with one answer each; None: it is silent."""

    silence = ""

    def __init__(self, *codes: int | None) -> None:
        self._codes = codes

    def run(self, step: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> Any:
        return asyncio.run(step(*given))

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
    made._needs, made._without = Permissions("id-", "log").transactions, set()
    return made


def test_each_broker_has_answered() -> None:
    assert len(control(0, 0)._list_rows(Deadline(5))) == 2


def test_a_silent_broker_may_have_more() -> None:
    with pytest.raises(OutcomeUnknownError):
        control(0, None)._list_rows(Deadline(0.2))


def test_one_that_refuses_is_an_error() -> None:
    with pytest.raises(ClusterError, match="lacks"):
        control(0, DENIED)._list_rows(Deadline(5))
