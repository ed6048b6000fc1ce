"""The planner's membership in the query's consumer group, which makes its plans current.

Kafka refuses offsets under the metadata of any older member (KIP-447). The membership serves a plan
until the session has ended, even if Spark has ended the planner's process before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import GroupMember, Kafka
from eos_sink.protocol.model import LogEntry, PlanToken, Run
from eos_sink.protocol.rules import group_session_ms, longest_session_ms
from eos_sink.protocol.values import MemberState
from eos_sink.sink_options import SinkOptions


class DriverSession:
    """One planner's membership, and the tokens of its plans."""

    def __init__(
        self, kafka: Kafka, options: SinkOptions, run: Run, clock: Callable[[], float]
    ) -> None:
        self.run = run
        self._clock = clock
        self.session_ms = 0
        self._kafka = kafka
        self._options = options
        self._member: GroupMember | None = None
        self._metadata = b""

    @property
    def state(self) -> MemberState | None:
        """Return the member's state, or None before joining."""
        return None if self._member is None else self._member.state()

    def join(self, deadline: Deadline) -> GroupMember:
        """Join for the longest session that the brokers grant, which is asked for only once."""
        timeout_ms = self._options.transaction_timeout_ms
        longest_ms = self.session_ms
        if not longest_ms:
            longest_ms = longest_session_ms(timeout_ms, self._kafka.longest_session(deadline))
        try:
            return self._join_for(longest_ms, deadline)
        except ConfigurationError:
            # If they refuse the shortest session too, the error has the remedy.
            self.close()
            return self._join_for(group_session_ms(timeout_ms), deadline)

    def token(self, entry: LogEntry) -> PlanToken:
        """Return the token that makes a plan from this record current."""
        return PlanToken(
            self._options.names,
            entry.seq,
            entry.position,
            self._metadata,
            self.run,
            self.session_ms,
            planned_s=self._clock(),
            planned_ms=int(time.time() * 1000),
        )

    def close(self) -> None:
        """Leave no member behind that would go on with its heartbeats."""
        if self._member is not None:
            self._member.close()
        self._member = None

    def _join_for(self, session_ms: int, deadline: Deadline) -> GroupMember:
        names = self._options.names
        self._member = self._kafka.member(names.group, names.driver, session_ms)
        self._metadata = self._member.join(deadline)
        self.session_ms = session_ms
        return self._member
