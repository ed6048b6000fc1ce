"""The users of `tests.protocol.jobs`, who carry out the action of each error; and the verdict."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eos_sink.errors import Action, EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops import RefusedChoice
from eos_sink.ops.resolve import Choice, apply_choice, gather_evidence, write_choice
from eos_sink.protocol.model import Numbering
from tests.fakes.admin import FakeAdmin
from tests.fakes.process import Killed
from tests.protocol.jobs import Plot, Scene, Session

MOST_TRIES = 20
PROCESS_DIED = "a process died"
NOTHING: Sequence[Sequence[bytes]] = ((),)
Parts = Sequence[Sequence[bytes]]
Pair = tuple[str, str, str]
"""Class of the error, kind of the write, action."""


class Stuck(Exception):
    """Obeying leads to no end."""


@dataclass
class User:
    """A user with a session and some writes.

    Attributes:
        known: the rows of every single write of all users, by its name.
        pairs: the errors met by all users.
    """

    name: str
    kind: Numbering
    scene: Scene
    writes: list[Parts]
    known: dict[str, Parts]
    pairs: Counter[Pair]
    busy: bool = False

    def __post_init__(self) -> None:
        self._session = Session(self.scene)
        self._number = self._tries = 0

    def go_on(self) -> None:
        """Carry the next write through."""
        self.busy = True
        try:
            self._carry_through(self.kind, self.writes.pop(0))
        finally:
            self.busy = False
        self._number += 1

    def finish(self) -> None:
        """A write without rows finishes what an earlier one has left."""
        self._carry_through(Numbering.ONCE, NOTHING)

    def _carry_through(self, kind: Numbering, parts: Parts) -> None:
        """Write, and do what each error says, until the rows are visible or left to the next."""
        while True:
            error = self._write(kind, parts)
            if error is None:
                return
            action = error.action if isinstance(error, EosSinkError) else Action.LOOK
            self.pairs[_name(error), kind.name if any(parts) else "EMPTY", action.value] += 1
            self.scene.heal()
            if action is Action.RESOLVE:
                self._resolve(error)
            elif not any(parts) or (kind is Numbering.VERSION and action is Action.LOOK):
                continue
            elif action is Action.LEAVE:
                return
            elif action is Action.LOOK:
                parts = self._look(error, parts)
                if not any(parts):
                    return

    def _write(self, kind: Numbering, parts: Parts) -> BaseException | None:
        self._tries += 1
        if self._tries > MOST_TRIES:
            raise Stuck(f"{self.name} has written {MOST_TRIES} times")
        name = self.name
        if kind is Numbering.ONCE:
            name = f"{self.name}-{self._tries}"
            self.known[name] = parts
        try:
            self._session.write(kind, name, self._number, parts)
        except (EosSinkError, Killed) as error:
            return error
        return None

    def _look(self, error: BaseException, parts: Parts) -> Parts:
        """The rows that are not visible, when nothing is open that could make them visible."""
        if isinstance(error, EosSinkError) and error.data.get("stream"):
            self._acknowledge(error.data["stream"])
        self.finish()
        return self._unseen(parts)

    def _resolve(self, error: BaseException) -> None:
        """Run the printed command. Then write a former write's rows, unless they are visible."""
        assert isinstance(error, EosSinkError)
        former = error.data.get("former")
        if former is None:
            raise Stuck(f"nothing to choose: {error!r}") from error
        self._acknowledge(former)
        lost = self._unseen(self.known[former.partition(":")[2]])
        if any(lost):
            self._carry_through(Numbering.ONCE, lost)

    def _acknowledge(self, stream: str) -> None:
        options, admin = self.scene.world.options, FakeAdmin(self.scene.world.cluster)
        evidence = gather_evidence(admin, options, 1000, Deadline(30))
        # It may have been done meanwhile.
        with contextlib.suppress(RefusedChoice):
            chosen, others = apply_choice(evidence, Choice.ACCEPT, (), stream)
            write_choice(admin.kafka, options, evidence, chosen, Deadline(30), others)

    def _unseen(self, parts: Parts) -> Parts:
        seen = set(self.scene.world.visible())
        return [[row for row in rows if row not in seen] for rows in parts]


@dataclass
class JobStory:
    """A plot, played until each user believes that all is done."""

    plot: Plot
    pairs: Counter[Pair] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def play(self) -> JobStory:
        self.scene = Scene(self.plot)
        known: dict[str, Parts] = {}
        self._users = [
            User(f"user{n}", kind, self.scene, list(_rows(n, self.plot.writes)), known, self.pairs)
            for n, kind in enumerate(self.plot.kinds)
        ]
        self.scene.rival = self._rival
        try:
            while any(user.writes for user in self._users):
                for user in self._users:
                    if user.writes:
                        user.go_on()
            self.scene.calm()
            self._users[0].finish()
        except (Stuck, EosSinkError) as error:
            self.violations.append(repr(error))
        else:
            self._judge()
        return self

    def _rival(self) -> None:
        free = [user for user in self._users if user.writes and not user.busy]
        if free:
            free[0].go_on()

    def _judge(self) -> None:
        """Each row of each write is visible once."""
        seen = Counter(self.scene.world.visible())
        expected = [
            row
            for n in range(len(self._users))
            for parts in _rows(n, self.plot.writes)
            for rows in parts
            for row in rows
        ]
        wrong = {row: seen[row] for row in expected if seen[row] != 1}
        if wrong:
            self.violations.append(f"rows and how often they are visible: {wrong}")


def _name(error: BaseException) -> str:
    return type(error).__name__ if isinstance(error, EosSinkError) else PROCESS_DIED


def _rows(user: int, writes: int) -> Iterator[Parts]:
    for number in range(writes):
        row = f"{user}.{number}"
        yield [[f"{row}a".encode(), f"{row}b".encode().ljust(100)], [f"{row}c".encode()]]
