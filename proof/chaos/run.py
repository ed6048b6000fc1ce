"""Runs a stream under faults, from its start to the row check."""

from __future__ import annotations

import contextlib
import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, closing

from eos_sink.options import parse_batch_options, parse_options
from eos_sink.sink_options import SinkOptions
from eos_sink_lab.testing import Faults, KafkaCluster, start_kafka
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.topic_audit import Checker, audit, json_field
from eos_sink_lab.testing.topic_scan import Offsets, ReaderError, Source
from eos_sink_lab.testing.watchdog import Watchdog
from integration.standalone import StandaloneCluster
from proof import trace
from proof.chaos.checkpoint import Checkpoint
from proof.chaos.drivers import Command
from proof.chaos.feeder import Feeder
from proof.chaos.inbox import FileInbox, Inbox, TopicInbox
from proof.chaos.journal import Journal
from proof.chaos.kinds import Input, Master, Way
from proof.chaos.result import OnDisk, Outcome, Result, Settings, describe_outcome, describe_step
from proof.chaos.scene import Scene
from proof.chaos.schedule import Step, schedule
from proof.chaos.segments import transactions
from proof.chaos.steps import Performer
from proof.chaos.supervisor import Supervisor
from proof.chaos.watch import Watch

PARTITIONS = 6
_TOPIC = "chaos"
_TASKS = 4
_KEYS = 97
_FEED_EVERY_S = 1.0
_TRANSACTION_TIMEOUT_MS = 60_000
_STEP_TIMEOUT_MS = 60_000
# In a batch of a second the first task has less, each of the others more.
_INLINE_BYTES = 4_000
_SOURCE = "chaos-source"
_SOURCE_PARTITIONS = 3
# With a topic as input, all tasks of a batch have less, or all have more.
_FEW_ROWS = 30
_SOURCE_OPTIONS = {
    "subscribe": _SOURCE,
    "eos.id": "chaos",
    "eos.source.group.id": "chaos-readers",
    "eos.inline.bytes": "2000",
    # So that many transactions can expire.
    "eos.transaction.timeout.ms": "30000",
}
# The checkpoint's location does not reach a function.
_FUNCTION_OPTIONS = {"eos.id": "chaos"}
_FIRST_ROW_WITHIN_S = 360.0
_ENDS_WITHIN_S = 360.0
_AUDIT_S = 600.0


def run(settings: Settings) -> Result:
    """Run. Ctrl-C ends the faults; the rows so far are checked."""
    journal = Journal(settings.home / "journal.jsonl")
    with ExitStack() as stack:
        stack.callback(journal.close)
        journal.say("starting three brokers and three controllers")
        kafka = stack.enter_context(
            start_kafka(
                brokers=3,
                proxied=True,
                # Ten seconds by default: a timeout takes effect soon after it is due.
                properties={"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000},
                data_dir=settings.home / "kafka",
                progress=journal.say,
            )
        )
        kafka.create_topic(_TOPIC, partitions=PARTITIONS)
        result = _Run(settings, kafka, journal, stack).go()
    if result.good:  # else they are needed to find the cause
        shutil.rmtree(settings.home / "kafka", ignore_errors=True)
    return result


class _Run:
    def __init__(
        self, settings: Settings, kafka: KafkaCluster, journal: Journal, stack: ExitStack
    ) -> None:
        self._settings, self._kafka, self._journal, self._stack = settings, kafka, journal, stack
        home = settings.home
        self._faults = Faults(home / "faults")
        self._watchdog = Watchdog()
        stack.callback(self._watchdog.close)
        source = Source(kafka.direct_servers, _TOPIC)
        self._checker = Checker(source, json_field("row"))
        stack.callback(self._checker.close)
        watch = Watch(self._checker)
        self._checkpoint = Checkpoint(home)
        few = _FEW_ROWS if self._reads_topic else None
        self._feeder = Feeder(self._inbox(), settings.rate, _FEED_EVERY_S, lambda: watch.whole, few)
        replace = self._checkpoint.replace_after
        self._supervisor = Supervisor(
            home / "lives", self._command, journal, replace, settings.standbys
        )
        stack.callback(self._supervisor.close)
        self._offsets = Offsets(source)
        self._spark: StandaloneCluster | None = None
        self._outcomes: list[Outcome] = []
        self._scene = Scene(
            kafka=kafka,
            topic=_TOPIC,
            partitions=PARTITIONS,
            sink=self._sink(kafka.direct_servers),
            faults=self._faults,
            supervisor=self._supervisor,
            watch=watch,
            journal=journal,
            checkpoint=self._checkpoint,
        )

    @property
    def _reads_topic(self) -> bool:
        return self._settings.source is Input.TOPIC

    @property
    def _calls_function(self) -> bool:
        return self._settings.way is Way.FUNCTION

    def _sink(self, servers: str) -> SinkOptions:
        given = {**self._options, "kafka.bootstrap.servers": servers}
        return parse_batch_options(given).sink if self._calls_function else parse_options(given)

    def _inbox(self) -> Inbox:
        if self._reads_topic:
            self._kafka.create_topic(_SOURCE, partitions=_SOURCE_PARTITIONS)
            return TopicInbox(self._kafka.direct_servers, _SOURCE, _KEYS)
        home = self._settings.home
        return FileInbox(home / "input", home / "hidden")

    @property
    def _options(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self._kafka.bootstrap_servers,
            "topic": _TOPIC,
            "checkpointLocation": str(self._checkpoint.path),
            "eos.transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS),
            "eos.step.timeout.ms": str(_STEP_TIMEOUT_MS),
            "eos.inline.bytes": str(_INLINE_BYTES),
            **(_SOURCE_OPTIONS if self._reads_topic else {}),
            **(_FUNCTION_OPTIONS if self._calls_function else {}),
        }

    def go(self) -> Result:
        began = time.time()
        self._scene.watch.start()
        self._feeder.start()
        try:
            self._inject_faults(began + self._settings.seconds)
        except KeyboardInterrupt:
            self._journal.say("interrupted")
        except Exception:  # noqa: BLE001 - the rows so far are checked all the same
            self._supervisor.flaws.append(f"the run failed: {traceback.format_exc()}")
        return self._end(began)

    def _inject_faults(self, until: float) -> None:
        self._journal.say("starting the query")
        self._supervisor.start()
        if not self._supervisor.until(lambda: self._scene.watch.whole > 0, _FIRST_ROW_WITHIN_S):
            self._supervisor.flaws.append("no row became visible at the start")
            return
        performer = Performer(self._scene, self._feeder, self._offsets)
        for step in self._steps():
            if time.time() >= until or self._has_failed():
                return
            self._journal.note(
                "step", number=step.number, say=f"{step.number}: {describe_step(step)}"
            )
            outcome = performer.perform(step)
            self._outcomes.append(outcome)
            self._journal.note(
                "outcome", number=step.number, say=f"    {describe_outcome(outcome)}"
            )

    def _steps(self) -> Iterator[Step]:
        given = self._settings
        for step in schedule(given.seed, given.masters, given.source, given.way):
            if step.number == given.most:
                return
            yield step

    def _has_failed(self) -> bool:
        """After a failure, more faults would only hide its cause."""
        flaws = bool(self._supervisor.flaws or self._scene.watch.failure)
        return flaws or not all(outcome.survived for outcome in self._outcomes)

    def _end(self, began: float) -> Result:
        self._journal.say("the faults are over: waiting for the last row")
        self._feeder.stop()
        rows, flaws = self._feeder.rows, self._supervisor.flaws
        with contextlib.suppress(KeyboardInterrupt):
            self._supervisor.until(lambda: self._scene.watch.whole >= rows, _ENDS_WITHIN_S)
        ended = time.time()
        self._scene.watch.stop()
        if self._scene.watch.failure:
            flaws.append(f"the reader failed: {self._scene.watch.failure}")
        self._journal.say("reading everything again")
        verdict = None
        try:
            verdict = audit(self._checker, rows, _AUDIT_S)
        except ReaderError as error:
            flaws.append(str(error))
        on_disk = self._on_disk() if verdict is not None else None
        self._supervisor.close()
        flaws += trace.find_wrong_steps(self._settings.home)
        return Result(
            settings=self._settings,
            began=began,
            ended=ended,
            kafka=self._kafka.version,
            rows=rows,
            outcomes=self._outcomes,
            seconds=self._scene.watch.seconds(),
            lives=len(self._supervisor.lives),
            events=self._journal.events,
            flaws=flaws,
            audit=verdict,
            on_disk=on_disk,
        )

    def _on_disk(self) -> OnDisk | None:
        if not isinstance(self._kafka, LocalCluster):
            return None
        places = {}
        for partition in range(PARTITIONS):
            leader = self._kafka.leader_of(_TOPIC, partition)
            node = self._kafka.directory / f"node-{leader}"
            places[partition] = node / "data" / f"{_TOPIC}-{partition}"
        found, given = transactions(places), self._checker.check
        wrong = found.aborted_but_given(given) + found.committed_but_withheld(given)
        return OnDisk(found.committed, found.aborted, wrong)

    def _command(self, master: Master) -> Command:
        home = self._settings.home
        query = {
            "input": None if self._reads_topic else str(home / "input"),
            "keys": _KEYS,
            "tasks": _TASKS,
            "way": self._settings.way.value,
            "options": self._options,
        }
        cluster = self._standalone() if master is Master.STANDALONE else None
        return Command(
            query, self._faults.directory, home / "scratch", self._watchdog.environ, cluster
        )

    def _standalone(self) -> StandaloneCluster:
        if self._spark is None:
            self._journal.say("starting a Spark master and two workers")
            self._spark = self._stack.enter_context(
                closing(StandaloneCluster(self._settings.home / "spark"))
            )
        return self._spark
