"""`eos-sink bench`: the sink beside Spark's own, on whatever cluster it is given."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from eos_sink.bench.broker import start_broker
from eos_sink.bench.floor import FORMAT as FLOOR
from eos_sink.bench.place import Place
from eos_sink.bench.result import Notebook, Result
from eos_sink.bench.session import clock_of, kafka_jars, start_spark
from eos_sink.bench.shape import Shape
from eos_sink.bench.turn import Bench, TurnFailedError
from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.testing import KafkaCluster
from eos_sink.testing.kafka_files import DEFAULT_VERSION

OURS, THEIRS = "kafka-eos", "kafka"
_BOOTSTRAP = "bootstrap.servers"

Say = Callable[[str], None]


@dataclass(frozen=True)
class BenchOptions:
    """What is measured, and where.

    Attributes:
        kafka: settings of the clients as a query's options have them, names without `kafka.`;
            without `bootstrap.servers` a broker is started here.
        topic: to write to, which has to be there; None: one for each turn, deleted afterwards.
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


def run_bench(options: BenchOptions, say: Say) -> Result:
    """Measure; what was made on the cluster is removed, whatever happens.

    Raises:
        BenchError: a turn failed, or there was time for less than a round.
        EosSinkError: the cluster cannot be reached, or refuses something.
        TestClusterError: no broker can be started here.
    """
    deadline = Deadline(options.seconds)
    name = f"eos-sink-bench-{uuid.uuid4().hex[:10]}"
    with contextlib.ExitStack() as stack:
        kafka: KafkaCluster | None = None
        settings = dict(options.kafka)
        if _BOOTSTRAP not in settings:
            kafka = stack.enter_context(start_broker(DEFAULT_VERSION, say))
            settings[_BOOTSTRAP] = kafka.bootstrap_servers
        place = Place(settings)
        if options.topic is not None and not place.has(options.topic):
            raise BenchError(
                f"there is no topic {options.topic}: make it, or leave --topic out and one is made"
            )
        ours = {"eos.id": name, "eos.log.topic": f"{name}-log"}
        stack.enter_context(_cleaned(place, ours, say))
        jars = kafka_jars(say)
        say("Starting Spark ...")
        spark = start_spark(options.tasks, jars)
        stack.callback(spark.stop)
        notebook = Notebook("bench", kafka.version if kafka else "unknown", _parameters(options))
        sinks = (OURS, THEIRS, FLOOR) if jars else (OURS, FLOOR)
        scene = _Scene(options, place, ours, name, notebook)
        bench = Bench(spark, clock_of(spark, kafka), options.tasks)
        for number in range(options.rounds):
            if not _round(scene, bench, sinks if number % 2 == 0 else sinks[::-1], deadline, say):
                break
            say(f"Round {number + 1} of {options.rounds} is done.")
        result = notebook.result()
    if {each.labels["peer"] for each in result.series} < {*sinks}:
        raise BenchError(
            f"{options.seconds:.0f} s are too few for a round: fewer --rows, or a longer "
            "--time-limit"
        )
    return result


@dataclass(frozen=True)
class _Scene:
    options: BenchOptions
    place: Place
    ours: Mapping[str, str]
    name: str
    notebook: Notebook


def _round(
    scene: _Scene, bench: Bench, sinks: tuple[str, ...], deadline: Deadline, say: Say
) -> bool:
    """A turn of each; False if there was no time for all of them."""
    shape = scene.options.shape
    for sink in sinks:
        if deadline.passed:
            return False
        with _topic(scene) as topic:
            options = {**scene.place.options, **shape.options, "topic": topic}
            options.update(scene.ours if sink == OURS else {})
            try:
                turn = bench.turn(sink, shape, options, deadline)
            except TurnFailedError as failed:
                if not deadline.left:
                    say(f"The time is up amid a turn of {sink}.")
                    return False
                raise BenchError(str(failed)) from failed
        note = scene.notebook.note
        note("addBatch", "ms", *turn.add_batch_ms, peer=sink)
        note("trigger", "ms", *turn.trigger_ms, peer=sink)
        for whose, seconds in turn.cpu_s.items():
            note("cpu", "s/Mrow", seconds * 1e6 / shape.rows, peer=sink, whose=whose)
    return True


@contextlib.contextmanager
def _topic(scene: _Scene) -> Iterator[str]:
    if scene.options.topic is not None:
        yield scene.options.topic
        return
    name = f"{scene.name}-{uuid.uuid4().hex[:6]}"
    with scene.place.topic(name, scene.options.shape.partitions):
        yield name


@contextlib.contextmanager
def _cleaned(place: Place, ours: Mapping[str, str], say: Say) -> Iterator[None]:
    """Afterwards the decision log and the group of the measured queries are gone."""
    try:
        yield
    finally:
        parsed = parse_options({**place.options, **ours})
        try:
            if place.has(parsed.log_topic):
                place.delete(parsed.log_topic)
                place.forget(parsed.names)
        except ClusterError as error:
            say(str(error))


def _parameters(options: BenchOptions) -> dict[str, object]:
    shape = options.shape
    return {
        "rows": shape.rows,
        "value_bytes": shape.value_bytes,
        "key_bytes": shape.key_bytes,
        "headers": shape.headers,
        "partitions": None if options.topic else shape.partitions,
        "compression": shape.compression,
        "batches": shape.batches,
        "warm_up": shape.warm_up,
        "rounds": options.rounds,
        "tasks": options.tasks,
        "own_broker": _BOOTSTRAP not in options.kafka,
    }
