"""`eos-sink bench`: the sink beside Spark's own, on a broker started here or a given cluster."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from eos_sink.bench.bench_cluster import BenchCluster, start_broker
from eos_sink.bench.floor import FORMAT as FLOOR
from eos_sink.bench.result import Notebook, Result
from eos_sink.bench.shape import Shape
from eos_sink.bench.spark_turns import Bench, TurnFailedError, find_kafka_jars
from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.testing.kafka_files import DEFAULT_VERSION
from eos_sink.testing.local_cluster import LocalCluster
from eos_sink.testing.waiting import Progress

OURS, THEIRS = "kafka-eos", "kafka"
_BOOTSTRAP = "bootstrap.servers"


@dataclass(frozen=True)
class BenchOptions:
    """What is measured, and where.

    Attributes:
        kafka: client settings, names without `kafka.`; without `bootstrap.servers` a broker is
            started here.
        topic: an existing topic to write to; None: one for each turn, deleted afterwards.
        shape: of rows and batches.
        rounds: turns of each sink.
        tasks: that run at the same time.
        seconds: no turn begins after these, and the one that runs is ended.
    """

    kafka: Mapping[str, str]
    topic: str | None
    shape: Shape
    rounds: int
    tasks: int
    seconds: float


class BenchError(Exception):
    """Nothing was measured; the message says why and what helps."""


def run_bench(options: BenchOptions, progress: Progress) -> Result:
    """Measure, and remove what was created on the cluster, whatever happens.

    Raises:
        BenchError: a turn failed, or there was time for less than a round.
        EosSinkError: the cluster cannot be reached, or refuses something.
        TestClusterError: no broker can be started here.
    """
    deadline = Deadline(options.seconds)
    name = f"eos-sink-bench-{uuid.uuid4().hex[:10]}"
    identity = {"eos.id": name, "eos.log.topic": f"{name}-log"}
    with contextlib.ExitStack() as stack:
        kafka: LocalCluster | None = None
        settings = dict(options.kafka)
        if _BOOTSTRAP not in settings:
            kafka = stack.enter_context(start_broker(DEFAULT_VERSION, progress))
            settings[_BOOTSTRAP] = kafka.bootstrap_servers
        cluster = BenchCluster(settings)
        if options.topic is not None and not cluster.has_topic(options.topic):
            raise BenchError(
                f"there is no topic {options.topic}: create it, or leave --topic out and one is "
                "created"
            )
        stack.enter_context(_cleaned_up(cluster, identity, progress))
        jars = find_kafka_jars(progress)
        progress("Starting Spark ...")
        bench = stack.enter_context(contextlib.closing(Bench(options.tasks, jars, kafka)))
        notebook = Notebook("bench", kafka.version if kafka else "unknown", _parameters(options))
        sinks = (OURS, THEIRS, FLOOR) if jars else (OURS, FLOOR)
        try:
            for number in range(options.rounds):
                for sink in sinks if number % 2 == 0 else sinks[::-1]:
                    own = identity if sink == OURS else {}
                    _turn(options, cluster, bench, notebook, sink, own, deadline)
                progress(f"Round {number + 1} of {options.rounds} is done.")
        except _TimeIsUpError:
            progress("The time is up.")
        result = notebook.result()
    if {each.labels["peer"] for each in result.series} < {*sinks}:
        raise BenchError(
            f"{options.seconds:.0f} s are too few for a round: fewer --rows, or a longer "
            "--time-limit"
        )
    return result


class _TimeIsUpError(Exception):
    pass


def _turn(  # noqa: PLR0913, PLR0917 - the parts of run_bench
    options: BenchOptions,
    cluster: BenchCluster,
    bench: Bench,
    notebook: Notebook,
    sink: str,
    own: Mapping[str, str],
    deadline: Deadline,
) -> None:
    if deadline.passed:
        raise _TimeIsUpError
    shape = options.shape
    with contextlib.ExitStack() as stack:
        topic = options.topic
        if topic is None:
            name = f"eos-sink-bench-{uuid.uuid4().hex[:16]}"
            topic = stack.enter_context(cluster.topic(name, shape.partitions))
        given = {**cluster.options, **shape.options, "topic": topic, **own}
        try:
            turn = bench.turn(sink, shape, given, deadline)
        except TurnFailedError as failed:
            if deadline.passed:
                raise _TimeIsUpError from failed
            raise BenchError(str(failed)) from failed
    notebook.note("addBatch", "ms", *turn.add_batch_ms, peer=sink)
    notebook.note("trigger", "ms", *turn.trigger_ms, peer=sink)
    for whose, seconds in turn.cpu_s.items():
        notebook.note("cpu", "s/Mrow", seconds * 1e6 / shape.rows, peer=sink, whose=whose)


@contextlib.contextmanager
def _cleaned_up(
    cluster: BenchCluster, identity: Mapping[str, str], progress: Progress
) -> Iterator[None]:
    """Afterwards delete the decision log and the group of the measured queries."""
    try:
        yield
    finally:
        parsed = parse_options({**cluster.options, **identity})
        try:
            if cluster.has_topic(parsed.log_topic):
                cluster.delete_topic(parsed.log_topic)
                cluster.delete_group(parsed.names)
        except ClusterError as error:
            progress(str(error))


def _parameters(options: BenchOptions) -> dict[str, object]:
    shape = {name: value for name, value in asdict(options.shape).items() if name != "name"}
    return {
        **shape,
        "partitions": None if options.topic else options.shape.partitions,
        "rounds": options.rounds,
        "tasks": options.tasks,
        "own_broker": _BOOTSTRAP not in options.kafka,
    }
