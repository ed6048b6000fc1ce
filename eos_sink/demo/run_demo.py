"""The demo from its options to its result."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eos_sink.demo import flights
from eos_sink.demo.demo_errors import DemoError
from eos_sink.demo.demo_events import DemoResult, Progress, SideResult
from eos_sink.demo.flights import Flights
from eos_sink.demo.launch import FALLBACK, Program
from eos_sink.demo.run_watch import Watch
from eos_sink.demo.side import Side
from eos_sink.demo.spark_jars import spark_kafka_jars
from eos_sink.demo.strikes import Strike, plan_strikes
from eos_sink.testing import start_kafka
from eos_sink.testing.cluster_errors import DownloadError
from eos_sink.testing.jar_cache import cache_root
from eos_sink.testing.topic_scan import ReaderError, Source
from eos_sink.testing.watchdog import Watchdog

PARTITIONS = 6
LOG_TOPIC = "__eos_sink_log"

_ADMIN_TIMEOUT_S = 30.0
_FIND_TIMEOUT_S = 10.0
_AUDIT_TIMEOUT_S = 120.0
_REPLICATION_AT_MOST = 3


@dataclass(frozen=True)
class DemoOptions:
    """What a user may choose.

    Attributes:
        rows: the first so many flights.
        kills: SIGKILLs of the driver in each run.
        zombies: drivers frozen, replaced and woken in each run.
        seed: where the moments are drawn from.
        keep: keep logs, checkpoints and topics.
        bootstrap: a cluster to use instead of one of the demo's own.
        compare: run Spark's own sink too.
    """

    rows: int = flights.ALL_FLIGHTS
    kills: int = 3
    zombies: int = 1
    seed: int = 2013
    keep: bool = False
    bootstrap: str | None = None
    compare: bool = True


@dataclass(frozen=True)
class _Contest:
    """What both runs have in common."""

    bootstrap: str
    flights: Flights
    strikes: tuple[Strike, ...]
    work: Path
    watchdog: Mapping[str, str]
    progress: Progress


def run_demo(options: DemoOptions, progress: Progress) -> DemoResult:
    """Run it all.

    Raises:
        DemoError: nothing can be shown; says why.
        eos_sink.testing.cluster_errors.TestClusterError: there is no Kafka to show it on.
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
        jars = _jars_of_spark(progress) if options.compare else None
        with _kafka(options, progress) as bootstrap, contextlib.closing(Watchdog()) as watchdog:
            contest = _Contest(bootstrap, data, strikes, work, watchdog.environ, progress)
            ours = _run_side(contest, "exactly-once", "kafka-eos", None, keep=options.keep)
            other = None
            if options.compare:
                sink = "kafka" if jars else FALLBACK
                other = _run_side(contest, "at-least-once", sink, jars, keep=options.keep)
        finished = ours.perfect
        kept = str(work) if options.keep or not finished else None
        return DemoResult(ours, other, len(strikes), kept)
    except (KeyboardInterrupt, SystemExit):  # nobody will look at an interrupted demo's logs
        finished = True
        raise
    finally:
        nothing_to_see = finished or not any(work.rglob("driver-*.log"))
        if nothing_to_see and not options.keep:
            shutil.rmtree(work, ignore_errors=True)
        else:
            progress.say(f"logs and checkpoints: {work}")


@contextlib.contextmanager
def _kafka(options: DemoOptions, progress: Progress) -> Iterator[str]:
    if options.bootstrap:
        yield options.bootstrap
        return
    with start_kafka(brokers=1, progress=progress.say) as cluster:
        progress.say(f"Kafka {cluster.version} runs at {cluster.bootstrap_servers}")
        yield cluster.bootstrap_servers


def _jars_of_spark(progress: Progress) -> Path | None:
    try:
        return spark_kafka_jars(progress.say)
    except DownloadError as error:
        progress.say(f"{error}\nA small at-least-once writer in Python takes its place.")
        return None


def _run_side(
    contest: _Contest, name: str, sink: str, jars: Path | None, *, keep: bool
) -> SideResult:
    topic = f"flights-{name}-{secrets.token_hex(3)}"
    admin = AdminClient({"bootstrap.servers": contest.bootstrap, "log_level": 2})
    _create_topic(admin, topic)
    work = contest.work / name
    program = Program(
        name,
        work,
        contest.flights.directory,
        contest.bootstrap,
        topic,
        sink,
        contest.watchdog,
        jars,
    )
    program.write_settings()
    contest.progress.say(f"{name}: writeStream.format('{sink}') to topic {topic}")
    batches = contest.flights.batches
    log_topic = LOG_TOPIC if sink == "kafka-eos" else None
    watch = Watch(Source(contest.bootstrap, topic), batches, log_topic)
    try:
        toll = Side(program, watch, batches, contest.strikes, contest.progress).run()
        found = watch.audit(_AUDIT_TIMEOUT_S)
    except ReaderError as error:
        raise DemoError(f"The reader did not get to the end of {topic}: {error}") from error
    finally:
        watch.close()
        if not keep:
            _delete_topic(admin, topic)
    return SideResult(
        name=name,
        sink=f"format('{sink}')",
        audit=found,
        kills=toll.kills,
        mid_commit=toll.mid_commit,
        zombies=len(toll.zombies),
        refused=toll.refused,
        restarts=toll.restarts,
        seconds=toll.seconds,
    )


def _create_topic(admin: AdminClient, topic: str) -> None:
    """Raises DemoError: no such cluster, or it refuses."""
    try:
        brokers = len(admin.list_topics(timeout=_FIND_TIMEOUT_S).brokers)
        copies = min(_REPLICATION_AT_MOST, brokers)
        for done in admin.create_topics([NewTopic(topic, PARTITIONS, copies)]).values():
            done.result(_ADMIN_TIMEOUT_S)
    except KafkaException as error:
        raise DemoError(
            f"Kafka does not create topic {topic}: {error.args[0]}. Does it answer at the given "
            "address, and may topics be created there?"
        ) from error


def _delete_topic(admin: AdminClient, topic: str) -> None:
    for done in admin.delete_topics([topic]).values():
        with contextlib.suppress(Exception):  # a broker that is gone has nothing to delete
            done.result(_ADMIN_TIMEOUT_S)
