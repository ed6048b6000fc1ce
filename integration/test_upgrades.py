"""Upgrades from each released version and downgrades to it, in the middle of a batch too.

The released version is its own wheel with its own minispark (`integration.releases`); a crash is a
real SIGKILL, and a read_committed reader judges. docs/upgrades.md says what is promised.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from eos_sink.decision_log.codec import decode, encode
from eos_sink.errors import (
    BatchFailedError,
    OperatorNeededError,
    ProduceFailedError,
    SupersededError,
)
from eos_sink.kafka_config.java_settings import SETTINGS
from eos_sink.options import OPTIONS, Kind, kind_of
from eos_sink.protocol.model import LogRecord
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.faults import FaultPoint
from integration.query import INLINE_BYTES, PARTITIONS, ROWS, Query, rows_of
from integration.refused_rows import Sorted
from integration.releases import RELEASES, release_site
from integration.spark_apps import Applications
from integration.spark_query import SparkQuery
from integration.topics import unique
from tests.snippets import ROOT

pytestmark = pytest.mark.timeout(600)

Shape = Callable[[Query], None]

BOTH_WAYS = pytest.mark.parametrize("old_first", [True, False], ids=["upgrade", "downgrade"])


@pytest.fixture(scope="module", params=RELEASES)
def site(request: pytest.FixtureRequest) -> Path:
    version: str = request.param
    return release_site(version)


@pytest.fixture
def query(query: Query) -> Query:
    """An older version refuses a log with what queries of other tests write, in a newer format."""
    query.own_log()
    return query


def transactions(query: Query) -> None:
    """Each task opens one."""


def inline(query: Query) -> None:
    """The driver writes all rows."""
    query.inline()


def mixed(query: Query) -> None:
    """Three tasks with several Arrow batches, and two of a single row."""
    query.change({"eos.inline.bytes": str(INLINE_BYTES)})
    query.batches = [rows_of(batch, (ROWS,) * PARTITIONS + (1, 1)) for batch in range(3)]


BETWEEN_BATCHES = FaultPoint.PLANNER_READ_BEFORE
PREPARED = FaultPoint.COMMITTER_VOTE_BEFORE
DECIDING = FaultPoint.COMMITTER_WRITE_BEFORE
DECIDED = FaultPoint.COMMITTER_WRITE_AFTER
SETTLING = FaultPoint.COMMITTER_SETTLE_AMID
SETTLED = FaultPoint.COMMITTER_SETTLE_AFTER
"""Spark has not written its commit log."""

WHOLE = (BETWEEN_BATCHES, PREPARED, DECIDING, DECIDED, SETTLING, SETTLED)
CRASHES = [
    *((transactions, point) for point in WHOLE),
    *((mixed, point) for point in WHOLE),
    *((inline, point) for point in (BETWEEN_BATCHES, DECIDING, DECIDED)),
]
QUICK = (mixed, DECIDED)


def crashes() -> Iterator[Any]:
    for shape, point in CRASHES:
        for old_first in (True, False):
            quick = old_first and (shape, point) == QUICK
            order = "upgrade" if old_first else "downgrade"
            yield pytest.param(
                shape,
                point,
                old_first,
                id=f"{order}-{shape.__name__}-{point.value}",
                marks=[] if quick else [pytest.mark.long],
            )


def crash(query: Query, point: FaultPoint, batch: int) -> None:
    last = len(query.batches[batch]) - 1
    partition = -1 if point is BETWEEN_BATCHES else last
    query.run_killed_at(point, batch, partition)


@pytest.mark.parametrize(("shape", "point", "old_first"), list(crashes()))
def test_the_other_version_continues_where_one_was_killed(
    query: Query, site: Path, shape: Shape, point: FaultPoint, old_first: bool
) -> None:
    shape(query)
    first, second = (site, None) if old_first else (None, site)
    query.site = first
    crash(query, point, batch=1)
    query.site = second
    crash(query, point, batch=2)
    query.site = first
    query.finish()
    query.check()


@pytest.mark.long
@pytest.mark.parametrize("shape", [transactions, mixed])
@BOTH_WAYS
def test_the_other_version_writes_lost_partitions_again(
    query: Query, site: Path, shape: Shape, old_first: bool
) -> None:
    shape(query)
    query.site = site if old_first else None
    crash(query, DECIDED, batch=1)
    query.take_id(query.slot(), 1)
    query.site = None if old_first else site
    query.finish()
    query.check()


@pytest.mark.long
@pytest.mark.parametrize("refused", ["topic", "size"])
def test_a_version_without_dead_letters_finishes_a_batch_with_some(
    query: Query, kafka: KafkaCluster, site: Path, refused: str
) -> None:
    """It compares the replay by digests, and writes no row of it."""
    rows = Sorted(kafka, query, refused)
    query.batches = [rows.rows(batch, [8, 7, 2]) for batch in range(2)]
    crash(query, DECIDED, batch=1)
    query.site = site
    query.drop("eos.dead.letter.topic")
    query.finish()
    rows.check_rows()


@pytest.mark.long
def test_a_version_without_dead_letters_stops_where_it_would_have_to_write_one(
    query: Query, kafka: KafkaCluster, site: Path
) -> None:
    rows = Sorted(kafka, query, "size")
    query.batches = [rows.rows(batch, [8, 7, 2]) for batch in range(2)]
    crash(query, DECIDED, batch=1)
    query.take_id(query.slot(), 1)
    query.site = site
    query.drop("eos.dead.letter.topic")
    query.run().stopped(ProduceFailedError)
    query.site = None
    query.change({"eos.dead.letter.topic": rows.letters})
    query.finish()
    rows.check_rows()


@pytest.mark.long
@pytest.mark.parametrize("inline_bytes", ["0", "65536"])
def test_real_spark_continues_the_checkpoint_with_the_other_version(
    spark_query: SparkQuery, applications: Applications, site: Path, inline_bytes: str
) -> None:
    query = spark_query
    query.options |= {"eos.inline.bytes": inline_bytes, "eos.log.topic": unique("log")}
    query.add_batch()
    query.add_batch()
    query.crash(DECIDED, application=applications.another(site=site))
    query.finish()
    query.assert_exactly_once()
    query.add_batch()
    query.add_batch()
    query.crash(DECIDED)
    released = applications.another(site=site)
    query.options["eos.dead.letter.topic"] = "letters"
    refused = query.program(application=released).stopped()
    assert "Unknown option 'eos.dead.letter.topic'" in refused
    del query.options["eos.dead.letter.topic"]
    query.program(application=released).finished()
    query.assert_exactly_once()


@pytest.mark.long
@BOTH_WAYS
def test_the_other_version_stops_at_a_replay_with_other_rows(
    query: Query, site: Path, old_first: bool
) -> None:
    query.site = site if old_first else None
    crash(query, SETTLED, batch=1)
    (query.checkpoint / "offsets" / "1").write_text(json.dumps(rows_of(1, (ROWS, ROWS, ROWS + 1))))
    query.site = None if old_first else site
    query.run().stopped(OperatorNeededError)
    query.check(batches=2)


@pytest.mark.long
@pytest.mark.parametrize("point", [FaultPoint.TASK_OFFSET_BEFORE, DECIDING])
@BOTH_WAYS
def test_a_zombie_of_the_other_version_changes_nothing(
    query: Query, site: Path, point: FaultPoint, old_first: bool
) -> None:
    query.site = site if old_first else None
    zombie = query.run_paused_at(point)
    query.site = None if old_first else site
    running = query.run_paused_at(BETWEEN_BATCHES, batch=2, partition=-1)
    query.refuses(zombie, SupersededError, BatchFailedError)
    running.wake()
    running.finished()
    query.check()


@pytest.mark.long
@BOTH_WAYS
def test_status_of_each_version_reads_the_record_of_the_other(
    query: Query, kafka: KafkaCluster, site: Path, old_first: bool
) -> None:
    """Apart from times, which are those of two calls, and from what the old one does not know."""
    mixed(query)
    query.site = site if old_first else None
    crash(query, DECIDED, batch=1)
    name = query.options.names.query
    log = query.options.log_topic
    old, new = (status(path, kafka, name, log) for path in (site, ROOT))
    # 0.1.0 judges by the process alone, although the driver's member is still listed.
    assert (old.pop("driver"), new["driver"]) == ("gone", "live")
    # 0.1.0 has other keys for these.
    batch, run = old.pop("batch"), old.pop("owner")
    assert (new["batch"], new["stream"]) == (batch["number"], batch["stream"])
    assert str(new["run"]["pid"]) in run
    assert old == {key: new.get(key) for key in old}
    assert (old["outcome"], old["rows"]) == ("open", PARTITIONS * ROWS + 2)
    query.site = None
    query.finish()


def status(path: Path, kafka: KafkaCluster, query: str, log: str) -> dict[str, Any]:
    command = ["-m", "eos_sink", "status", query, "--log-topic", log, "--json"]
    said = run_python(path, *command, "--bootstrap-server", kafka.bootstrap_servers, good=(0, 1))
    (found,) = json.loads(said)["queries"]
    for each in found["open"]:
        del each["age_ms"], each["left_ms"]
    known: dict[str, Any] = found
    return known


def run_python(path: Path, *words: str, good: tuple[int, ...] = (0,), stdin: str = "") -> str:
    """What Python prints with this version of the sink."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=path,
        env={**os.environ, "PYTHONPATH": str(path)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in good, done.stderr
    return done.stdout


# --- Without a broker.

LIST_OPTIONS = """
import json
from importlib.metadata import version
from eos_sink import options
from eos_sink.kafka_config.java_settings import SETTINGS
print(json.dumps({
    "version": version("eos-sink"),
    "file": options.__file__,
    "options": {each.name: each.default for each in options.OPTIONS},
    "others": sorted(options._SPARK_OPTIONS | options._SOURCE_OPTIONS),
    "settings": {each.name: each.handling.value for each in SETTINGS},
}))
"""


def test_each_option_of_a_release_is_an_option_with_the_same_default(site: Path) -> None:
    old = json.loads(run_python(site, "-c", LIST_OPTIONS))
    assert site.name.startswith(f"{old['version']}-")
    assert Path(old["file"]).is_relative_to(site)
    now = {option.name: option.default for option in OPTIONS}
    assert old["options"].items() <= now.items()
    assert {kind_of(name) for name in old["others"]} <= {Kind.SPARK, Kind.SOURCE}
    accepted = {"same", "translated", "ignored"}
    settings = {each.name for each in SETTINGS if each.handling.value in accepted}
    assert {name for name, how in old["settings"].items() if how in accepted} <= settings


LIST_NAMES = """
from itertools import product
from eos_sink.identity import QueryNames, batch_identity, query_identity
where = ["/a", "file:///a/", "hdfs:/x", "HDFS:///./x", "s3a://key:secret@bucket/a?b=c",
         "abfss://container@account.dfs.core.windows.net/a", "/Ärger/b c//d", None]
for given in product([None, "id", "an id/1"], where, [None, "a name"]):
    if any(given):
        names = QueryNames("eos-sink-", query_identity(*given))
        print(names.query, names.group, names.log_key, names.driver, names.task(1, 7), sep="\\t")
for given in product([None, "id"], [None, "app"], [None, "topic"]):
    print(batch_identity(*given))
"""


def test_a_query_has_the_same_names_in_kafka(site: Path) -> None:
    old, new = (run_python(path, "-c", LIST_NAMES) for path in (site, ROOT))
    assert len(old.splitlines()) == 3 * 8 * 2 - 1 + 8
    assert old == new


REWRITE_RECORDS = """
import sys
from eos_sink.decision_log.codec import decode, encode
for line in sys.stdin:
    print(encode(decode(line.encode(), "here")).decode(), flush=True)
"""

IGNORED = {
    "decision.complete": "a release stops again, since the replay has other partitions",
    "decision.completed": "a release stops, since no replay has these partitions",
    "decision.dead_letters": "the digests, by which a replay is compared, count these rows",
    "given_up": "only how many rows the driver takes; a release hands over as many as before",
    "owner.boot": "a release writes a run of its own, whose process is not known here then",
    "owner.pid_namespace": "as with the boot id",
    "stats.counts.dead_letters": "a figure",
}
"""What a release leaves out of a record that it reads and writes again, and why no row is lost or
written twice then."""


def test_a_release_keeps_all_that_a_record_says(site: Path) -> None:
    """A driver writes a decision again that it has read, and counts replays by it. A key that an
    older version does not know would be lost, silently."""
    records: list[str] = []
    st.register_type_strategy(int, st.integers(0, 2**63 - 1))

    @settings(
        max_examples=300,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.from_type(LogRecord))
    def collect(record: LogRecord) -> None:
        # A record with source offsets is refused.
        line = encode(replace(record, source=None))
        assume(record.prefix and encode(decode(line, "here")) == line)
        records.append(line.decode())

    collect()
    rewritten = run_python(site, "-c", REWRITE_RECORDS, stdin="\n".join(records) + "\n")
    for before, after in zip(records, rewritten.splitlines(), strict=True):
        assert missing_paths(json.loads(before), json.loads(after)) == set(), before


def missing_paths(before: Any, after: Any, path: str = "") -> set[str]:
    """Where `after` does not say the same, apart from what is ignored."""
    if before == after or path in IGNORED:
        return set()
    if not isinstance(before, dict):
        return {path}
    found: set[str] = set()
    for key in before:
        there = after.get(key) if isinstance(after, dict) else None
        found |= missing_paths(before[key], there, f"{path}.{key}".strip("."))
    return found
