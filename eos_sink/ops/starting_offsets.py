"""Finds where a new checkpoint has to begin, for the source's option `startingOffsets`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from enum import Enum

from eos_sink.decision_log import DecisionRegister
from eos_sink.decision_log.hanging import end_in_log
from eos_sink.decision_log.start_notes import read_note, write_note
from eos_sink.driver.checkpoint_files import CheckpointFiles
from eos_sink.driver.reconcile import settle
from eos_sink.driver.source_reader import SourceReader
from eos_sink.driver.topics import list_partitions, read_logs
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.messages import Reason, as_json, named, stop
from eos_sink.options import parse_batch_options, parse_options
from eos_sink.protocol.model import BatchId, LogRecord, SourcePosition, StartNote
from eos_sink.protocol.reconcile import View
from eos_sink.protocol.source_rules import has_written_as_query, is_untracked
from eos_sink.protocol.values import Offsets, Place
from eos_sink.sink_options import SinkOptions, SourceOptions

Connect = Callable[[ClusterConfig], Kafka]

_EARLIEST, _LATEST = -2, -1
_LOGGER = logging.getLogger("eos_sink.ops")


class Default(Enum):
    """The beginning of topics that the decision log does not know."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    """At the offsets of the group, and with their first rows if it has none."""


def find_starting_offsets(
    given: Mapping[str, str],
    default: str,
    connect: Connect = ConfluentKafka,
    files: CheckpointFiles | None = None,
) -> str:
    """See `eos_sink.starting_offsets`.

    Args:
        given: the options of the sink and of the source.
        default: a value of `Default`.
        connect: makes the clients.
        files: Spark's checkpoint; None: the one at its location.
    """
    if default not in [each.value for each in Default]:
        defaults = ", ".join(repr(each.value) for each in Default)
        raise stop(Reason.WRONG_DEFAULT, default=default, defaults=defaults)
    queries = [parse_options(given)]
    own = queries[0]
    if own.origin.eos_id is not None:
        # A query that writes within foreachBatch has another identity than one that writes by
        # itself. Without eos.id it may be another query's.
        queries.append(parse_batch_options(given).sink)
    source = own.source
    if source is None:
        raise stop(Reason.NO_SOURCE_GROUP)
    with closing(connect(own.cluster)) as kafka:
        first, *others = (_Query(kafka, options, source, files) for options in queries)
        # Batch writes share its names, and say nothing about a query.
        written = [each for each in (first, *others) if has_written_as_query(each.record)]
        latest = max(written, key=_Query.knows_most, default=first)
        # No checkpoint has begun that would have to be deleted.
        with named(latest.names, own.log_topic, source=source, location=None):
            return json.dumps(as_json(latest.find(Default(default))))


class _Query:
    """A query that is about to start."""

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        source: SourceOptions,
        files: CheckpointFiles | None,
    ) -> None:
        self._kafka, self._source = kafka, source
        self.names = options.names
        self._reader = SourceReader(kafka, options, source, files)
        self._deadline = Deadline(options.step_timeout)
        with closing(DecisionRegister(kafka, options.names)) as register:
            home, names = register.connect(self._deadline).home, options.names
            end_in_log(kafka, [names.driver, names.start], home, self._deadline)
            self._entry = register.read(self._deadline)

    @property
    def record(self) -> LogRecord:
        return self._entry.record

    def knows_most(self) -> tuple[bool, bool, int]:
        """The largest is of the identity that has written last, or of one that may have."""
        record, known = self.record, self.record.source
        progress = -1 if known is None else known.progress
        return is_untracked(record), not record.is_left, progress

    def find(self, default: Default) -> dict[Place, int]:
        """The offset at which each partition begins; Spark's -2 and -1 for the ends of its log."""
        files, group = self._reader.files, self._source.group
        stream, number = files.stream_id(), files.latest_batch()
        has_checkpoint = stream is not None and number is not None
        reached: Offsets = {}
        known = note = read_note(self._kafka, group, self._deadline)
        is_unknown = not has_written_as_query(self.record)
        if is_unknown:
            note = self._look(known)
            reached = note.begins if note else {}
        elif not has_checkpoint:
            # Else Spark ignores startingOffsets, and the sink checks where the checkpoint begins.
            reached = self._check_new().reached
        elif self.record.source is not None:
            reached = self.record.source.reached
        committed: Offsets = {}
        if default is Default.COMMITTED and not has_checkpoint:
            committed = self._read_group(reached)
        otherwise = _LATEST if default is Default.LATEST else _EARLIEST
        topics = {topic for topic, _ in reached}
        places = self._list_partitions(topics)
        if note is not None:
            ids = self._kafka.topic_ids({topic for topic, _ in places}, self._deadline)
            former = known.topics if known else {}
            # A topic that was made again since is read from its first row.
            again = {topic for topic in ids if former.get(topic) != ids[topic]}
            begins = {place: at for place, at in note.begins.items() if place[0] not in again}
            reached = begins if is_unknown else reached
            # The offsets of a checkpoint are of the topics that were there then.
            goes_on = known and has_checkpoint and known.stream in ("", stream)
            kept = former if goes_on else {}
            note = replace(note, begins=begins, topics={**former, **ids, **kept})
            if note != known:
                write_note(self._kafka, self.names, group, note, self._deadline)
        found: dict[Place, int] = {}
        for place in places:
            unknown = _EARLIEST if place[0] in topics else committed.get(place, otherwise)
            found[place] = reached.get(place, unknown)
        return found

    def _read_group(self, known: Offsets) -> Offsets:
        """The group's offsets where the log does not know the position, in topics that are read."""
        group = self._source.group
        committed = self._kafka.group_offsets(group, self._deadline)
        topics = self._source.topics
        begins = {
            place: offset
            for place, offset in committed.items()
            if place not in known and (topics is None or topics.selects(place[0]))
        }
        logs = read_logs(self._kafka, None, self._deadline, begins)
        if absent := sorted(begins.keys() - logs.bounds.keys()):
            # No tool deletes them: Kafka does, with the topic, unless it has missed that.
            _LOGGER.warning(
                "Query %s: group %s has offsets of partitions that do not exist: %s. They are left "
                "out.",
                self.names.query,
                group,
                ", ".join(f"{topic}[{number}]" for topic, number in absent),
            )
        there = {place: begins[place] for place in begins if place in logs.bounds}
        position = SourcePosition(group, BatchId("", -1), there, there)
        if gone := logs.find_gone(position, lambda _: True):
            raise stop(Reason.ROWS_GONE_BEFORE_GROUP, places_gone=gone)
        return there

    def _look(self, known: StartNote | None) -> StartNote | None:
        """Return what to note of the checkpoint of a query that the log does not know; None: it
        goes on from a former identity.

        Raises:
            OperatorNeededError: a batch is there unfinished.
        """
        files = self._reader.files
        stream, number = files.stream_id() or "", files.latest_batch()
        is_done = number is not None and files.latest_commit() == number
        begun = None if number is None else BatchId(stream, number + is_done)
        if self._reader.check_former(self.record, begun, self._deadline) and not is_done:
            return None
        if begun is None:
            # Where a first batch has begun that was there unfinished, the next one begins.
            # Its directory may have lost only its offsets.
            former = (known.stream, known.gone) if known else ()
            gone = next((each for each in former if each not in {"", None, stream}), None)
            return StartNote(stream, 0, known.begins if known else {}, gone=gone)
        if not is_done:
            raise self._reader.refuse_begun(begun, known, self._deadline)
        return StartNote(stream, begun.batch)

    def _check_new(self) -> SourcePosition:
        """The position at which a new checkpoint begins.

        Raises:
            OperatorNeededError, ConfigurationError: it is not known, or something contradicts it.
        """
        # As with the start of the query.
        view = settle(self._kafka, View.of(self.names, self._entry), self._deadline)
        return self._reader.find_begin(self.record, view.lost, self._deadline)

    def _list_partitions(self, known: Iterable[str]) -> list[Place]:
        selected = self._source.topics
        named = frozenset[str]()
        if selected is None:
            names = frozenset(known)
        elif selected.names is not None:
            names = named = frozenset(selected.names)
        else:
            there = self._kafka.topic_ids(None, self._deadline)
            names = frozenset(filter(selected.selects, there))
        if not names:
            raise stop(Reason.NO_SOURCE_TOPIC)
        places = list_partitions(self._kafka, names, self._deadline, "Read")
        if missing := named - {topic for topic, _ in places}:
            raise stop(Reason.SOURCE_TOPIC_MISSING, topic=min(missing))
        return [each for each in places if selected is None or selected.reads(each)]
