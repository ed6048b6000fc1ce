"""Partitions that have no leader when a transaction ends. Kafka 4 drops their markers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.driver_id import describe_driver
from eos_sink.driver.committer import Committer
from eos_sink.driver.planner import Planner
from eos_sink.errors import (
    OutcomeUnknownError,
    ProduceFailedError,
    UnfinishedError,
)
from eos_sink.kafka import transaction_control
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.transaction_control import KafkaPythonControl
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, Plan, TaskReport
from eos_sink.protocol.values import EndOutcome, TransactionState, TransactionStatus
from eos_sink.sink_options import SinkOptions
from eos_sink.task.writer import TaskWriter
from eos_sink_lab.testing import KafkaCluster, KafkaNode
from eos_sink_lab.testing.cluster_admin import TRANSACTIONS, coordinator_partition
from eos_sink_lab.testing.cluster_errors import TestClusterError
from eos_sink_lab.testing.waiting import wait_until
from integration.checker import read_topic
from integration.in_process import Died, die
from integration.operator_commands import NOT_SEEN, RAN, run_command
from integration.own_kafka import start_own_kafka
from integration.topics import move_only_copies, unique, unique_that

LONG_S = 120.0
ROWS = [b"a", b"b", b"c"]


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    looks = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}
    with start_own_kafka(brokers=3, properties=looks) as cluster:
        yield cluster


class Batches:
    """A query of one task, in steps. Its topic has one copy, that of partition 0 on the broker
    `home`."""

    def __init__(self, cluster: KafkaCluster, **more: str) -> None:
        self.cluster = cluster
        self.topic = unique("single")
        cluster.create_topic(self.topic, partitions=2, replication=1)
        self.home = cluster.node(cluster.leader_of(self.topic, 0))
        given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "eos.id": self.topic,
            "topic": self.topic,
            "eos.inline.bytes": "0",
        }
        self.options = parse_options({**given, **more})
        self.start()

    def start(self) -> None:
        self.kafka = ConfluentKafka(self.options.cluster)
        self.planner = Planner(self.kafka, self.options)
        self.committer = Committer(self.kafka, self.options)
        self.register = DecisionRegister(self.kafka, self.options.names)

    def restart(self) -> None:
        self.close()
        self.start()

    def write(
        self,
        plan: Plan | None = None,
        batch: int = 0,
        attempt: int = 0,
        partition: int = 0,
        values: list[bytes] = ROWS,
    ) -> list[TaskReport]:
        plan = plan or self.planner.plan()
        task = TaskWriter(self.kafka, self.options, plan, attempt=attempt)
        columns = {"value": values, "partition": pa.array([partition] * len(values), pa.int32())}
        rows = [pa.RecordBatch.from_pydict(columns)]
        return [task.write(BatchId(self.options.names.query, batch), 0, rows)]

    def describe(self, reports: list[TaskReport]) -> TransactionState:
        (report,) = reports
        assert report.prepared is not None
        name = report.prepared.transaction(self.options.names, report.slot).transactional_id
        return self.kafka.control().describe([name], Deadline(LONG_S))[name]

    def wait_timed_out(self, reports: list[TaskReport]) -> None:
        wait_until(
            lambda: self.describe(reports).status is TransactionStatus.COMPLETE_ABORT,
            Deadline(LONG_S),
            "the transaction has timed out",
        )

    def stop_home(self) -> None:
        self.home.stop()
        assert self.cluster.leader_of(self.topic, 0) == -1

    def restart_home(self) -> None:
        self.home.restart()
        wait_until(
            lambda: self.cluster.leader_of(self.topic, 0) >= 0,
            Deadline(LONG_S),
            f"{self.topic} has a leader",
        )

    def fail_to_plan(self) -> None:
        with pytest.raises(OutcomeUnknownError) as raised:
            self.planner.plan()
        assert f"{self.topic}[0]" in raised.value.data["partitions"]
        assert "--unavailable-partitions" in raised.value.remedy

    def read(self) -> list[bytes | None]:
        """The rows of partition 0."""
        rows = read_topic(self.cluster.bootstrap_servers, self.topic)
        return [each.value for each in rows if each.partition == 0]

    def lose_leader(self) -> None:
        self.read_seq()
        self.home.kill()

        def has_none() -> bool:
            try:
                return self.cluster.leader_of(self.topic, 0) == -1
            except TestClusterError:
                return False

        wait_until(has_none, Deadline(LONG_S), f"{self.topic} has no leader")

    def read_seq(self) -> int:
        return self.register.read(Deadline(LONG_S)).seq

    def during(self, step: Callable[..., Any], *given: Any) -> None:
        """Take a step while there is no leader, until it has written to the decision log and for as
        long as a broker needs to start."""
        before = self.read_seq()
        with ThreadPoolExecutor(1) as pool:
            stepped = pool.submit(step, *given)
            wait_until(
                lambda: stepped.done() or self.read_seq() > before,
                Deadline(LONG_S),
                "the log has a new record",
            )
            self.home.restart()
            stepped.result(LONG_S)

    def close(self) -> None:
        self.register.close()
        self.planner.close()
        self.committer.close()


B = TypeVar("B", bound=Batches)


@contextmanager
def closed_after(made: B) -> Iterator[B]:
    yield made
    made.close()
    made.cluster.repair()


@pytest.fixture
def make(brokers: KafkaCluster) -> Iterator[Callable[..., Batches]]:
    """Makes a query with more options."""
    with ExitStack() as made:
        yield lambda **more: made.enter_context(closed_after(Batches(brokers, **more)))


@pytest.fixture
def batches(make: Callable[..., Batches]) -> Batches:
    return make()


@pytest.mark.long
def test_a_decided_transaction_is_ended_when_its_partitions_have_leaders(batches: Batches) -> None:
    reports = batches.write()
    batches.lose_leader()
    batches.during(batches.committer.commit, reports)
    assert batches.read() == ROWS


@pytest.mark.long
def test_an_aborted_transaction_does_not_come_back_with_the_next_one(batches: Batches) -> None:
    """Its producer id goes on, and what it has left open would end with its next transaction."""
    reports = batches.write()
    batches.lose_leader()
    batches.during(batches.committer.abort, reports)
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS


# --- The end comes from the brokers, or from a client.


@pytest.mark.long
@pytest.mark.parametrize("restarts", [True, False], ids=["a new process", "the same process"])
def test_a_transaction_that_times_out_without_a_leader_does_not_come_back(
    make: Callable[..., Batches], restarts: bool
) -> None:
    batches = make(**{"eos.transaction.timeout.ms": "15000"})
    reports = batches.write()
    batches.stop_home()
    batches.wait_timed_out(reports)
    batches.restart_home()
    if restarts:
        batches.restart()
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS


@pytest.mark.long
def test_a_decided_transaction_that_times_out_without_a_leader_is_written_again(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(**{"eos.transaction.timeout.ms": "15000"})
    reports = batches.write()
    with monkeypatch.context() as patched:
        patched.setattr(KafkaPythonControl, "end", die)
        with pytest.raises(Died):
            batches.committer.commit(reports)
    batches.stop_home()
    batches.wait_timed_out(reports)
    batches.restart_home()
    batches.restart()
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS


def commit_without_leader(
    batches: Batches, monkeypatch: pytest.MonkeyPatch, reports: list[TaskReport]
) -> None:
    """The leader goes between the look for it and the marker, which takes no time."""
    end, commit = KafkaPythonControl._end, ConfluentProducer.commit

    def end_struck(*given: Any) -> dict[str, EndOutcome]:
        batches.stop_home()
        return end(*given)

    def commit_struck(producer: ConfluentProducer, deadline: Deadline) -> None:
        batches.stop_home()
        commit(producer, deadline)

    with monkeypatch.context() as patched:
        patched.setattr(transaction_control, "_LONG_S", LONG_S)
        if any(report.prepared for report in reports):
            patched.setattr(KafkaPythonControl, "_end", end_struck)
        else:
            patched.setattr(ConfluentProducer, "commit", commit_struck)
        batches.committer.commit(reports)
    batches.restart_home()


@pytest.mark.long
def test_a_committed_transaction_whose_marker_was_dropped_becomes_visible_at_the_next_start(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader goes between the look for it and the marker, which takes long."""
    reports = batches.write()
    end = KafkaPythonControl._end

    def struck(*given: Any) -> dict[str, EndOutcome]:
        batches.stop_home()
        return end(*given)

    with monkeypatch.context() as patched:
        patched.setattr(KafkaPythonControl, "_end", struck)
        with pytest.raises(UnfinishedError):
            batches.committer.commit(reports)
    batches.restart_home()
    batches.restart()
    (said,) = doctor(batches)
    assert said["level"] == "warning"
    assert batches.describe(reports).transaction.transactional_id in said["what"]
    assert f"{batches.topic}[0]" in said["what"]
    batches.planner.plan()
    assert batches.read() == ROWS
    assert [each["level"] for each in doctor(batches)] == ["ok"]


def doctor(batches: Batches) -> list[dict[str, str]]:
    """What it says about the readers of the topic."""
    words = ["--bootstrap-server", batches.cluster.bootstrap_servers, "--topic", batches.topic]
    findings = run_command("doctor", *words, "--json", expect=None).document["findings"]
    return [each for each in findings if each["check"] == "readers"]


@pytest.mark.long
@pytest.mark.parametrize("inline", ["0", "2000"], ids=["of a task", "of the driver"])
def test_rows_of_an_earlier_batch_are_not_aborted_because_the_latest_one_has_none_there(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch, inline: str
) -> None:
    batches = make(**{"eos.inline.bytes": inline})
    commit_without_leader(batches, monkeypatch, batches.write())
    # Its ids take turns, and the one of the first batch writes elsewhere now.
    for batch in (1, 2):
        batches.committer.commit(batches.write(batch=batch, partition=1, values=[b"x" * 4000]))
    batches.committer.abort(batches.write(batch=3, partition=1))
    batches.restart()
    batches.planner.plan()
    assert batches.read() == ROWS


@pytest.mark.long
@pytest.mark.parametrize("how", ["committed", "timed out"])
def test_a_record_whose_marker_was_dropped_keeps_no_start_from_reading_the_log(
    make: Callable[..., Batches], brokers: KafkaCluster, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = unique("log")
    brokers.create_topic(log, partitions=8, replication=1, config={"cleanup.policy": "compact"})
    batches = make(**{"eos.log.topic": log, "eos.inline.bytes": "2000"})
    home = brokers.node(
        brokers.leader_of(log, batches.register.connect(Deadline(LONG_S)).home.partition)
    )
    commit = ConfluentProducer.commit

    def without_leader(producer: ConfluentProducer, deadline: Deadline) -> None:
        home.stop()
        if how == "committed":
            commit(producer, deadline)
        else:
            raise KeyboardInterrupt

    reports = batches.write(partition=1)
    with monkeypatch.context() as patched:
        patched.setattr(ConfluentProducer, "commit", without_leader)
        patched.setattr(ConfluentProducer, "abort", lambda *_: None)
        with contextlib.suppress(KeyboardInterrupt):
            batches.committer.commit(reports)
    names = batches.options.names
    ended = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
    wait_until(
        lambda: describe_driver(batches.kafka, names, Deadline(LONG_S)).status in ended,
        Deadline(LONG_S),
        "the driver's transaction has ended",
    )
    home.restart()
    batches.restart()
    batches.planner.plan()
    is_decided = batches.register.read(Deadline(LONG_S)).decision is not None
    assert is_decided == (how == "committed")


@pytest.mark.long
def test_a_plan_waits_for_a_partition_without_a_leader_and_names_it(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(**{"eos.step.timeout.ms": "20000"})
    commit_without_leader(batches, monkeypatch, batches.write())
    batches.committer.commit(batches.write(batch=1, partition=1))
    batches.stop_home()
    batches.restart()
    batches.fail_to_plan()
    batches.restart_home()
    batches.committer.abort(batches.write(batch=2))
    assert batches.read() == ROWS


@pytest.mark.long
def test_a_plan_goes_on_when_a_partition_has_found_its_leader(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(**{"eos.step.timeout.ms": "120000"})
    commit_without_leader(batches, monkeypatch, batches.write())
    batches.stop_home()
    batches.restart()
    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(batches.planner.plan)
        with pytest.raises(TimeoutError):
            planned.result(10)
        batches.home.restart()
        planned.result(LONG_S)
    assert batches.read() == ROWS


@pytest.mark.long
def test_a_later_attempt_of_a_task_writes_nothing_beside_what_the_earlier_one_has_left(
    batches: Batches,
) -> None:
    """InitProducerId aborts the earlier attempt's transaction while there is no leader."""
    plan = batches.planner.plan()
    reports = batches.write(plan)
    name = batches.describe(reports).transaction.transactional_id
    batches.stop_home()
    producer = batches.kafka.producer(name, 60_000)
    producer.init(Deadline(LONG_S))
    producer.close()
    batches.restart_home()
    with pytest.raises(ProduceFailedError, match="earlier attempt"):
        batches.write(plan, attempt=1)
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS


@pytest.mark.long
def test_a_repeated_decision_does_not_bring_back_the_rows_of_its_first_attempt(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch
) -> None:
    """InitProducerId aborts the driver's first attempt while there is no leader."""
    batches = make(**{"eos.inline.bytes": "2000"})
    reports = batches.write()
    init, commit = ConfluentProducer.init, ConfluentProducer.commit

    def commit_struck(_: ConfluentProducer, deadline: Deadline) -> None:
        monkeypatch.setattr(ConfluentProducer, "commit", commit)
        monkeypatch.setattr(ConfluentProducer, "init", init_struck)
        batches.stop_home()
        raise OutcomeUnknownError(f"No answer within {deadline.seconds} s.", remedy="Look.")

    def init_struck(producer: ConfluentProducer, deadline: Deadline) -> None:
        monkeypatch.setattr(ConfluentProducer, "init", init)
        init(producer, deadline)
        batches.restart_home()

    monkeypatch.setattr(ConfluentProducer, "commit", commit_struck)
    with pytest.raises(ProduceFailedError, match="earlier attempt"):
        batches.committer.commit(reports)
    batches.committer.abort(reports)
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS


# --- The coordinator of a task's id has no leader while the driver looks.


@pytest.fixture(scope="module")
def uncopied() -> Iterator[KafkaCluster]:
    """Each transactional id has a coordinator on one broker only."""
    copies = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}
    with start_own_kafka(brokers=3, properties=copies) as cluster:
        # The topic of the coordinators is created with the first transactional id.
        options = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "first"}
        Producer(options).init_transactions(LONG_S)
        yield cluster


class Coordinated(Batches):
    """Its first task's id is coordinated by a broker, `away`, that neither has partition 0 nor
    coordinates the query's next ids."""

    def __init__(self, cluster: KafkaCluster, **more: str) -> None:
        super().__init__(cluster, **more)
        found = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = found.list_topics(TRANSACTIONS, timeout=LONG_S).topics
        self._partitions = len(topics[TRANSACTIONS].partitions)
        self.away = self._choose()
        self.restart()

    def _choose(self) -> KafkaNode:
        """Move the coordinators; the first task's id must have a partition for itself."""

        def is_alone(query: str) -> bool:
            first, *others = self._coordinators(self._named(query))
            return first not in others

        what = "has a partition of the coordinators for its first task's id"
        self.options = self._named(unique_that("q", is_alone, what))
        first, *others = self._coordinators(self.options)
        away, other = (node.id for node in self.cluster.brokers if node is not self.home)
        copies = {**dict.fromkeys(others, other), first: away}
        move_only_copies(self.cluster, TRANSACTIONS, copies)
        return self.cluster.node(away)

    def _named(self, query: str) -> SinkOptions:
        given = {"kafka.bootstrap.servers": self.cluster.bootstrap_servers, "topic": self.topic}
        more = {"eos.id": query, "eos.inline.bytes": "0", "eos.step.timeout.ms": "20000"}
        return parse_options({**given, **more})

    def _coordinators(self, options: SinkOptions) -> list[int]:
        """The partitions of the ids, that of the first task first."""
        names = options.names
        # With the last one a start asks for its permission.
        ids = [names.task(0, 0), names.task(1, 0), names.driver, f"{names.group}-permission"]
        return [coordinator_partition(each, self._partitions) for each in ids]

    def fail_without_coordinator(self) -> None:
        """A new process plans while no broker answers for the first task's id."""
        self.away.stop()
        self.restart()
        self.fail_to_plan()
        self.away.restart()


@pytest.fixture
def coordinated(uncopied: KafkaCluster) -> Iterator[Coordinated]:
    with closed_after(Coordinated(uncopied, **{"eos.step.timeout.ms": "20000"})) as made:
        yield made


@pytest.mark.long
def test_aborted_rows_of_an_id_that_no_coordinator_tells_do_not_appear(
    coordinated: Coordinated,
) -> None:
    transaction = coordinated.describe(coordinated.write()).transaction
    coordinated.stop_home()
    name, deadline = transaction.transactional_id, Deadline(LONG_S)
    coordinated.kafka.control()._end({name: transaction}, False, deadline)
    coordinated.restart_home()
    coordinated.fail_without_coordinator()
    coordinated.committer.commit(coordinated.write())
    assert coordinated.read() == ROWS


@pytest.mark.long
def test_committed_rows_of_an_id_that_no_coordinator_tells_are_not_lost(
    coordinated: Coordinated, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_without_leader(coordinated, monkeypatch, coordinated.write())
    coordinated.committer.commit(coordinated.write(batch=1, partition=1))
    coordinated.fail_without_coordinator()
    coordinated.committer.abort(coordinated.write(batch=2))
    assert coordinated.read() == ROWS


@pytest.mark.long
def test_a_coordinator_that_is_gone_is_not_taken_for_one_without_transactions(
    coordinated: Coordinated,
) -> None:
    words = ["status", coordinated.options.names.query]
    words += ["--bootstrap-server", coordinated.cluster.bootstrap_servers]
    coordinated.write()
    coordinated.away.stop()
    seen = run_command(*words, "--json", expect=NOT_SEEN).document
    assert any("no coordinator that answers" in each["what"] for each in seen["not_seen"])
    coordinated.away.restart()
    run_command(*words, expect=RAN)


# --- The driver's own transaction.


def die_in_commit(batches: Batches, monkeypatch: pytest.MonkeyPatch, *, carried_out: bool) -> None:
    reports, commit = batches.write(), ConfluentProducer.commit

    def struck(producer: ConfluentProducer, deadline: Deadline) -> None:
        batches.stop_home()
        if carried_out:
            commit(producer, deadline)
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(ConfluentProducer, "commit", struck)
        with pytest.raises(Died):
            batches.committer.commit(reports)
    batches.restart()


@pytest.mark.long
@pytest.mark.parametrize("carried_out", [True, False], ids=["committed", "aborted"])
def test_rows_of_the_driver_end_as_its_transaction_did(
    make: Callable[..., Batches], monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    batches = make(**{"eos.inline.bytes": "65536", "eos.step.timeout.ms": "20000"})
    die_in_commit(batches, monkeypatch, carried_out=carried_out)
    # The driver's id is initialised while there is no leader.
    batches.fail_to_plan()
    batches.restart_home()
    batches.committer.commit(batches.write())
    assert batches.read() == ROWS
