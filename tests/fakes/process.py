"""Where faults enter: each port call of a process passes a gate before and after its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Moment(Enum):
    BEFORE = auto()
    AFTER = auto()


class Killed(BaseException):
    """The process is gone (SIGKILL): nothing it would do in an `except` or `finally` happens."""


Hook = Callable[[str, Moment], None]
"""Called around each port call with its name. It may raise `Killed` to end the process there,
raise an error of the port (after the effect: a lost answer), or run another process meanwhile."""


class Process:
    """One operating system process: its hook, and whether it still lives."""

    def __init__(self, hook: Hook | None = None) -> None:
        self.hook = hook
        self.alive = True
        self.on_death: list[Callable[[], None]] = []

    def kill(self) -> None:
        """Its producers leave their transactions open, its members send no more heartbeats."""
        self.alive = False
        for farewell in self.on_death:
            farewell()

    def pass_gate(self, name: str, moment: Moment) -> None:
        if self.hook is not None and self.alive:
            try:
                self.hook(name, moment)
            except Killed:
                self.kill()
                raise
        if not self.alive:
            raise Killed(name)


@dataclass
class At:
    """Does something once, at a port call of a process."""

    process: Process
    call: str
    moment: Moment
    deed: Callable[[], object]

    def __post_init__(self) -> None:
        self.process.hook = self._hook

    def _hook(self, name: str, moment: Moment) -> None:
        if (name, moment) == (self.call, self.moment):
            self.process.hook = None
            self.deed()


class InProcess(Protocol):
    """A client: the process that it belongs to, and the first half of its port calls' names."""

    process: Process
    role: str


S = TypeVar("S", bound=InProcess)


def port(name: str) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Mark a method as a port call; hooks know it as `role.name`."""

    def decorate(call: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(call)
        def gated(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            full = f"{self.role}.{name}"
            self.process.pass_gate(full, Moment.BEFORE)
            result = call(self, *args, **kwargs)
            self.process.pass_gate(full, Moment.AFTER)
            return result

        return gated

    return decorate
