"""`format("kafka-eos")` with fault points: the real Kafka clients behind gates.

The points are at the adapter seam, the calls of `kafka.interfaces`: no protocol code knows them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any

from pyspark import TaskContext

from eos_sink.identity import QueryNames
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Sizes, TransactionControl
from eos_sink.protocol.values import EndOutcome, Transaction, TransactionState, TransactionStatus
from eos_sink.rows.rows import Rows
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing.faults import ROLE_VARIABLE, Gate

_ROLES = {
    "pyspark.sql.worker.write_into_data_source": "planner",
    "pyspark.sql.worker.python_streaming_sink_runner": "committer",
    "pyspark.sql.worker.commit_data_source_write": "committer",
}
_IN_DRIVER = cycle(("planner", "committer"))
_DELIVERED_WITHIN_S = 30.0


class _Gated:
    """A client whose named calls pass the gate."""

    def __init__(self, client: Any, gate: Gate, points: dict[str, str]) -> None:
        self._client, self._gate, self._points = client, gate, points

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        point = self._points.get(name)
        return call if point is None else _gated(call, self._gate, point)


def _gated(call: Callable[..., Any], gate: Gate, point: str) -> Callable[..., Any]:
    def gated(*arguments: Any, **named: Any) -> Any:
        gate.reach(point, "before")
        result = call(*arguments, **named)
        gate.reach(point, "after")
        return result

    return gated


class _GatedProducer(_Gated):
    """A producer, with a point after the first row of a transaction."""

    def begin(self) -> None:
        self._produced = self._interrupted = False
        self._client.begin()

    def produce_rows(
        self, rows: Rows, on_offset: Callable[[str, int, int], None] | None = None
    ) -> None:
        if not self._produced:
            self._produced = True
            self._client.produce_rows(rows.slice(0, 1), on_offset)
            rows, on_offset = rows.slice(1), None
        if not self._interrupted and len(rows):
            self._interrupted = True
            if self._gate.is_armed("produce", "amid"):
                self._client.flush(Deadline(_DELIVERED_WITHIN_S))
            self._gate.reach("produce", "amid")
        if len(rows):
            self._client.produce_rows(rows, on_offset)


class _GatedLogProducer(_GatedProducer):
    """The driver's producer. All that it has produced is on the brokers before it commits."""

    def commit(self, deadline: Deadline) -> None:
        if self._gate.is_armed("write", "before"):
            self._client.flush(deadline)
        _gated(self._client.commit, self._gate, "write")(deadline)


class _GatedControl(_Gated):
    """Transaction control, with a point between the first EndTxn and the others."""

    def describe(
        self, ids: Iterable[str], deadline: Deadline, *, anew: bool = False
    ) -> dict[str, TransactionState]:
        """A vote asks for the tasks' ids, too. Whoever asks for one id only looks."""
        asked, call = list(ids), self._client.describe
        gated = call if len(asked) == 1 else _gated(call, self._gate, "describe")
        found: dict[str, TransactionState] = gated(asked, deadline, anew=anew)
        return found

    def list_transactions(
        self, prefix: str, deadline: Deadline, *statuses: TransactionStatus
    ) -> list[TransactionState]:
        """A list of all that was ever committed is for a query without a record."""
        call, is_open = self._client.list_transactions, (TransactionStatus.ONGOING,)
        gated = _gated(call, self._gate, "list") if statuses == is_open else call
        found: list[TransactionState] = gated(prefix, deadline, *statuses)
        return found

    def end(
        self, transactions: Iterable[Transaction], commit: bool, deadline: Deadline
    ) -> dict[Transaction, EndOutcome]:
        ordered = list(transactions)
        if not ordered:
            return {}
        control: TransactionControl = self._client
        call = "settle" if commit else "abort"
        self._gate.reach(call, "before")
        outcomes = control.end(ordered[:1], commit=commit, deadline=deadline)
        self._gate.reach(call, "amid")
        outcomes.update(control.end(ordered[1:], commit=commit, deadline=deadline))
        self._gate.reach(call, "after")
        return outcomes


class FaultyKafka:
    """The real clients behind gates. Implements `eos_sink.kafka.interfaces.Kafka`."""

    def __init__(self, kafka: Kafka, gate: Gate) -> None:
        self._kafka, self._gate = kafka, gate
        self.log_topic = kafka.log_topic

    def producer(self, transactional_id: str, timeout_ms: int, sizes: Sizes | None = None) -> Any:
        points = {"init": "init", "send_offset": "offset", "flush": "flush"}
        points |= {"identity": "prepared", "abort": "abort"}
        client = self._kafka.producer(transactional_id, timeout_ms, sizes)
        return _GatedProducer(client, self._gate, points)

    def log_producer(self, transactional_id: str, timeout_ms: int) -> Any:
        client = self._kafka.log_producer(transactional_id, timeout_ms)
        return _GatedLogProducer(client, self._gate, {"init": "open"})

    def member(self, group: str, instance_id: str, session_ms: int) -> Any:
        points = {"join": "join", "wait_stable": "stable"}
        return _Gated(self._kafka.member(group, instance_id, session_ms), self._gate, points)

    def control(self) -> Any:
        return _GatedControl(self._kafka.control(), self._gate, {"check_timeout": "check"})

    def read_back(self) -> Any:
        return _Gated(self._kafka.read_back(), self._gate, {"visibility": "witness"})

    def log_reader(self, names: QueryNames, deadline: Deadline) -> Any:
        return _Gated(self._kafka.log_reader(names, deadline), self._gate, {"latest": "read"})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


def faulty_connect(options: SinkOptions) -> Any:
    """Real clients with fault points. Spark's command line says what a process is for."""
    role = os.environ.get(ROLE_VARIABLE) or _ROLES.get(sys.argv[-1])
    if role is None:
        # The user's own driver has a planner and a committer of each query, made in this order.
        role = next(_IN_DRIVER) if TaskContext.get() is None else "task"
    gate = Gate(role)
    gate.reach("connect", "before")
    return FaultyKafka(ConfluentKafka(options.cluster, options.step_timeout), gate)
