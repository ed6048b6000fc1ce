"""A request that a link holds back, and that arrives late."""

from __future__ import annotations

from collections.abc import Callable

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_errors import NodeControlError
from eos_sink_lab.testing.request_frames import ANSWERED, ARMED, DELIVERED
from eos_sink_lab.testing.waiting import wait_until


class HeldRequest:
    """A request that a link holds, or will hold; as a context manager it is dropped at the end.

    The broker's side of its connection stays open until the request is answered or dropped, as on
    a network that breaks a connection at one end while data is still under way to the other one.

    Args:
        what: the request, in words.
        ask: tells the link to "tell", "deliver" or "drop", and returns the state.
    """

    def __init__(self, what: str, ask: Callable[[str], str]) -> None:
        self._what, self._ask = what, ask

    def __enter__(self) -> HeldRequest:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def __repr__(self) -> str:
        return f"<{self._what}: {self.state}>"

    @property
    def state(self) -> str:
        """It is armed (not there yet), held, delivered, answered, dropped, or broken: the broker
        has ended the connection, or the link was reset."""
        return self._ask("tell")

    def wait_held(self, deadline: Deadline) -> None:
        """Wait until a client has sent it, and its connection is broken.

        Raises:
            NotReadyError: none was sent until then.
        """
        wait_until(lambda: self.state != ARMED, deadline, f"{self._what} is sent and held")

    def deliver(self, deadline: Deadline) -> None:
        """Let it arrive now, and wait for the broker's answer, which goes nowhere.

        Raises:
            NodeControlError: it is not held, or no longer: the broker has ended its connection.
            NotReadyError: the broker has not answered until then.
        """
        if (state := self._ask("deliver")) not in (DELIVERED, ANSWERED):
            raise NodeControlError(f"{self._what} cannot be delivered: it is {state}.")
        wait_until(lambda: self.state != DELIVERED, deadline, f"{self._what} is answered")
        if (state := self.state) != ANSWERED:
            raise NodeControlError(f"{self._what} was not answered: it is {state}.")

    def drop(self) -> None:
        """Let it never arrive; look for it no longer. Without effect if it is answered."""
        self._ask("drop")
