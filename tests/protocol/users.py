"""Users of jobs and queries under one identity, who do as errors say; and the verdict.

After an error the user carries out its `Action`, so at the end every row of every write has to be
visible once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from eos_sink.errors import Action, ClusterError, ConfigurationError, EosSinkError
from eos_sink.ops import RefusedChoice
from eos_sink.ops.evidence import BatchEvidence
from eos_sink.ops.resolve import Choice
from eos_sink.protocol.model import BatchId, Decision, Numbering
from tests.ops.operator import Operator
from tests.protocol.checkpoint import AnotherRun, Checkpoint, Progress
from tests.protocol.plot import LARGEST, Plot, SharedScene
from tests.protocol.scene import Fault, time_of
from tests.protocol.spark import FAILURES, Session

MOST_TRIES = 20
LOG_HELD_S = 2.0
OF_ROWS = {Fault.NO_LEADER, Fault.TOO_FEW_REPLICAS}
PROCESS_DIED = "a process died"
LAST = b"last"
FRAME = b"another frame"
USER = "user"
Rows = list[bytes]
_DRAWN = itertools.count(1)
Pair = tuple[str, str, str]
"""Class of the error, kind of the write, action."""
QUERIES = (Numbering.STREAM, Numbering.FOREACH)


class Stuck(Exception):
    """Obeying leads to no end."""


class Later(Exception):
    """Another user has to act first, within one of whose calls this one writes."""


@dataclass
class Known:
    """What all users together know and have met.

    Attributes:
        written: the rows of every write and batch.
        pairs: the errors.
        reads: how many more checkpoints than one have read a row, or operators let it be repeated.
        given_up: by an operator.
    """

    pairs: Counter[Pair]
    written: dict[tuple[str, int], Rows] = field(default_factory=dict)
    reads: Counter[bytes] = field(default_factory=Counter)
    given_up: set[bytes] = field(default_factory=set)


@dataclass
class User:
    """A user with a session of Spark and some writes."""

    name: str
    kind: Numbering
    scene: SharedScene
    writes: list[Rows]
    known: Known

    def __post_init__(self) -> None:
        self.done = 0
        self.busy = False
        self._session = Session(self.scene)
        self._tries = 0
        self._interrupted = False

    @property
    def has_work(self) -> bool:
        return self.done < len(self.writes)

    def go_on(self) -> None:
        """Carry the next write through."""
        self.busy = True
        try:
            self._carry_on()
        except Later:
            if not self.scene.running:
                raise
        finally:
            self.busy = False

    def finish(self) -> None:
        """No trouble comes any more: one more write finishes what was left."""
        raise NotImplementedError

    def _carry_on(self) -> None:
        raise NotImplementedError

    def _try(self, batch: BatchId, rows: Rows) -> BaseException | None:
        """Write; the error. When the user has read it the brokers answer again."""
        self._tries += 1
        if self._tries > MOST_TRIES * len(self.writes):
            raise Stuck(f"{self.name} has written {self._tries} times")
        self.known.written[batch.stream, batch.batch] = rows
        self.scene.running += 1
        rivals = self.scene.rivals
        try:
            parts, spark_run = self.scene.split(rows), f"{self.name} {self._tries}"
            self._session.write(batch, parts, spark_run)
            if self.scene.second_frame and batch.numbering is Numbering.FOREACH:
                self._session.write(batch, [[FRAME]], spark_run)
        except FAILURES as error:
            action = error.action.value if isinstance(error, EosSinkError) else "-"
            kind = batch.numbering.name if rows else "EMPTY"
            self.known.pairs[_name(error), kind, action] += 1
            self.scene.heal()
            return error
        finally:
            self.scene.running -= 1
            self._interrupted = self.scene.rivals != rivals
        return None

    def _fix(self, error: EosSinkError) -> None:
        """Change what the error names; the cluster is repaired by now."""
        if self._prefers(error):
            return
        if "decided_partitions" in error.data:
            self.scene.parts = error.data["decided_partitions"]
        elif error.data.get("kind") == "message rejected":
            self.scene.reject(True)
        elif "once with topic=" in error.remedy:
            self.scene.reject("eos.dead.letter.topic: none" not in error.remedy)
        elif isinstance(error, ConfigurationError):
            # The second frame gets an eos.id of its own.
            self.scene.second_frame = False
        elif not isinstance(error, ClusterError):
            raise Stuck(f"nothing to fix: {error!r}") from error

    def _resolve(self, error: EosSinkError) -> None:
        """Choose, or run the write again that the error names."""
        if self._prefers(error):
            return
        evidence = self._gather()
        decision = evidence.decision
        if decision is not None and evidence.view.doubtful:
            self._end_doubts(decision, evidence.view.doubtful)
        elif decision is not None and evidence.view.lost and decision.batch.numbering.is_of_write:
            rows = self.known.written[decision.batch.stream, decision.batch.batch]
            self._carry_through(decision.batch, rows)
        elif not self._interrupted:
            # Otherwise whoever wrote within the call has done it.
            raise (Later if self.scene.running else Stuck)(f"nothing to choose: {error!r}")

    def _prefers(self, error: EosSinkError) -> bool:
        """Give up the lost rows of a batch, or let all of it be written again, if the error offers
        that and the plot says so."""
        choice, decision = self.scene.plot.choice, self._gather().decision
        if choice is None or decision is None or f"--{choice.value}" not in error.remedy:
            return False
        rows = self.known.written[decision.batch.stream, decision.batch.batch]
        if choice is Choice.ACCEPT:
            self.known.given_up.update(rows)
        else:
            self.known.reads.update(rows)
        with contextlib.suppress(RefusedChoice):
            Operator(self.scene.world).chooses(choice)
        return True

    def _end_doubts(self, decision: Decision, doubtful: frozenset[int]) -> None:
        """Choose by what is visible."""
        rows = self.known.written[decision.batch.stream, decision.batch.batch]
        parts = self.scene.split(rows, decision.partitions)
        seen = self.scene.visible()
        lost = {number for number in doubtful if any(row not in seen for row in parts[number])}
        self._choose(Choice.VISIBLE, *(doubtful - lost))
        self._choose(Choice.LOST, *lost)

    def _carry_through(self, batch: BatchId, rows: Rows) -> None:
        """Write, and do what each error says, until the rows are visible."""
        is_named = batch.numbering is not Numbering.ONCE
        while True:
            self.scene.begin()
            error = self._try(batch, rows)
            if error is None:
                return
            if not isinstance(error, EosSinkError):
                is_named = True  # In the log of the driver.
                continue
            if error.action is Action.RESOLVE:
                self._resolve(error)
            elif error.action is Action.FIX:
                self._fix(error)
            elif error.action is not Action.RUN_AGAIN:
                raise Stuck(f"no write goes on: {error!r}") from error
            is_named = is_named or "write_id" in error.data
            if not is_named:
                batch = next_write()

    def _gather(self) -> BatchEvidence:
        return Operator(self.scene.world).looks()

    def _choose(self, choice: Choice, *partitions: int) -> None:
        # It may have been done meanwhile.
        with contextlib.suppress(RefusedChoice):
            if partitions:
                Operator(self.scene.world).chooses(choice, *partitions)


def next_write() -> BatchId:
    """A write without an option for its number draws a new one."""
    return BatchId.numbered_by(Numbering.ONCE, "", next(_DRAWN))


@dataclass
class Writer(User):
    """Runs `df.write`. Users take turns with the versions of one application."""

    def finish(self) -> None:
        self._carry_through(next_write(), [])

    def _carry_on(self) -> None:
        if self.kind is Numbering.ONCE:
            batch = next_write()
        else:
            number = self.done * len(self.scene.plot.kinds) + int(self.name.removeprefix(USER))
            batch = BatchId.numbered_by(Numbering.VERSION, "app", number)
        self._carry_through(batch, self.writes[self.done])
        self.done += 1


@dataclass
class Query(User):
    """Runs a query, whose batches are the writes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._checkpoints = [self._new_checkpoint(self.name, first=0)]
        self._others: list[Session] = []

    def restart(self) -> None:
        """Start the query in another session, which goes on with it."""
        self._others.append(self._session)
        self._session = Session(self.scene)
        self._carry_on()

    def finish(self) -> None:
        self.writes.append([LAST])
        self._carry_on()

    def _carry_on(self) -> None:
        number = self.done
        while self.done == number:
            if self.scene.begin():
                self._start_with_new_checkpoint(number)
            if self._run(self._checkpoints[-1]):
                # Another run may have gone on since.
                self.done = max(self.done, number + 1)

    def _start_with_new_checkpoint(self, number: int) -> None:
        """A new checkpoint reads again what the old one has not noted as done."""
        self._checkpoints.append(self._new_checkpoint(f"{self.name}-{self._tries}", number))
        self.known.reads.update(self.writes[number])

    def _new_checkpoint(self, name: str, first: int) -> Checkpoint:
        return Checkpoint(BatchId.numbered_by(self.kind, name, 0).stream, began={0: first})

    def _run(self, checkpoint: Checkpoint) -> bool:
        """Whether the batch has succeeded; else the error's action has been carried out."""
        progress = Progress(checkpoint)
        number = progress.before.get(0, 0)
        batch = progress.begin({0: number + 1})
        error = self._try(batch, self.writes[number])
        if error is None or batch.batch in checkpoint.commits:
            # Another run may have done it.
            with contextlib.suppress(AnotherRun):
                progress.commit()
            return True
        # Spark itself, or whoever starts it, starts a query again whose process has died.
        action = error.action if isinstance(error, EosSinkError) else Action.RUN_AGAIN
        if isinstance(error, EosSinkError) and action is Action.FIX:
            self._fix(error)
        elif isinstance(error, EosSinkError) and action is Action.RESOLVE:
            self._resolve(error)
        elif action is not Action.RUN_AGAIN:
            # The run that has taken over goes on.
            if action is not Action.LEAVE or not self._others:
                raise Stuck(f"no run goes on: {error!r}") from error
            self._session = self._others.pop()
        return False

    def _resolve(self, error: EosSinkError) -> None:
        try:
            super()._resolve(error)
        except (Stuck, Later):
            last, known = self._gather().decision, self._checkpoints[:-1]
            former = [each for each in known if last and each.stream == last.batch.stream]
            if not former:
                raise
            # What a former checkpoint has left is for that to finish.
            number = self.done
            while self.done == number and not self._run(former[-1]):
                pass


@dataclass
class JobStory:
    """A plot, played until each user believes that all is done."""

    plot: Plot
    pairs: Counter[Pair] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def met(self) -> Counter[str]:
        return Counter({" | ".join(pair): number for pair, number in self.pairs.items()})

    def play(self) -> JobStory:
        self.scene = SharedScene(self.plot)
        self._known = Known(self.pairs)
        self._users = [
            (Query if kind in QUERIES else Writer)(
                f"{USER}{n}", kind, self.scene, list(_rows(n, self.plot)), self._known
            )
            for n, kind in enumerate(self.plot.kinds)
        ]
        self.scene.rival = self._rival
        expected = [row for user in self._users for rows in user.writes for row in rows]
        try:
            with time_of(self.scene.world), contextlib.closing(self.scene):
                while any(user.has_work for user in self._users):
                    for user in self._users:
                        if user.has_work:
                            user.go_on()
                self.scene.calm()
                self._users[0].finish()
        except (Stuck, EosSinkError) as error:
            self.violations.append(repr(error))
        else:
            self._judge(expected)
        return self

    def _rival(self) -> None:
        query = self._users[0]
        if isinstance(query, Query) and query.busy and query.has_work:
            query.restart()
            return
        free = [user for user in self._users if user.has_work and not user.busy]
        if free:
            free[0].go_on()

    def _judge(self, expected: Rows) -> None:
        """Each row of each write is visible once; one that a new checkpoint has read again, at
        least once. No transaction was ended against the log. And as long as only partitions of
        rows are in trouble, the log keeps no other query waiting, and no batch is decided late."""
        seen, reads, given_up = self.scene.visible(), self._known.reads, self._known.given_up
        least = {row: 0 if row in given_up else 1 for row in expected}
        wrong = {
            row: seen[row] for row in expected if not least[row] <= seen[row] <= 1 + reads[row]
        }
        if wrong:
            self.violations.append(f"rows and how often they are visible: {wrong}")
        if seen[FRAME]:
            self.violations.append("a second frame under one identity is visible")
        self.violations += self.scene.world.judge.violations
        only_rows = {each.fault for each in self.plot.strikes} <= OF_ROWS
        if only_rows and self.scene.log_held_s > LOG_HELD_S:
            self.violations.append(f"the log was held up for {self.scene.log_held_s} s")
        if only_rows:
            self.violations += self.scene.world.judge.late


def _name(error: BaseException) -> str:
    return type(error).__name__ if isinstance(error, EosSinkError) else PROCESS_DIED


def _rows(user: int, plot: Plot) -> Iterator[Rows]:
    for number in range(plot.writes):
        row = f"{user}.{number}"
        rows = [f"{row}a".encode(), f"{row}b".encode().ljust(100), f"{row}c".encode()]
        yield [*rows, f"{row}d".encode().ljust(2 * LARGEST)] if plot.rejects else rows
