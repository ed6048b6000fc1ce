"""The source's offsets of a batch: read from Spark's checkpoint, with the facts for `handover`.

The planner compares at the first plan of a process, before anything is written. The committer
compares again before it decides, since another driver may have moved the position since.
"""

from __future__ import annotations

from dataclasses import replace

from eos_sink.decision_log.start_notes import read_note, write_note
from eos_sink.driver.checkpoint_files import CheckpointFiles, await_begun, check_query
from eos_sink.driver.group_claims import find_movers, find_writers
from eos_sink.driver.topics import await_readers, read_logs
from eos_sink.errors import EosSinkError, OperatorNeededError
from eos_sink.identity import QueryNames, shown_location
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Unseen
from eos_sink.kafka_config.acls import Permissions
from eos_sink.messages import Reason, stop
from eos_sink.protocol.handover import (
    Handover,
    check_foreign_group,
    check_replay,
    first_position,
    judge,
    of_old_topics,
)
from eos_sink.protocol.model import (
    NO_CLAIMS,
    BatchId,
    LogRecord,
    Numbering,
    SourcePosition,
    StartNote,
)
from eos_sink.protocol.rules import moved_checkpoint
from eos_sink.protocol.source_rules import (
    SourceBatch,
    has_gone_on,
    has_written_as_query,
    is_new_stream,
    is_untracked,
    returns_to_start,
)
from eos_sink.protocol.values import Offsets
from eos_sink.sink_options import SinkOptions, SourceOptions


class SourceReader:
    """Reads and checks the source's offsets of one query's batches.

    Attributes:
        files: of the checkpoint.
        claims: of the group, as it was looked for other identities that move it.
    """

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        source: SourceOptions,
        files: CheckpointFiles | None = None,
    ) -> None:
        self._kafka = kafka
        self._options = options
        self._names = options.names
        self._numbering = Numbering.FOREACH if options.origin.batch else Numbering.STREAM
        self._source = source
        self.claims = NO_CLAIMS
        self._stateless = ""
        if files is None:
            from eos_sink.checkpoint import Checkpoint

            files = Checkpoint(source.checkpoint, source.topics)
        self.files = files

    @property
    def stream(self) -> str | None:
        """Spark's id of the query, of the checkpoint that it has now."""
        return self.files.stream_id()

    def read(self, record: LogRecord, batch: BatchId, deadline: Deadline) -> SourceBatch:
        """Return the offsets of a batch that Spark has begun.

        Raises:
            ConfigurationError: the checkpoint is another query's, or lacks a file.
        """
        end = self.files.end_offsets(batch.batch)
        if end is None:
            raise self._damaged(record, batch, f"has no offsets of {batch}")
        others = self.files.reads_others(batch.batch)
        # Never taken from the log: Spark may have made the batch before this one again, with
        # another end, after a part of its checkpoint was lost.
        before = self._begin_of(batch.batch)
        if before is None:
            raise self._damaged(record, batch, f"does not show where {batch} begins")
        # Last: the directory may be deleted at any time, and another query begin in it.
        check_query(self.files, batch.source)
        known = record.source
        start = {place: before.get(place, 0) for place in end}
        goes_on = known and known.batch.stream == batch.stream and known.batch.batch >= 0
        knows_state = known.stateful if known and goes_on else False
        return SourceBatch(
            self._source.group,
            batch,
            start,
            end,
            self._kafka.topic_ids({topic for topic, _ in end}, deadline),
            stateful=knows_state or self._has_state(batch),
            others=others,
        )

    def _has_state(self, batch: BatchId) -> bool:
        """What a stream keeps is there from its first batch on. Looking costs two listings, so it
        is done once; the position may be one that an operator has chosen, who cannot see it."""
        if self._stateless == batch.stream:
            return False
        has_state = self.files.has_state()
        if batch.batch > 0 and not has_state:
            self._stateless = batch.stream
        return has_state

    def check(self, record: LogRecord, now: SourceBatch, deadline: Deadline) -> SourcePosition:
        """Check a batch that was not decided before; return the position after it.

        Raises:
            OperatorNeededError, ConfigurationError, ClusterError: it would repeat or skip rows, or
                this cannot be excluded. Nothing is decided.
        """
        return self._judge(record, now, frozenset(), deadline)

    def find_begin(
        self, record: LogRecord, lost: frozenset[int], deadline: Deadline
    ) -> SourcePosition:
        """Return where a new checkpoint begins.

        Args:
            record: the latest one.
            lost: what is lost of its decision, which is settled.
            deadline: for all answers.

        Raises:
            OperatorNeededError, ConfigurationError: it is not known, or something contradicts it.
        """
        return self._judge(record, None, lost, deadline)

    def find_return(
        self, record: LogRecord, lost: frozenset[int], deadline: Deadline
    ) -> SourcePosition | None:
        """Return the start of a decided batch that has become invisible, if its checkpoint is gone:
        what it had read has to be read again.

        Raises:
            OperatorNeededError: as in `find_begin`.
        """
        start, decision = returns_to_start(record, lost), record.decision
        if start is None or decision is None or self.stream == decision.batch.source:
            return None
        # The group moves with the position: a reset of it must not be overwritten.
        return self.find_begin(record, lost, deadline)

    def check_replay(self, record: LogRecord, batch: BatchId) -> None:
        """See `handover.check_replay`."""
        check_replay(record, batch, self.files.end_offsets(batch.batch))

    def check_members(self, deadline: Deadline) -> None:
        """Check that no consumer reads from the group's offsets.

        Raises:
            ClusterError: one does.
        """
        group = self._source.group
        members = self._kafka.describe_groups([group], deadline)[group]
        if isinstance(members, Unseen):
            # Describe is enough here, and not later.
            needed = Permissions.source(group, ())
            raise members.error(f"The members of group {group} cannot be seen", needed)
        if members:
            names = sorted(f"{member.client} at {member.host}" for member in members)
            raise stop(Reason.GROUP_IN_USE, members=names)

    def check_first(self, record: LogRecord, deadline: Deadline) -> SourcePosition | None:
        """Check, before anything is written, the batch that Spark has begun.

        Args:
            record: the latest one.
            deadline: for all answers.

        Returns:
            Where the query stands, if the log does not know it yet, or not in each topic: a
            checkpoint that is lost before its first decision is followed by one that begins at
            the same offsets.
        """
        if self._options.late_checkpoint is not None:
            await_begun(self.files, deadline)
        stream, number = self.files.stream_id(), self.files.latest_batch()
        if stream is None or number is None:
            what = "has no metadata or no offsets of a batch"
            raise stop(Reason.NO_CHECKPOINT, what=what)
        batch = BatchId.numbered_by(self._numbering, stream, number)
        former, note = None, None
        if record.source is None or is_new_stream(record, batch):
            note = read_note(self._kafka, self._source.group, deadline)
            if note is not None and note.gone == batch.source:
                raise self.refuse_begun(batch, note, deadline)
        if any(each.stream == batch.stream and each.batch >= number for each in record.decided):
            # A replay, or an old checkpoint, which the tasks refuse.
            if note is not None:
                self._check_noted(record, self.read(record, batch, deadline), note, deadline)
            return None
        if is_new_stream(record, batch) or has_gone_on(record, batch):
            former = self.check_former(record, batch, deadline)
            if former is not None:
                source = former[1].source
                if source is not None:
                    # As if it were decided under this identity: the batch begins there.
                    source = replace(source, batch=replace(batch, batch=source.batch.batch))
                record = LogRecord(0, None, "", source=source)
            elif not has_written_as_query(record) and (
                note is None or not note.is_before(batch.source, batch.batch)
            ):
                raise self.refuse_begun(batch, note, deadline)
        now = self.read(record, batch, deadline)
        self._check_noted(record, now, note, deadline, former)
        try:
            moved = self.check(record, now, deadline)
        except OperatorNeededError:
            if former is None or former[1].source is None:
                raise
            # Its remedy is for the identity that has the position.
            raise self._moved_group(*former) from None
        return first_position(record, now, moved, follows=former is not None)

    def _check_noted(
        self,
        record: LogRecord,
        now: SourceBatch,
        note: StartNote | None,
        deadline: Deadline,
        former: tuple[QueryNames, LogRecord] | None = None,
    ) -> None:
        """Check that the offsets are not of topics that were made again since a start's note.

        Args:
            former: the identity that the batch goes on from: the remedy is for that one.

        Raises:
            OperatorNeededError: they may be; see `of_old_topics`.
        """
        if note and (is_old := of_old_topics(record, now, note)):
            if former:
                raise self._moved_group(*former)
            self._await_readers(record, is_old, deadline)
            raise is_old

    def check_former(
        self, own: LogRecord, batch: BatchId | None, deadline: Deadline
    ) -> tuple[QueryNames, LogRecord] | None:
        """Check that a query whose checkpoint is new to its record has not gone on under another
        identity, or goes on from there.

        Args:
            own: the latest record of this identity.
            batch: that Spark has begun, or begins next; None: there is no checkpoint.

        Returns:
            The one that has decided the stream's last batch before, so that the query has begun
            this one, and its record; None: there is none.

        Raises:
            OperatorNeededError: it has decided this batch, or one of another checkpoint last.
        """
        former, group = None, self._source.group
        mine = own.last_of(batch.stream) if batch else None
        latest = mine.batch if mine else -1
        writers = find_writers(self._kafka, self._names, group, batch, deadline) if batch else ()
        for other, record, decided in writers:
            for each in decided:
                if batch and each.batch >= batch.batch:
                    raise moved_checkpoint(batch, other, record, each)
                # Batches without rows are not decided while the option is off.
                is_latest = each.batch > latest
                if batch and is_latest and not self._has_read_on(own, record, batch):
                    former, latest = (other, record), each.batch
        if former is None:
            self._check_movers(own, deadline, batch.batch if batch else 0)
        return former

    def _has_read_on(self, own: LogRecord, former: LogRecord, batch: BatchId) -> bool:
        """True if this identity has read rows that the batch would read again, where the former one
        does not tell how far the query had read."""
        if own.source is None or (former.source and not former.source.stale):
            return False
        return own.source.is_beyond(self._begin_of(batch.batch) or {})

    def refuse_begun(
        self, batch: BatchId, noted: StartNote | None, deadline: Deadline
    ) -> EosSinkError:
        """The log does not know who has begun this batch. If it is the first one of its checkpoint,
        the log knows from then on where that began.

        Args:
            noted: the latest note. Offsets may be of topics that were there then.
        """
        begins = self._begin_of(batch.batch) or {}
        wrong = {place: (None, at) for place, at in begins.items()}
        location = shown_location(self._source.checkpoint)
        if batch.batch or self.files.latest_commit() is not None:
            return stop(Reason.BEGUN_ELSEWHERE, batch=batch, wrong=wrong, location=location)
        # Otherwise the next checkpoint begins where the note says, which is of a later start.
        if noted is None or noted.gone != batch.source:
            # Where the group is tells more than where this batch begins.
            check_foreign_group(begins, self._kafka.group_offsets(self._source.group, deadline))
            ids = self._kafka.topic_ids({topic for topic, _ in begins}, deadline)
            ids = {**ids, **(noted.topics if noted else {})}
            note = StartNote(batch.source, None, begins, ids, noted.gone if noted else None)
            write_note(self._kafka, self._names, self._source.group, note, deadline)
        return stop(Reason.BEGUN_BEFORE, batch=batch, wrong=wrong, location=location)

    def _judge(
        self,
        record: LogRecord,
        now: SourceBatch | None,
        lost: frozenset[int],
        deadline: Deadline,
    ) -> SourcePosition:
        """Ask for the facts that the judgement needs: of a checkpoint that goes on, none."""
        group, topics = self._source.group, self._source.topics
        handover = Handover(
            record,
            now,
            group,
            lost,
            reads=lambda topic: topics is None or topics.selects(topic),
        )
        if handover.needs_group:
            handover = replace(handover, committed=self._kafka.group_offsets(group, deadline))
            if handover.is_group_elsewhere:
                self._check_movers(
                    record, deadline, begins=now.start if now and not handover.is_new else None
                )
        if handover.needs_logs:
            begins = now.start if now else ()
            logs = read_logs(self._kafka, handover.known, deadline, begins)
            handover = replace(handover, logs=logs)
        try:
            return judge(handover)
        except EosSinkError as error:
            self._await_readers(record, error, deadline)
            raise

    def _await_readers(self, record: LogRecord, error: EosSinkError, deadline: Deadline) -> None:
        """Where an operator has to look which rows are there, let all of them be seen first."""
        if error.stop and error.stop[0].looks_for_rows and record.decision:
            await_readers(self._kafka, record.decision.topics, deadline)

    def _check_movers(
        self,
        own: LogRecord,
        deadline: Deadline,
        number: int = 0,
        begins: Offsets | None = None,
    ) -> None:
        """Check that no other identity has moved the group further, to write to the same topic: it
        would be the query's, which changes its identity only with its checkpoint. One that the
        query has just gone to is where this one is, and may be about to decide.

        Args:
            own: the latest record of this identity.
            number: of the batch that Spark runs. Its checkpoint is no copy's unless it is 0.
            begins: where the batch begins, if its stream has written last under this identity,
                maybe without the option.

        Raises:
            OperatorNeededError: one has.
        """
        if begins is None and is_untracked(own):
            return  # Its position is not known, whether or not it has written last.
        furthest, last = own.source.progress - own.is_left if own.source else -1, None
        movers, self.claims = find_movers(self._kafka, self._source.group, deadline)
        for other, record in movers:
            source = record.source
            if other == self._names or source is None or record.is_left:
                continue
            is_further = source.progress > furthest and (begins is None or source.is_beyond(begins))
            if is_further and (number or not self._is_elsewhere(record)):
                furthest, last = source.progress, (other, record)
        if last is not None:
            raise self._moved_group(*last)

    def _moved_group(self, former: QueryNames, record: LogRecord) -> EosSinkError:
        decided = record.source.batch if record.source else record.decided[-1]
        group = self._source.group
        return stop(Reason.MOVED_GROUP, former=former, record=record, decided=decided, group=group)

    def _is_elsewhere(self, record: LogRecord) -> bool:
        """True if a query that has moved the group reads or writes other topics than this one."""
        reads, source, written = self._source.topics, record.source, record.decision
        if reads and source and not any(reads.selects(topic) for topic, _ in source.reached):
            return True
        writes = {self._options.topic, *self._options.declared_topics} - {None}
        topics = {*written.topics} if written else set()
        return bool(writes and topics) and not writes & topics

    def _begin_of(self, number: int) -> Offsets | None:
        """The offsets before a batch, as the checkpoint has them; None: it does not show them."""
        return self.files.end_offsets(number - 1) if number else self.files.initial_offsets()

    def _damaged(self, record: LogRecord, batch: BatchId, what: str) -> EosSinkError:
        return stop(Reason.DAMAGED_CHECKPOINT, what=what, batch=batch, known=record.source)
