"""Runs the demo, from its options to its result."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eos_sink_lab.demo import flights
from eos_sink_lab.demo.demo_result import DemoError, DemoResult, RunResult
from eos_sink_lab.demo.driver_program import DriverProgram
from eos_sink_lab.demo.run_watch import Watch
from eos_sink_lab.demo.strikes import Strike, plan_strikes
from eos_sink_lab.demo.struck_run import StruckRun
from eos_sink_lab.progress import Progress
from eos_sink_lab.testing import start_kafka
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.cluster_errors import DownloadError
from eos_sink_lab.testing.spark_jars import spark_kafka_jars
from eos_sink_lab.testing.topic_scan import ReaderError, Source
from eos_sink_lab.testing.watchdog import Watchdog

PARTITIONS = 6
LOG_TOPIC = "__eos_sink_log"

_ADMIN_TIMEOUT_S = 30.0
_FIND_TIMEOUT_S = 10.0
_MAX_REPLICATION = 3


@dataclass(frozen=True)
class DemoOptions:
    """The options of the command.

    Attributes:
        rows: the first so many flights.
        kills: SIGKILLs of the driver in each run.
        zombies: drivers that are frozen, replaced and woken in each run.
        seed: of the moments.
        keep: keep logs, checkpoints and topics.
        bootstrap: an existing cluster; None: start one.
        compare: run Spark's own sink too, if its jars can be had.
    """

    rows: int = flights.ALL_FLIGHTS
    kills: int = 3
    zombies: int = 1
    seed: int = 2013
    keep: bool = False
    bootstrap: str | None = None
    compare: bool = True


def run_demo(options: DemoOptions, progress: Progress) -> DemoResult:
    """Run both sides.

    Raises:
        DemoError: it cannot go on.
        eos_sink_lab.testing.TestClusterError: no Kafka can be started.
    """
    data = flights.prepare(cache_root(), options.rows)
    try:
        strikes = plan_strikes(len(data.batches), options.kills, options.zombies, options.seed)
    except ValueError as error:
        raise DemoError(f"--kills or --rows does not fit: {error}") from None
    progress.say(
        f"{data.rows:,} flights in {len(data.batches)} files, one file a micro-batch, "
        f"{PARTITIONS} partitions; seed {options.seed}"
    )
    work = Path(tempfile.mkdtemp(prefix="eos-demo-"))
    finished = False
    try:
        jars = _find_jars(progress) if options.compare else None
        with _kafka(options, progress) as bootstrap, contextlib.closing(Watchdog()) as watchdog:

            def run(name: str, sink: str, jars: Path | None = None) -> RunResult:
                topic = f"flights-{name}-{secrets.token_hex(3)}"
                program = DriverProgram(
                    name=name,
                    work=work / name,
                    flights=data.directory,
                    bootstrap=bootstrap,
                    topic=topic,
                    sink=sink,
                    watchdog=watchdog.environ,
                    jars=jars,
                )
                with _topic(bootstrap, topic, keep=options.keep):
                    return _run(program, data.batches, strikes, progress)

            ours = run("exactly-once", "kafka-eos")
            other = run("at-least-once", "kafka", jars) if jars else None
        finished = ours.perfect
        kept = str(work) if options.keep or not finished else None
        return DemoResult(ours, other, len(strikes), kept)
    except (KeyboardInterrupt, SystemExit):
        finished = True  # The logs of an interrupted demo are of no use.
        raise
    finally:
        if (finished or not any(work.rglob("driver-*.log"))) and not options.keep:
            shutil.rmtree(work, ignore_errors=True)
        else:
            progress.say(f"logs and checkpoints: {work}")


def _run(
    program: DriverProgram,
    batches: tuple[int, ...],
    strikes: tuple[Strike, ...],
    progress: Progress,
) -> RunResult:
    program.write_settings()
    progress.say(f"{program.name}: writeStream.format('{program.sink}') to topic {program.topic}")
    log_topic = LOG_TOPIC if program.sink == "kafka-eos" else None
    watch = Watch(Source(program.bootstrap, program.topic), batches, log_topic)
    try:
        return StruckRun(program, watch, batches, strikes, progress).run()
    except ReaderError as error:
        raise DemoError(f"The end of {program.topic} could not be read: {error}") from error
    finally:
        watch.close()


@contextlib.contextmanager
def _kafka(options: DemoOptions, progress: Progress) -> Iterator[str]:
    if options.bootstrap:
        yield options.bootstrap
        return
    with start_kafka(brokers=1, progress=progress.say) as cluster:
        progress.say(f"Kafka {cluster.version} runs at {cluster.bootstrap_servers}")
        yield cluster.bootstrap_servers


def _find_jars(progress: Progress) -> Path | None:
    try:
        return spark_kafka_jars(progress.say)
    except DownloadError as error:
        progress.say(f"{error}\nThere is no comparison without Spark's own sink.")
        return None


@contextlib.contextmanager
def _topic(bootstrap: str, topic: str, *, keep: bool) -> Iterator[None]:
    """Create a topic, and delete it at the end.

    Raises:
        DemoError: the cluster does not answer or refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    try:
        brokers = len(admin.list_topics(timeout=_FIND_TIMEOUT_S).brokers)
        new = NewTopic(topic, PARTITIONS, min(_MAX_REPLICATION, brokers))
        admin.create_topics([new])[topic].result(_ADMIN_TIMEOUT_S)
    except KafkaException as error:
        raise DemoError(
            f"Kafka does not create topic {topic}: {error.args[0]}. Does it answer at the given "
            "address, and may topics be created there?"
        ) from error
    try:
        yield
    finally:
        if not keep:
            with contextlib.suppress(Exception):  # A broker that is gone has nothing to delete.
                admin.delete_topics([topic])[topic].result(_ADMIN_TIMEOUT_S)
