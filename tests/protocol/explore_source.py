"""A query from Kafka to Kafka that commits the offsets of its source. Its checkpoint is lost, and
its user does as the errors say: at the end each row is visible once."""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from eos_sink.errors import ConfigurationError, EosSinkError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.resolve import Choice
from eos_sink.ops.source_position import Drop, Use, choose, read_source
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId, Numbering
from eos_sink.protocol.outcome import Outcome
from eos_sink.protocol.values import Transaction
from eos_sink.spark.session_defaults import Defaults
from tests.fakes.kafka import FakeKafka
from tests.ops.operator import Operator
from tests.protocol.actor import Actor
from tests.protocol.checkpoint import INPUT, AnotherRun, Checkpoint, DataLoss, Incomplete, Progress
from tests.protocol.explore import FAULTS
from tests.protocol.scene import OF_SOURCE, OF_START, Fault, Scene, Strike, time_of
from tests.protocol.source import GROUP, committed, produce_input, reading_world
from tests.protocol.spark import FAILURES, Session, SessionDied
from tests.protocol.world import TOPIC, given_options, log

MOST_RUNS = 25
ELSEWHERE = "elsewhere"
ROWS = 12
_PATH = "/checkpoint"
_SOON_S = (0.0, 0.0, 0.1, 1.0)
# Longer than a step of the sink.
_LATE_S = (*_SOON_S, 1_000.0)
ASYNCHRONOUS = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "0",
}
DEFAULTS: tuple[dict[str, str], ...] = (
    {"eos.inline.bytes": "60"},
    {"eos.inline.bytes": "0", "eos.id": "another", "topic": ELSEWHERE},
)
"""Of a session, in turns. Options that are given count before them."""
_AGAIN = 2
"""How often a user starts a query again, for one missing file, before he does the other thing."""
ALL = {0: 1_000, 1: 1_000}
ANOTHER_QUERY = {
    "eos.id": "frames",
    "eos.source.group.id": "others",
    "checkpointLocation": "/others",
    "subscribe": INPUT,
}
"""Of a query that writes within foreachBatch."""
CHANGES = (*OF_START, Fault.TOPIC_AGAIN)
OTHERS = (*FAULTS, Fault.FOREIGN, Fault.NO_COORDINATOR, Fault.NO_GROUP_COORDINATOR, Fault.RIVAL)
_WITH_TOPIC = re.compile(r"Start the query once with topic=([^,]+),")
_FORMER_START = "as it was started last"
_WHEN_FINISHED = "as it was when it finished the batch before"
_AS_THEN = re.compile(
    r"as it was then: (within foreachBatch|with writeStream.format), "
    r"(?:batch write, )?(?:eos.id '(\w+)')?(?:, )?(?:checkpoint '([^']+)')?(?:, )?"
    r"(?:topic '(\w+)')?"
)
_COPIES = "old checkpoint", "newest copy", "Restore the checkpoint", "that stream's checkpoint"
SPARK_ERRORS = (AnotherRun, Incomplete, DataLoss)


def row(partition: int, number: int) -> bytes:
    """Of three batches one has rows for a transaction, one small ones, and one none."""
    name = b"%d-%d" % (partition, number)
    return (name.ljust(200), name, b"-" + name)[number // 3 % 3]


@dataclass(frozen=True)
class SourcePlot:
    """What happens to the query.

    Attributes:
        keeps: the user keeps a copy of each directory that an error lets him delete.
        resets: a reset of the group is meant.
        retries: the query is started once more after each error before anybody reads it.
        nameless: the query has no eos.id, but while it writes within foreachBatch.
        ungrouped: the query does not commit the source's offsets at first.
        default: of `starting_offsets`.
        chosen: of what the first error offers; each later one has the next.
        own_sink: Spark's own sink has written the query before.
        late: by how many seconds Spark's files are late, in turns, with asynchronous progress
            tracking; empty: without it.
        stateful: the query keeps state, in which no row waits.
    """

    strikes: tuple[Strike, ...] = ()
    keeps: bool = False
    resets: bool = False
    retries: bool = False
    nameless: bool = False
    ungrouped: bool = False
    default: str = "earliest"
    chosen: int = 0
    own_sink: bool = False
    late: tuple[float, ...] = ()
    stateful: bool = False

    @staticmethod
    def of(seed: int) -> SourcePlot:
        chance = random.Random(seed)
        at, strikes = chance.randrange(250), list[Strike]()
        for _ in range(chance.randrange(1, 6)):
            faults: Sequence[Fault] = chance.choice((tuple(OF_SOURCE), OTHERS, OTHERS, CHANGES))
            fault = chance.choice(faults)
            if strikes and chance.random() < 0.2:
                # What was changed is changed back.
                fault = strikes[-1].fault
            strikes.append(Strike(fault, at, chance.choice((-1, 20, 200))))
            at += chance.randrange(chance.choice((2, 12, 100)))
        keeps, resets, retries = (chance.random() < 0.5 for _ in range(3))
        nameless, ungrouped, own_sink = (chance.random() < 0.2 for _ in range(3))
        default, chosen = chance.choice(("earliest", "committed")), chance.randrange(3)
        late = (0.0, chance.choice(_SOON_S), chance.choice(_LATE_S))
        is_late = chance.random() < 0.5
        return SourcePlot(
            tuple(strikes),
            keeps,
            resets,
            retries,
            nameless,
            ungrouped,
            default,
            chosen,
            own_sink,
            late if is_late else (),
            stateful=chance.random() < 0.2,
        )


@dataclass
class SourceStory:
    """A plot, played until the query has read all of its input.

    Attributes:
        met: the classes of the errors that the user has met.
        violations: all that went wrong.
    """

    plot: SourcePlot
    met: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def play(self) -> SourceStory:
        self._foreach = False
        self._group = GROUP
        self._given = given_options(
            **{
                "eos.id": "story",
                "eos.source.group.id": self._group,
                "checkpointLocation": _PATH,
                "subscribe": INPUT,
            }
        )
        if self.plot.nameless:
            del self._given["eos.id"]
        if self.plot.late:
            self._given |= ASYNCHRONOUS
        self.world = reading_world(ROWS, row)
        self.world.checkpoint = Checkpoint(None, state=self.plot.stateful)
        self.world.outputs = TOPIC, ELSEWHERE
        self.world.cluster.create_topic(ELSEWHERE, 2)
        self.scene = Scene(self.world, self.plot.strikes)
        self.scene.late = itertools.cycle(self.plot.late) if self.plot.late else None
        self.scene.meddle = self._meddle
        self.scene.rival = self._write_as_another
        self._copies: list[Checkpoint] = []
        self._tried: set[tuple[str | None, int]] = set()
        self._damaged: Checkpoint | None = None
        self._names: set[QueryNames] = set()
        self._defaults = DEFAULTS[0]
        self._own_sink, self._of_others = self.plot.own_sink, 0
        self._switch(on=self.plot.own_sink or not self.plot.ungrouped)
        self._worked = self._finished = self._start
        self._refusals, self._turn = 0, self.plot.chosen
        self._missing: Counter[str] = Counter()
        self._retried = self._hangs_without = False
        self.world.accept = self._accept_another_query
        with time_of(self.world), contextlib.closing(self.scene):
            self._run_on()
            self.scene.calm()
            self.scene.wake()
            # What another identity or program has left open times out.
            self.world.cluster.clock.advance(61)
            self._switch(on=True)
            produce_input(self.world, 1, lambda p, _: b"last %d" % p)
            self._run_on()
        self._judge()
        return self

    def _run_on(self) -> None:
        """Start the query until it has come to the end of its input."""
        for _ in range(MOST_RUNS):
            self._begin()
            # A run that hung may have noted its last batch since.
            begun = self._work
            session = Session(self.scene)
            run = session.run = Actor(partial(self._run_program, session))
            ended = run.go()
            is_refused = isinstance(run.error, (ConfigurationError, OperatorNeededError))
            if self._work != begun or not is_refused:
                self._worked = self._start
            if self._work != begun:
                self._finished = self._start
            if not ended:
                self._hangs_without |= self.world.options.source is None
                continue
            if run.error is None:
                return
            if isinstance(run.error, SessionDied):
                continue
            if not isinstance(run.error, (*FAILURES, *SPARK_ERRORS)):
                raise run.error
            self.met[type(run.error).__name__] += 1
            self.scene.heal()
            self._retried = self.plot.retries and not self._retried
            if not self._retried:
                self._obey(run.error)
        self.violations.append(f"{MOST_RUNS} runs did not come to an end: {self.met}")

    def _run_program(self, session: Session) -> None:
        checkpoint, starting = self.world.checkpoint, None
        if self._own_sink:
            session.run_own_sink(checkpoint)
            self._own_sink = False
        if self.world.options.source is not None:
            starting = session.find_start(self._all, checkpoint, self.plot.default)
        session.run_query(checkpoint, starting)

    @property
    def _start(self) -> tuple[dict[str, str], bool, dict[str, str]]:
        """How the query is started now."""
        return dict(self._given), self._foreach, self._defaults

    @property
    def _work(self) -> tuple[object, int]:
        """What was decided, and how much Spark has noted as done."""
        decided = {each.batch for each in self.world.judge.decisions()}
        return decided, len(self.world.checkpoint.commits)

    def _write_as_another(self) -> None:
        """Another program writes a row to the topic, within a call: a job, then a query with a
        source group of its own, in turns."""
        number, files = self._of_others, Checkpoint(None)
        self._of_others += 1
        row = b"%d of another" % number
        named = {name: self._given[name] for name in ("kafka.bootstrap.servers", "topic")}
        named |= ANOTHER_QUERY if number % 2 else {}
        session = Session(self.scene, parse_batch_options(named).sink, files)
        # It is not tried again after an error: decided or not.
        self.world.ignored.add(row)
        with contextlib.suppress(*FAILURES, SessionDied):
            batch = BatchId.numbered_by(Numbering.ONCE, "", number)
            if number % 2:
                begins = session.find_start(named, files)
                begun = Progress(files, begins).begin(self.world.limit(ALL))
                batch = BatchId.numbered_by(Numbering.FOREACH, begun.source, begun.batch)
            session.write(batch, [[row]])
            self.world.ignored.remove(row)
            self.world.of_others.append(row)

    def _meddle(self, fault: Fault) -> None:
        """What somebody does to the checkpoint or the group, at this moment."""
        checkpoint, groups = self.world.checkpoint, self.world.cluster.groups
        excepted = {*OF_SOURCE, Fault.SOURCE_AGAIN}
        if not self.world.judge.decisions():
            # It writes a batch again that it has not finished.
            excepted.add(Fault.TOPIC_AGAIN)
        if self.plot.own_sink and fault in excepted:
            # Only the checkpoint knows what Spark's own sink has written.
            return
        if fault is Fault.DELETE:
            checkpoint.delete()
        elif fault is Fault.LOSE_METADATA:
            checkpoint.stream = None
        elif fault is Fault.LOSE_OFFSETS:
            # A run that hangs takes offsets that the next one makes for its own: a known limit.
            if not self.scene.zombies:
                checkpoint.ends.clear()
                self._damaged = checkpoint
        elif fault is Fault.LOSE_COMMITS:
            checkpoint.commits.clear()
        elif fault is Fault.COPY:
            self._copies.append(copy.deepcopy(checkpoint))
        elif fault is Fault.TOPIC_AGAIN:
            self.world.make_again(self._given["topic"])
        elif fault is Fault.EXPIRE_GROUP:
            groups.committed.pop(self._group, None)
        elif fault is Fault.RESET_GROUP:
            groups.commit_offsets(self._group, {(INPUT, 0): 0})
        else:
            self.scene.pending.append(fault)

    def _begin(self) -> None:
        """What is changed while the query does not run."""
        pending, self.scene.pending = self.scene.pending, []
        for fault in pending:
            # Two runs in one directory, one of which an old copy deceives, are a known limit.
            if fault is Fault.PUT_BACK and self._copies and not self.scene.zombies:
                self.world.checkpoint = copy.deepcopy(self._copies[-1])
            elif fault is Fault.MOVE:
                self._move()
            elif fault is Fault.SWITCH:
                self._switch(on="eos.source.group.id" not in self._given)
            else:
                self._change(fault)
        checkpoint = self.world.checkpoint
        if checkpoint.stream is None or not checkpoint.ends or checkpoint is self._damaged:
            # Nobody replaces a checkpoint, or goes on with what is left of one, without the option.
            self._switch(on=True)
        self._accept_another_query()

    def _move(self) -> None:
        """To another path, or back to the first one, where nothing is left."""
        is_moved = self._given["checkpointLocation"] != _PATH
        self._given["checkpointLocation"] = _PATH if is_moved else f"{_PATH}-moved"
        if is_moved:
            self.world.checkpoint = Checkpoint(None, state=self.plot.stateful)
        else:
            self.world.checkpoint = copy.deepcopy(self.world.checkpoint)
        self._parse()

    def _accept_another_query(self) -> None:
        """With another identity and another topic it is another query, which writes the batch that
        Spark repeats to its own topic; a run that hung goes on in the topic that it had."""
        for decision in self.world.judge.decisions():
            if decision.route.topic == self._given["topic"]:
                continue
            for names in self._names - {self.world.options.names}:
                own = {each.producer for each in decision.inlined if each.producer}
                written = {Transaction(names.driver, each.producer_id, each.epoch) for each in own}
                for each in written | decision.transactions(names).keys():
                    self.world.accepted |= self.world.rows_of(each)

    def _change(self, fault: Fault) -> None:
        given = self._given
        if fault is Fault.OTHER_WAY:
            self._foreach = not self._foreach
        elif fault is Fault.OTHER_ID:
            if given.pop("eos.id", None) != "another":
                given["eos.id"] = "another"
            elif not self.plot.nameless:
                given["eos.id"] = "story"
        elif fault is Fault.OTHER_SINK:
            self._own_sink = False
        elif fault is Fault.OTHER_DEFAULTS:
            self._defaults = DEFAULTS[self._defaults is DEFAULTS[0]]
        elif fault is Fault.SOURCE_AGAIN:
            self.scene.heal()
            self.world.make_input_again()
            # Without the option nobody notices it: Spark skips rows of the new one.
            self._switch(on=True)
            if self._hangs_without and self.scene.zombies:
                self.world.accepted.update(self.world.rows())
        elif fault is Fault.OTHER_TOPIC:
            given["topic"] = TOPIC if given["topic"] == ELSEWHERE else ELSEWHERE
        self._parse()

    def _switch(self, *, on: bool) -> None:
        self._given.pop("eos.source.group.id", None)
        if on:
            self._given["eos.source.group.id"] = self._group
        self._parse()

    def _parse(self) -> None:
        self._all = given = Defaults(self._defaults).fill_in(self._given)
        if self._foreach:
            # Frames need an id.
            given.setdefault("eos.id", "story")
        query, frames = parse_options(given), parse_batch_options(given).sink
        self._names |= {query.names, frames.names}
        self.world.options = frames if self._foreach else query

    def _obey(self, error: BaseException) -> None:
        remedy = error.remedy if isinstance(error, EosSinkError) else ""
        if isinstance(error, SPARK_ERRORS):
            self._refusals += 1
            if self._refusals > 1:
                self._delete()
        elif self._has_changed() and _FORMER_START in remedy:
            self._start_as(self._worked)
        elif self._finished != self._start and _WHEN_FINISHED in remedy:
            self._start_as(self._finished)
            if self.world.former and "eos.source.group.id" not in self._given:
                # Without the option nobody notices that the source was made again: a known limit.
                self.world.accepted.update(self.world.rows())
        elif then := _AS_THEN.search(remedy):
            self._foreach = then[1] == "within foreachBatch"
            self._given["checkpointLocation"] = then[3] or self._given["checkpointLocation"]
            self._given["topic"] = then[4] or self._given["topic"]
            self._given.pop("eos.id", None)
            if then[2]:
                self._given["eos.id"] = then[2]
            else:
                self._defaults = DEFAULTS[0]
            self._parse()
        elif "Add .option('eos.source.group.id'" in remedy:
            self._switch(on=True)
        elif once := _WITH_TOPIC.search(remedy):
            self._given["topic"] = once[1]
            self._parse()
        elif "remove asyncProgressTrackingEnabled" in remedy and isinstance(error, EosSinkError):
            self._missing[error.data["file"]] += 1
            if max(self._missing.values()) > _AGAIN:
                self.scene.late = None
                self._given = {k: v for k, v in self._given.items() if k not in ASYNCHRONOUS}
                self._parse()
        elif "until it has finished" in remedy and self.plot.own_sink:
            self._own_sink = True
        elif "--drop" in remedy:
            self._use(Drop(frozenset({INPUT}), "--give-up-state" in remedy), remedy)
            if "elete the checkpoint" in remedy:
                self._delete()
        elif "--to-earliest" in remedy:
            earliest = {(INPUT, p): 0 for p in self.world.limit(ALL)}
            self.world.cluster.groups.commit_offsets(self._group, earliest)
        elif "--lost" in remedy:
            self._end_doubts(is_gone="created again" in str(error))
        elif "Name another group" in remedy:
            if ELSEWHERE in (self._given["topic"], self._worked[0]["topic"]):
                # With another topic it is another query, which reads all rows.
                self.world.accepted.update(self.world.rows())
            self._group += "-2"
            self._switch(on=True)
        elif "--use record" in remedy:
            if self.plot.resets and self._is_reset():
                self.world.accepted.update(self.world.rows())
                self._use(Use.GROUP, remedy)
                self._delete()
            else:
                self._use(Use.RECORD, remedy)
        elif "--use group" in remedy:
            self._set_group()
            self._use(Use.GROUP, remedy)
            if "elete the checkpoint" in remedy:
                self._delete()
        elif isinstance(error, OperatorNeededError) and self._choose(remedy):
            pass
        elif "elete the checkpoint" in remedy or "was deleted" in remedy or "newest" in remedy:
            self._delete()

    def _start_as(self, then: tuple[dict[str, str], bool, dict[str, str]]) -> None:
        given, self._foreach, self._defaults = then
        self._given = dict(given)
        self._parse()

    def _choose(self, remedy: str) -> bool:
        """Do one of the things that are offered, each time another one, if it can be done."""
        ways = {**dict.fromkeys(_COPIES, self._restore)}
        chosen = {"--accept": self._give_up, "--forget": self._repeat}
        ways |= {words: partial(way, remedy) for words, way in chosen.items()}
        ways["--give-up-state"] = partial(self._give_up_state, remedy)
        offered = sorted((remedy.find(words), words) for words in ways if words in remedy)
        first, self._turn = self._turn, self._turn + 1
        turned = (ways[offered[(first + n) % len(offered)][1]] for n in range(len(offered)))
        return any(way() for way in turned)

    def _give_up_state(self, remedy: str) -> bool:
        self._use(Drop(state=True), remedy)
        return True

    def _give_up(self, remedy: str) -> bool:
        seen = set(self.world.visible())
        self.world.accepted.update(each for each in self.world.rows() if each not in seen)
        Operator(self.world, self._named(remedy)).chooses(Choice.ACCEPT)
        return True

    def _repeat(self, remedy: str) -> bool:
        """What is visible may be written again."""
        self.world.accepted.update(self.world.settled())
        Operator(self.world, self._named(remedy)).chooses(Choice.FORGET)
        return True

    def _has_changed(self) -> bool:
        return self._worked != self._start

    def _delete(self) -> None:
        checkpoint = self.world.checkpoint
        if self.plot.keeps and (checkpoint.stream, checkpoint.number) not in self._tried:
            self._copies.append(copy.deepcopy(checkpoint))
        checkpoint.delete()
        self._damaged = None
        self._refusals = 0
        self._switch(on=True)

    def _restore(self) -> bool:
        """Put back the newest copy of the checkpoint that has decided last, once."""
        decisions = self.world.judge.decisions()
        last = decisions[-1].batch.stream if decisions else None
        for each in reversed(self._copies):
            if each.stream == last:
                self._copies.remove(each)
                self._tried.add((each.stream, each.number))
                self.world.checkpoint = copy.deepcopy(each)
                return True
        return False

    def _is_reset(self) -> bool:
        return (
            len(committed(self.world, self._group)) == 2
            and committed(self.world, self._group)[0] == 0
        )

    def _use(self, chosen: Use | Drop, remedy: str) -> None:
        """Run the command, for the query that it names."""
        kafka, names = FakeKafka(self.world.cluster), self._named(remedy)
        state = read_source(kafka, names, self._group, Deadline(30))
        choose(kafka, names, state, chosen, Deadline(30))

    def _named(self, remedy: str) -> QueryNames:
        return next(each for each in self._names if each.query in remedy)

    def _end_doubts(self, *, is_gone: bool) -> None:
        """Say of each partition whether readers have had its rows. If they were in a topic that was
        made again, they are wanted there, too."""
        operator, seen = Operator(self.world), set(self.world.visible())
        for each in operator.looks().transactions:
            if each.outcome is not Outcome.IN_DOUBT:
                continue
            rows = self.world.rows_of(each.evidence.transaction)
            if is_gone:
                self.world.again |= rows
            lost = is_gone or not rows <= seen
            operator.chooses(Choice.LOST if lost else Choice.VISIBLE, each.entry.partition)

    def _set_group(self) -> None:
        """To the first rows that are not in the topic."""
        seen = set(self.world.visible())
        ends = self.world.limit(ALL)
        for partition, end in ends.items():
            firsts = (
                at
                for at in range(end)
                if not set(self.world.read({partition: at}, {partition: at + 1})[0]) <= seen
            )
            first = next(firsts, end)
            self.world.cluster.groups.commit_offsets(self._group, {(INPUT, partition): first})

    def _judge(self) -> None:
        """Each row is visible once, but for those that an operator has given up or repeated."""
        seen, accepted = Counter(self.world.visible()), self.world.accepted
        wrong = {each: seen[each] for each in self.world.rows() if seen[each] != 1}
        if wrong or set(seen) - set(self.world.rows()) - accepted:
            self.violations.append(f"rows and how often they are visible: {wrong}")
        if not accepted:
            self.world.judge.at_the_end()
        self.violations += self.world.judge.violations
        split = [each.batch for each in self.world.judge.decisions() if len(each.topics) > 1]
        if split:
            self.violations.append(f"in two topics: {split}")
        # What was decided without the option stops a new checkpoint until the position is known.
        first = next(each for each in log(self.world) if each.source or each.decision)
        if first.decision and first.source:
            self.violations.append("the log did not know the position before the first rows")
        ends = self.world.limit(ALL)
        if not ends.items() <= committed(self.world, self._group).items():
            self.violations.append(f"the group is at {committed(self.world, self._group)}")
        positions = [each.source.end for each in log(self.world) if each.source]
        if {(INPUT, p): at for p, at in ends.items()} not in positions:
            self.violations.append(f"the position is {positions[-1]}")
