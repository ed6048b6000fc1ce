"""Users of jobs and queries under one identity, who do as errors say; and the verdict.

After an error the user carries out its `Action`, so at the end every row of every write has to be
visible once.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from eos_sink.errors import Action, ClusterError, ConfigurationError, EosSinkError
from eos_sink.ops import RefusedChoice
from eos_sink.ops.resolve import Choice, QueryEvidence
from eos_sink.protocol.model import BatchId, Numbering
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
Rows = list[bytes]
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
        reads: how many more checkpoints than one have read a row.
    """

    pairs: Counter[Pair]
    written: dict[tuple[str, int], Rows] = field(default_factory=dict)
    reads: Counter[bytes] = field(default_factory=Counter)


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
        """Choose as the error says. Then write a single write's rows, unless they are visible."""
        former = error.data.get("former")
        if former is not None:
            self._choose(Choice.ACCEPT, stream=former)
            lost: Rows | None = self._unseen(self.known.written[former, 0])
        else:
            lost = self._end_doubts()
        if lost is None and self._interrupted:
            # Whoever wrote within the call has chosen.
            return
        if lost is None:
            raise (Later if self.scene.running else Stuck)(f"nothing to choose: {error!r}")
        if lost:
            name = f"{self.name}-{self._tries}-"
            writer = Writer(name, Numbering.ONCE, self.scene, [lost], self.known)
            while writer.has_work:
                writer.go_on()

    def _end_doubts(self) -> Rows | None:
        """Choose by what is visible. The rows that nothing writes again but the user; None: nothing
        is in doubt."""
        evidence = self._gather()
        if evidence.decision is None or not evidence.in_doubt:
            return None
        decision, rows = evidence.decision, self.known.written[_key(evidence.decision.batch)]
        parts = self.scene.split(rows, decision.partitions)
        doubtful = {each.entry.partition for each in evidence.in_doubt}
        lost = {number for number in doubtful if self._unseen(parts[number])}
        self._choose(Choice.VISIBLE, *(doubtful - lost))
        if decision.batch.numbering is not Numbering.ONCE:
            self._choose(Choice.LOST, *lost)
            return []
        if lost:
            self._choose(Choice.ACCEPT)
        return self._unseen(rows)

    def _gather(self) -> QueryEvidence:
        return Operator(self.scene.world).looks()

    def _choose(self, choice: Choice, *partitions: int, stream: str | None = None) -> None:
        if choice in (Choice.VISIBLE, Choice.LOST) and not partitions:
            return
        # It may have been done meanwhile.
        with contextlib.suppress(RefusedChoice):
            Operator(self.scene.world).chooses(choice, *partitions, stream=stream)

    def _unseen(self, rows: Rows) -> Rows:
        seen = self.scene.visible()
        return [row for row in rows if row not in seen]


@dataclass
class Writer(User):
    """Runs `df.write`."""

    def finish(self) -> None:
        self._carry_through(Numbering.ONCE, [])

    def _carry_on(self) -> None:
        self._carry_through(self.kind, self.writes[self.done])
        self.done += 1

    def _carry_through(self, kind: Numbering, rows: Rows) -> None:
        """Write, and do what each error says, until the rows are visible or left to the next."""
        while True:
            self.scene.begin()
            error = self._write(kind, rows)
            if error is None:
                return
            action = error.action if isinstance(error, EosSinkError) else Action.LOOK
            if isinstance(error, EosSinkError) and action is Action.RESOLVE:
                self._resolve(error)
            elif isinstance(error, EosSinkError) and action is Action.FIX:
                self._fix(error)
            elif not rows or (kind is Numbering.VERSION and action is Action.LOOK):
                continue
            elif action is Action.LEAVE:
                return
            elif action is Action.LOOK:
                rows = self.writes[self.done] = self._look(error, rows)
                if not rows:
                    return

    def _write(self, kind: Numbering, rows: Rows) -> BaseException | None:
        once = kind is Numbering.ONCE
        name, number = (f"{self.name}-{self._tries}", 0) if once else (self.name, self.done)
        return self._try(BatchId.numbered_by(kind, name, number), rows)

    def _look(self, error: BaseException, rows: Rows) -> Rows:
        """The rows that are not visible, when nothing is open that could make them visible."""
        if isinstance(error, EosSinkError) and error.data.get("stream"):
            self._choose(Choice.ACCEPT, stream=error.data["stream"])
        self.finish()
        return self._unseen(rows)


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
        if len(self.scene.plot.kinds) > 1 and self.kind is Numbering.STREAM:
            # A planner that Spark has kept from before another query's turn stops once.
            self._session = Session(self.scene)
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
                f"user{n}", kind, self.scene, list(_rows(n, self.plot)), self._known
            )
            for n, kind in enumerate(self.plot.kinds)
        ]
        self.scene.rival = self._rival
        expected = [row for user in self._users for rows in user.writes for row in rows]
        try:
            with time_of(self.scene.world):
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
        seen, reads = self.scene.visible(), self._known.reads
        wrong = {row: seen[row] for row in expected if not 1 <= seen[row] <= 1 + reads[row]}
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


def _key(batch: BatchId) -> tuple[str, int]:
    """Of a single write its name alone: its number is that of its record."""
    return batch.stream, 0 if batch.numbering is Numbering.ONCE else batch.batch


def _name(error: BaseException) -> str:
    return type(error).__name__ if isinstance(error, EosSinkError) else PROCESS_DIED


def _rows(user: int, plot: Plot) -> Iterator[Rows]:
    for number in range(plot.writes):
        row = f"{user}.{number}"
        rows = [f"{row}a".encode(), f"{row}b".encode().ljust(100), f"{row}c".encode()]
        yield [*rows, f"{row}d".encode().ljust(2 * LARGEST)] if plot.rejects else rows
