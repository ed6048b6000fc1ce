"""Random rows in every column: each arrives as it was given, or is refused on every path."""

from __future__ import annotations

import time
from collections import defaultdict
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eos_sink.errors import ClusterError, ConfigurationError, ProduceFailedError
from eos_sink.protocol.model import TaskReport
from eos_sink_lab.testing import KafkaCluster
from integration.checker import Seen, read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic
from tests import seeds
from tests.task.random_rows import Given, columns, is_good, pick, random_row

pytestmark = pytest.mark.long

BATCHES, ROWS = 40, 80
# Writes of one wrong row in each batch, which fail.
REFUSED = 2
PARTITIONS = 2
PATHS = {"native": ("true", "0"), "row by row": ("false", "0"), "inlined": ("true", "900000")}

# Seconds from now, or from 1970 if they are given as text.
TIMES = (None, 0, -86_400, 7_200, "1", "0", "-1")
Other = tuple[bytes | None, bytes | None, int | str | None]
Each = tuple[Given, Other]
Record = tuple[Any, ...]
"""Value, key and headers; partition and time, if the row gives them."""


def draw(random: Random) -> Each:
    content = [
        random.choice((None, b"", b"x" * 1_000, random.randbytes(random.randrange(40))))
        for _ in range(2)
    ]
    return random_row(random), (content[0], content[1], pick(random, TIMES))


def ms_of(when: int | str | None, now: int) -> int | None:
    if when is None:
        return None
    return int(when) * 1000 if isinstance(when, str) else now + when * 1000


def fits(each: Each) -> bool:
    """The topic takes times up to an hour ahead."""
    row, other = each
    there = row[2] is None or row[2] < PARTITIONS
    return is_good(row) and there and other[2] not in (7_200, "0", "-1")


def made(rows: list[Each], topic: str, now: int, cut: int, kind: Any) -> list[dict[str, Any]]:
    """Up to two Arrow batches, both of them slices that begin after another row."""
    rows = [rows[0], *rows]
    batch = columns([row for row, _ in rows], topic)
    values, keys, times = zip(*(other for _, other in rows), strict=True)
    micros = [None if (ms := ms_of(each, now)) is None else ms * 1000 for each in times]
    whole = {
        **{name: batch.column(name) for name in batch.schema.names},
        "value": pa.array(values, kind),
        "key": pa.array(keys, kind),
        "at": pa.array(micros, pa.timestamp("us", "UTC")),
    }
    spans = [(1, cut), (1 + cut, len(rows) - 1 - cut)]
    return [
        {name: column.slice(start, length) for name, column in whole.items()}
        for start, length in spans
        if length > 0
    ]


def record_of(each: Each, now: int) -> Record:
    (_, pairs, partition), (value, key, when) = each
    given = [(pair[0] or b"", pair[1]) for pair in pairs or () if pair is not None]
    headers = tuple((name.decode(), content) for name, content in given)
    return value, key, headers, partition, ms_of(when, now)


def assert_same(found: tuple[Seen, ...], wanted: list[Record]) -> None:
    """Each row is there once, and nothing else. Rows of one content may leave open which is which,
    so one that was found already gives way to another one (Kuhn's matching)."""
    groups = defaultdict[Any, tuple[list[Seen], list[Record]]](lambda: ([], []))
    for seen in found:
        groups[seen.value, seen.key, seen.headers][0].append(seen)
    for row in wanted:
        groups[row[:3]][1].append(row)
    for there, rows in groups.values():
        taken: dict[int, Record] = {}
        for row in rows:
            assert find_place(row, there, taken, set()), f"{row} is lost, of {there}"
        assert len(taken) == len(there), "there are more rows than were written"


def find_place(row: Record, there: list[Seen], taken: dict[int, Record], tried: set[int]) -> bool:
    partition, ms = row[3:]
    for n, seen in enumerate(there):
        same = partition in (None, seen.partition) and ms in (None, seen.timestamp[1])
        if not same or n in tried:
            continue
        tried.add(n)
        if n not in taken or find_place(taken[n], there, taken, tried):
            taken[n] = row
            return True
    return False


class Path:
    """The queries of one path, with a dead letter topic and without."""

    def __init__(self, kafka: KafkaCluster, run: MakeRun, native: str, inline: str) -> None:
        self._kafka = kafka
        self._inline = inline != "0"
        self._wanted: dict[str, list[Record]] = {}
        self._strict_topic, self._topic = (self._new_topic() for _ in range(2))
        self._letters = new_topic(kafka, "letters", 1)
        how = {
            "kafka_topic_metadata_propagation_max_ms": "200",
            "eos_timestamp_column": "at",
            "eos_native": native,
            "eos_inline_bytes": inline,
        }
        self._strict = run(kafka, **how)
        self._sorting = run(kafka, **how, eos_dead_letter_topic=self._letters)
        self._refused = self._inlined = 0

    def _new_topic(self) -> str:
        # Rows of 1970 are older than any other retention permits.
        topic = new_topic(self._kafka, "rows", PARTITIONS, retention_ms=-1)
        self._wanted[topic] = []
        return topic

    def write(self, rows: list[Each], now: int, cut: int, kind: Any) -> None:
        # The driver is not given the rows of several Arrow batches.
        cut = 0 if self._inline else cut
        good = [each for each in rows if fits(each)]
        records = [record_of(each, now) for each in good]
        report = self._sorting.write(*made(rows, self._topic, now, cut, kind))
        assert sum(report.dead_letters.values()) == len(rows) - len(good)
        self._note(report)
        self._refused += len(rows) - len(good)
        self._wanted[self._topic] += records
        if good:
            report = self._strict.write(*made(good, self._strict_topic, now, cut % len(good), kind))
            self._note(report)
            self._wanted[self._strict_topic] += records

    def _note(self, report: TaskReport) -> None:
        """A driver that is slow leaves more rows to the tasks."""
        assert self._inline or report.prepared
        self._inlined += report.prepared is None

    def refuse(self, row: Each, now: int, kind: Any) -> str:
        """Write one wrong row after a good one; the error's name."""
        good = ((self._strict_topic.encode(), None, None), (b"not alone", None, None))
        parts = made([good, row], self._strict_topic, now, 0, kind)
        with pytest.raises((ConfigurationError, ProduceFailedError, ClusterError)) as refused:
            self._strict.write(*parts)
        return refused.typename

    def check(self) -> None:
        """What a reader finds in the end."""
        assert bool(self._inlined) is self._inline
        for topic, wanted in self._wanted.items():
            assert_same(read_topic(self._kafka.bootstrap_servers, topic), wanted)
        assert len(read_topic(self._kafka.bootstrap_servers, self._letters)) == self._refused


def test_each_row_arrives_as_given_or_is_refused_whichever_way_it_goes(
    kafka: KafkaCluster, run: MakeRun
) -> None:
    paths = [Path(kafka, run, *how) for how in PATHS.values()]

    for number in range(BATCHES):
        random = seeds.chance(number)
        rows = [draw(random) for _ in range(ROWS)]
        cut, kind = random.randrange(ROWS), random.choice((pa.binary(), pa.large_binary()))
        now = int(time.time()) * 1000
        for path in paths:
            path.write(rows, now, cut, kind)
        for row in [each for each in rows if not fits(each)][:REFUSED]:
            answers = {path.refuse(row, now, kind) for path in paths}
            assert len(answers) == 1, f"{row}: {answers}"
    for path in paths:
        path.check()
