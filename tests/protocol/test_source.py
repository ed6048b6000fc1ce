"""The source's offsets in the decision's transaction, on the in-memory Kafka."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
from tenacity import nap

from eos_sink.errors import (
    ClusterError,
    ConfigurationError,
    OperatorNeededError,
    OutcomeUnknownError,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.messages import Reason
from eos_sink.ops import RefusedChoice
from eos_sink.ops.source_position import Drop, Use, choose, read_source
from eos_sink.ops.starting_offsets import find_starting_offsets
from eos_sink.protocol.model import BatchId, Numbering, Run
from eos_sink.protocol.values import Offsets
from eos_sink.sink_options import SinkOptions
from tests.fakes.kafka import FakeKafka
from tests.fakes.process import At, Killed, Moment
from tests.protocol.checkpoint import INPUT, Checkpoint
from tests.protocol.driver import Driver
from tests.protocol.source import (
    GROUP,
    Reader,
    ReadingWorld,
    committed,
    note_start,
    position,
    produce_topic,
    reading_world,
    source_options,
)
from tests.protocol.world import TOPIC, batch_options, given_options, late_attempt, options

START = {0: 0, 1: 0}


@pytest.fixture(params=["0", "65536"], ids=["transactions", "inlined"])
def world(request: pytest.FixtureRequest) -> ReadingWorld:
    return reading_world(**{"eos.inline.bytes": request.param})


@pytest.fixture
def reader(world: ReadingWorld) -> Reader:
    return Reader(world, Checkpoint(began=dict(START)))


def read_rows(upto: dict[int, int]) -> list[bytes]:
    return sorted(b"%d-%d" % (p, n) for p, end in upto.items() for n in range(end))


def give_up_state(reader: Reader) -> None:
    """What `eos-sink offsets --give-up-state` does; the query is started again."""
    kafka, names = FakeKafka(reader.world.cluster), reader.world.options.names
    state = read_source(kafka, names, GROUP, Deadline(30))
    choose(kafka, names, state, Drop(state=True), Deadline(30))
    reader.restart()


def refuse(reader: Reader) -> OperatorNeededError:
    """The next batch stops, and nothing more becomes visible."""
    before, decided = reader.world.visible(), len(reader.world.judge.decisions())
    number = reader.begin()
    with pytest.raises(OperatorNeededError) as raised:
        reader.commit(number, reader.write(number))
    assert reader.world.visible() == before
    assert len({d.batch for d in reader.world.judge.decisions()}) <= decided
    return raised.value


def use_group(reader: Reader, chosen: Use = Use.GROUP) -> None:
    """`eos-sink offsets --use group`."""
    kafka, names = FakeKafka(reader.world.cluster), reader.world.options.names
    state = read_source(kafka, names, GROUP, Deadline(30))
    choose(kafka, names, state, chosen, Deadline(30))


class TestABatch:
    def test_rows_and_position_become_visible_together(self, reader: Reader) -> None:
        reader.run(2)
        assert committed(reader.world) == {0: 2, 1: 2}
        assert reader.world.visible() == read_rows({0: 2, 1: 2})
        now = position(reader.world)
        assert (now.batch.batch, now.start, now.end) == (
            0,
            {(INPUT, 0): 0, (INPUT, 1): 0},
            {(INPUT, 0): 2, (INPUT, 1): 2},
        )
        reader.run(3)
        assert committed(reader.world) == {0: 5, 1: 5}

    def test_without_rows_it_moves_the_offsets_too(self, reader: Reader) -> None:
        number = reader.begin(3)
        reports = reader.driver.write(reader.driver.planner.plan(), number, [], [])
        reader.commit(number, reports)
        assert committed(reader.world) == {0: 3, 1: 3}
        reader.run()
        assert reader.world.visible() == [b"0-3", b"1-3"]

    def test_without_rows_it_is_replayed_with_its_own_offsets_only(self, reader: Reader) -> None:
        number = reader.begin(1)
        for _ in range(2):
            reports = reader.driver.write(reader.restart().planner.plan(), number, [], [])
            reader.driver.committer.commit(reports)
        # An older copy of the checkpoint, whose batch Spark has constructed again.
        reader.files.ends[0] = {0: 2, 1: 2}
        reports = reader.driver.write(reader.restart().planner.plan(), number, [], [])
        with pytest.raises(OperatorNeededError):
            reader.driver.committer.commit(reports)
        assert committed(reader.world) == {0: 1, 1: 1}


class TestTheFirstStart:
    def test_the_log_knows_the_position_before_any_row(self, reader: Reader) -> None:
        reader.files.began = {0: 5, 1: 6}
        reader.write(reader.begin())
        assert committed(reader.world) == {0: 5, 1: 6}
        # The checkpoint is lost, and the next one begins at the end of the topic.
        reader.new_checkpoint({0: 8, 1: 8})
        error = refuse(reader)
        assert error.data["stands"] == {INPUT: {"0": 5, "1": 6}}
        assert error.data["begins"] == {INPUT: {"0": 8, "1": 8}}

    def test_a_group_with_members_is_refused(self, reader: Reader) -> None:
        reader.world.cluster.groups.join(GROUP, 60_000)
        with pytest.raises(ClusterError) as raised:
            reader.write(reader.begin())
        assert raised.value.data["group"] == GROUP

    def test_offsets_of_another_program_are_not_overwritten(self, reader: Reader) -> None:
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 4})
        with pytest.raises(ConfigurationError) as raised:
            reader.write(reader.begin())
        assert raised.value.data["committed"] == {INPUT: {"0": 4}}
        reader.new_checkpoint({0: 4, 1: 0})
        reader.run()
        assert reader.world.visible() == [b"0-4", b"1-0"]

    def test_a_source_on_another_cluster_is_refused(self, reader: Reader) -> None:
        reader.files.began = {0: 5_000, 1: 0}
        note_start(reader.world, reader.files)
        reader.files.ends[0] = {0: 5_001, 1: 1}
        with pytest.raises(ConfigurationError) as raised:
            reader.driver.planner.plan()
        assert list(raised.value.data["places"]) == [f"{INPUT}[0]"]

    def test_a_checkpoint_of_another_sink_is_continued(self, reader: Reader) -> None:
        reader.files.ends = {0: {0: 3, 1: 2}}
        reader.files.commits = {0}
        reader.run()
        assert reader.world.visible() == [b"0-3", b"1-2"]

    def test_the_directory_of_another_query_is_refused(self, reader: Reader) -> None:
        reader.run()
        reader.begin()
        reports = reader.driver.write(reader.driver.planner.plan(), 1, *reader.rows(1))
        # Deleted by now, and begun again by another query.
        reader.files.stream = "another"
        with pytest.raises(ConfigurationError):
            reader.driver.committer.commit(reports)
        assert committed(reader.world) == {0: 1, 1: 1}


def test_a_batch_that_ends_before_it_begins_stops(reader: Reader) -> None:
    """Two runs that share a directory put one's end behind the other's."""
    reader.run(2)
    reader.files.ends[reader.number] = {0: 4, 1: 1}
    assert "would repeat 1 rows: in[1] 2 and 1" in refuse(reader).message


class TestANewCheckpoint:
    def test_at_the_position_it_goes_on(self, reader: Reader) -> None:
        reader.run(3)
        reader.new_checkpoint({0: 3, 1: 3})
        reader.run(2)
        assert reader.world.visible() == read_rows({0: 5, 1: 5})
        assert committed(reader.world) == {0: 5, 1: 5}

    def test_a_kept_planner_does_not_hide_it_from_the_commit(self, reader: Reader) -> None:
        reader.run(3)
        driver = reader.driver
        number = reader.begin()
        plan = driver.planner.plan()
        # Deleted and started again in the same session, whose processes Spark keeps.
        reader.files.stream, reader.files.ends, reader.files.commits = "stream-2", {}, set()
        assert number
        reader.begin()
        reports = [
            driver.task(plan, replace_stream(driver, 0), number, rows)
            for number, rows in enumerate(reader.rows(0))
        ]
        with pytest.raises(OperatorNeededError):
            driver.committer.commit(reports)
        assert committed(reader.world) == {0: 3, 1: 3}
        with pytest.raises(OperatorNeededError):
            driver.planner.plan()

    def test_a_kept_planner_sees_that_a_consumer_has_joined_since(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("eos_sink.driver.planner._MEMBERS_AGE_S", 0.0)
        reader.run()
        reader.world.cluster.groups.join(GROUP, 60_000)
        reader.begin()
        with pytest.raises(ClusterError):
            reader.driver.planner.plan()

    def test_a_group_that_was_reset_stops_it(self, reader: Reader) -> None:
        reader.run(3)
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 0})
        reader.new_checkpoint({0: 3, 1: 3})
        error = refuse(reader)
        assert error.data["stands"] == {INPUT: {"0": 3}}
        assert error.data["committed"] == {INPUT: {"0": 0}}

    def test_rows_that_were_deleted_stop_it(self, reader: Reader) -> None:
        reader.run(3)
        reader.world.cluster.topics[INPUT].partitions[1].delete_before(5)
        reader.new_checkpoint({0: 3, 1: 3})
        assert list(refuse(reader).data["places"]) == [f"{INPUT}[1]"]

    def test_a_new_partition_begins_at_its_first_row(self, reader: Reader) -> None:
        del reader.files.began[1]
        number = reader.begin(until={0: 1, 1: 0})
        del reader.files.ends[0][1]
        reader.commit(number, reader.write(number))
        reader.new_checkpoint({0: 1, 1: 4})
        assert refuse(reader).data["begins"] == {INPUT: {"1": 4}}
        reader.new_checkpoint({0: 1, 1: 0}, "stream-3")
        reader.run()
        assert reader.world.visible() == read_rows({0: 2, 1: 1})

    def test_state_is_not_lost_in_silence(self, reader: Reader) -> None:
        reader.files.state = True
        reader.run(3)
        reader.new_checkpoint({0: 3, 1: 3})
        refuse(reader)
        give_up_state(reader)
        reader.run()
        assert reader.world.visible() == read_rows({0: 4, 1: 4})

    def test_state_is_given_up_once(self, reader: Reader) -> None:
        reader.run()
        with pytest.raises(RefusedChoice, match="has nothing that only"):
            give_up_state(reader)
        reader.new_checkpoint({0: 1, 1: 1})
        reader.files.state = True
        reader.run()
        give_up_state(reader)
        # The old checkpoint goes on instead.
        reader.run()
        reader.new_checkpoint({0: 3, 1: 3}, "stream-3")
        assert "--give-up-state" in refuse(reader).remedy
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 0})
        with pytest.raises(RefusedChoice, match="Group readers has other offsets"):
            give_up_state(reader)

    def test_the_position_of_other_sources_is_not_lost_in_silence(self, reader: Reader) -> None:
        reader.files.others = True
        reader.run(3)
        reader.new_checkpoint({0: 3, 1: 3})
        assert INPUT in refuse(reader).message
        give_up_state(reader)
        reader.run()
        assert reader.world.visible() == read_rows({0: 4, 1: 4})

    def test_a_directory_that_was_deleted_during_the_run(self, reader: Reader) -> None:
        reader.run()
        # The query writes its next files below the same path.
        reader.files.stream, reader.files.began = None, {}
        reader.files.ends = {1: {0: 2, 1: 2}}
        with pytest.raises(ConfigurationError):
            reader.driver.planner.plan()
        reader.new_checkpoint({0: 1, 1: 1})
        reader.run()
        assert reader.world.visible() == read_rows({0: 2, 1: 2})

    def test_a_directory_that_does_not_show_where_it_begins(self, reader: Reader) -> None:
        reader.run(2)
        reader.files = Checkpoint("stream-2", ends={1: {0: 4, 1: 4}})
        with pytest.raises(ConfigurationError):
            reader.restart().planner.plan()


class TestAnotherGroup:
    """The option names another group than before."""

    def name(self, reader: Reader, committed: dict[int, int]) -> None:
        places = {(INPUT, partition): at for partition, at in committed.items()}
        if places:
            reader.world.cluster.groups.commit_offsets("others", places)
        inline = reader.world.options.inline_bytes
        reader.world.options = source_options(
            **{"eos.source.group.id": "others", "eos.inline.bytes": str(inline)}
        )
        reader.restart()

    @pytest.mark.parametrize("new", [False, True])
    def test_that_another_program_uses_is_not_overwritten(self, reader: Reader, new: bool) -> None:
        reader.run(2)
        self.name(reader, {0: 1, 1: 7})
        if new:
            reader.new_checkpoint({0: 2, 1: 2})
        with pytest.raises(ConfigurationError) as raised:
            reader.write(reader.begin())
        assert raised.value.data["committed"] == {INPUT: {"0": 1, "1": 7}}
        groups = reader.world.cluster.groups
        assert groups.committed["others"] == {(INPUT, 0): 1, (INPUT, 1): 7}
        # As the error says.
        assert "/checkpoint" not in raised.value.remedy
        del groups.committed["others"]
        reader.restart()
        reader.run()
        assert groups.committed["others"] == {(INPUT, 0): 3, (INPUT, 1): 3}
        assert reader.world.visible() == read_rows({0: 3, 1: 3})


class TestAFunctionThatCatchesErrors:
    """Spark commits a batch of `foreachBatch` of which the sink has written nothing."""

    @pytest.fixture
    def reader(self, world: ReadingWorld) -> Reader:
        world.options = batch_options(
            **{
                "eos.id": "story",
                "eos.source.group.id": GROUP,
                "checkpointLocation": "/checkpoint",
                "eos.inline.bytes": str(world.options.inline_bytes),
            }
        )
        reader = Reader(world, Checkpoint(began=dict(START)))
        self.start(reader)
        return reader

    def start(self, reader: Reader) -> None:
        stream = BatchId.numbered_by(Numbering.FOREACH, str(reader.files.stream), 0).stream
        reader.driver = Driver(reader.world, stream, files=reader.files)

    def leave_out(self, reader: Reader) -> None:
        """The batch fails before its decision, and the function goes on."""
        reports = reader.write(reader.begin())
        reader.driver.committer.abort(reports)
        reader.files.commits.add(reader.number)

    @pytest.mark.parametrize("decided", [0, 1])
    def test_stops_at_each_batch_that_follows(self, reader: Reader, decided: int) -> None:
        for _ in range(decided):
            reader.run()
        self.leave_out(reader)
        for number in (1, 2):
            error = refuse(reader)
            assert error.data["stands"] == {INPUT: {"0": decided, "1": decided}}
            assert error.data["begins"] == {INPUT: dict.fromkeys(("0", "1"), decided + number)}
            reader.files.commits.add(reader.number)
        assert committed(reader.world) == {0: decided, 1: decided}
        # As the error says.
        reader.files = Checkpoint("stream-2", {0: decided, 1: decided})
        self.start(reader)
        reader.run(3)
        assert reader.world.visible() == read_rows({0: decided + 3, 1: decided + 3})

    def test_of_rows_that_it_does_not_want_is_accepted_by_an_operator(self, reader: Reader) -> None:
        reader.run()
        reader.files.ends[1], reader.files.commits = {0: 2, 1: 2}, {0, 1}
        begins = refuse(reader).data["begins"]
        reader.world.cluster.groups.commit_offsets(
            GROUP, {(INPUT, int(p)): at for p, at in begins[INPUT].items()}
        )
        use_group(reader)
        self.start(reader)
        reader.run()
        assert reader.world.visible() == [b"0-0", b"0-2", b"1-0", b"1-2"]
        assert committed(reader.world) == {0: 3, 1: 3}

    def test_does_not_hide_a_second_frame_with_the_group_until_a_batch_has_rows(
        self, reader: Reader
    ) -> None:
        number = reader.begin()
        for _ in range(2):
            plan = reader.driver.planner.plan()
            reports = reader.driver.write(plan, number, [], [], spark_run="run-1")
            if not reports[0].replayed:
                reader.driver.committer.commit(reports)
        with pytest.raises(ConfigurationError, match="a second time"):
            reader.driver.committer.commit(reports)


MORE = "more"


class WithAnotherTopic(Checkpoint):
    """Of a query that reads another topic, too, which has no rows for it yet."""

    began_more = 0

    def end_offsets(self, batch: int) -> Offsets | None:
        offsets = super().end_offsets(batch)
        return None if offsets is None else {**offsets, (MORE, 0): self.began_more}

    def initial_offsets(self) -> Offsets | None:
        return {**(super().initial_offsets() or {}), (MORE, 0): self.began_more}


class TestATopicThatIsNew:
    """It begins at its end, with `default="latest"`, and has more rows later."""

    def find(self, reader: Reader) -> dict[str, dict[str, int]]:
        given = given_options(
            **{
                "eos.id": "story",
                "subscribe": f"{INPUT},{MORE}",
                "eos.source.group.id": reader.world.options.source.group,  # type: ignore[union-attr]
                "checkpointLocation": "/checkpoint",
            }
        )
        kafka = FakeKafka(reader.world.cluster)
        found: dict[str, dict[str, int]] = json.loads(
            find_starting_offsets(given, "latest", lambda _: kafka, Checkpoint(None))
        )
        return found

    def add(self, reader: Reader) -> None:
        """The topic, at a hand-over, whose first batch fails."""
        topic = reader.world.cluster.create_topic(MORE, 1)
        produce_topic(reader.world, MORE, 5, lambda p, n: b"%d-%d more" % (p, n))
        self.start_at(reader, "stream-2", topic.partitions[0].end - 1)
        reader.write(reader.begin())

    def start_at(self, reader: Reader, stream: str, offset: int) -> None:
        ends = position(reader.world).end
        reader.files = WithAnotherTopic(stream, {p: ends[INPUT, p] for p in (0, 1)})
        reader.files.began_more = offset
        reader.restart()

    def test_is_read_from_where_its_first_start_was(self, reader: Reader) -> None:
        reader.run(2)
        decided = position(reader.world)
        self.add(reader)
        assert position(reader.world).batch == decided.batch
        assert committed(reader.world) == {0: 2, 1: 2}
        found = self.find(reader)
        assert found == {INPUT: {"0": 2, "1": 2}, MORE: {"0": 5}}
        self.start_at(reader, "stream-3", 6)
        assert refuse(reader).data["stands"] == {MORE: {"0": 5}}
        self.start_at(reader, "stream-4", 5)
        reader.run()
        assert reader.world.visible() == read_rows({0: 3, 1: 3})
        assert position(reader.world).end[MORE, 0] == 5

    def test_does_not_move_a_former_group(self, reader: Reader) -> None:
        reader.run(2)
        groups, inline = reader.world.cluster.groups, reader.world.options.inline_bytes
        reader.world.options = source_options(
            **{"eos.source.group.id": "others", "eos.inline.bytes": str(inline)}
        )
        groups.commit_offsets(GROUP, {(INPUT, 0): 0})
        self.add(reader)
        assert committed(reader.world) == {0: 0, 1: 2}
        assert self.find(reader) == {INPUT: {"0": 2, "1": 2}, MORE: {"0": 5}}


class TestATopicThatIsGone:
    def find(self, world: ReadingWorld, *topics: str) -> object:
        given = given_options(
            **{
                "eos.id": "story",
                "subscribe": ",".join(topics),
                "eos.source.group.id": GROUP,
                "checkpointLocation": "/checkpoint",
            }
        )
        kafka, files = FakeKafka(world.cluster), Checkpoint(None)
        return json.loads(find_starting_offsets(given, "earliest", lambda _: kafka, files))

    def drop(self, reader: Reader, *topics: str) -> None:
        """`eos-sink offsets --drop`."""
        kafka, names = FakeKafka(reader.world.cluster), reader.world.options.names
        state = read_source(kafka, names, GROUP, Deadline(30))
        choose(kafka, names, state, Drop(frozenset(topics)), Deadline(30))

    def make_again(self, world: ReadingWorld, partitions: int) -> None:
        del world.cluster.topics[INPUT]
        world.cluster.groups.committed.clear()
        world.cluster.create_topic(INPUT, partitions)

    def begin_at_5(self, reader: Reader) -> None:
        """The query reads another topic, too, from there on."""
        reader.world.cluster.create_topic(MORE, 1)
        produce_topic(reader.world, MORE, 8, lambda _, number: b"more-%d" % number)
        reader.files = WithAnotherTopic("stream-1", dict(START))
        reader.files.began_more = 5
        reader.restart()
        reader.run(2)

    def test_leaves_the_position_after_a_stop_that_a_command_accepts(self, reader: Reader) -> None:
        world = reader.world
        world.cluster.create_topic(MORE, 1)
        produce_topic(world, MORE, 8, lambda _, number: b"more-%d" % number)
        reader.files = WithAnotherTopic("stream-1", dict(START))
        reader.restart()
        reader.run(2)
        del world.cluster.topics[MORE]
        with pytest.raises(OperatorNeededError) as raised:
            self.find(world, INPUT)
        assert "--drop more" in raised.value.remedy
        with pytest.raises(RefusedChoice, match="--drop more"):
            use_group(reader, Use.RECORD)
        self.drop(reader, MORE)
        assert self.find(world, INPUT) == {INPUT: {"0": 2, "1": 2}}
        reader.new_checkpoint({0: 2, 1: 2})
        reader.run()
        assert world.visible() == read_rows({0: 3, 1: 3})

    @pytest.mark.parametrize("partitions", [1, 2, 3])
    def test_and_made_again_begins_at_its_first_row(self, reader: Reader, partitions: int) -> None:
        reader.run(2)
        world = reader.world
        self.make_again(world, partitions)
        produce_topic(world, INPUT, 8, lambda p, number: b"new %d-%d" % (p, number))
        with pytest.raises(OperatorNeededError) as raised:
            self.find(world, INPUT)
        assert set(raised.value.data["places"]) == {f"{INPUT}[0]", f"{INPUT}[1]"}
        if partitions >= 2:
            # The offsets of the old topic are in the new one, too.
            use_group(reader, Use.RECORD)
            with pytest.raises(OperatorNeededError, match="created again"):
                self.find(world, INPUT)
        self.drop(reader, INPUT)
        read = {str(p): 0 if p < 2 else -2 for p in range(partitions)}
        assert self.find(world, INPUT) == {INPUT: read}

    def test_and_made_again_while_it_was_not_read_begins_at_its_first_row(
        self, reader: Reader
    ) -> None:
        world = reader.world
        self.begin_at_5(reader)
        reader.new_checkpoint({0: 2, 1: 2})
        reader.run()
        assert position(world).left == {(MORE, 0): 5}
        del world.cluster.topics[MORE]
        world.cluster.create_topic(MORE, 1)
        produce_topic(world, MORE, 8, lambda _, number: b"new %d" % number)
        world.cluster.groups.committed[GROUP].pop((MORE, 0), None)
        for chosen in (None, Use.GROUP, Use.RECORD):
            if chosen is not None:
                use_group(reader, chosen)
            with pytest.raises(OperatorNeededError, match="created again"):
                self.find(world, INPUT, MORE)
        self.drop(reader, MORE)
        assert self.find(world, INPUT, MORE) == {INPUT: {"0": 3, "1": 3}, MORE: {"0": 0}}

    def test_stops_the_batch_that_names_it_and_the_old_checkpoint(self, reader: Reader) -> None:
        """Spark repeats the batch: it reads nothing there."""
        world = reader.world
        self.begin_at_5(reader)
        number = reader.begin()
        del world.cluster.topics[MORE]
        for _ in range(2):
            reader.restart()
            assert "--drop more" in refuse(reader).remedy
        self.drop(reader, MORE)
        # It was to be deleted, and the topic is there again.
        world.cluster.create_topic(MORE, 1)
        produce_topic(world, MORE, 8, lambda _, number: b"again-%d" % number)
        reader.restart()
        assert refuse(reader).data["begins"] == {MORE: {"0": 5}}
        assert number == reader.number
        assert self.find(world, INPUT, MORE) == {INPUT: {"0": 2, "1": 2}, MORE: {"0": -2}}

    def test_and_made_again_under_a_start_asks_for_its_rows_once_they_can_be_seen(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only the start's note tells that it was made again."""
        world, given = reader.world, reader.world.options
        world.options = replace(given, source=None)
        reader.restart()
        reader.run()
        world.options = given
        reader.begin()
        self.make_again(world, 2)
        produce_topic(world, INPUT, 8, lambda p, number: b"new %d-%d" % (p, number))
        other = FakeKafka(world.cluster).producer("other", 900_000)
        other.init(Deadline(30))
        other.begin()
        other.produce(TOPIC, b"not yet", partition=0)
        monkeypatch.setattr(Deadline.__init__, "__defaults__", (world.cluster.clock,))
        monkeypatch.setattr(nap, "time", SimpleNamespace(sleep=world.cluster.clock.advance))
        with pytest.raises(OutcomeUnknownError, match=r"a transaction is open in out\[0\]"):
            reader.restart().planner.plan()
        other.abort(Deadline(30))
        with pytest.raises(OperatorNeededError, match="first rows that are not in the topic"):
            reader.restart().planner.plan()

    def test_where_a_log_was_cut_off_an_operator_chooses_the_offsets(self, reader: Reader) -> None:
        """The rows behind the cut may be new ones, and those before it are visible."""
        reader.run(3)
        reader.world.cluster.topics[INPUT].partitions[0].cut_off(2)
        with pytest.raises(OperatorNeededError) as raised:
            self.find(reader.world, INPUT)
        assert "--use group" in raised.value.remedy
        assert "--drop" not in raised.value.remedy
        with pytest.raises(RefusedChoice, match=r"in\[0\], whose log was cut off and ends at 2"):
            self.drop(reader, INPUT)
        groups = reader.world.cluster.groups
        groups.commit_offsets(GROUP, {(INPUT, 0): 2})
        use_group(reader)
        assert self.find(reader.world, INPUT) == {INPUT: {"0": 2, "1": 3}}


class TestTheGroupsOffsets:
    """An operator lets them count."""

    def test_are_another_querys_in_topics_that_this_one_does_not_read(self, reader: Reader) -> None:
        reader.run(3)
        reader.world.cluster.create_topic(MORE, 1)
        groups = reader.world.cluster.groups
        groups.commit_offsets(GROUP, {(INPUT, 0): 2, (MORE, 0): 0})
        use_group(reader)
        assert position(reader.world).end == {(INPUT, 0): 2, (INPUT, 1): 3}

    def test_say_nothing_of_the_state_that_the_old_checkpoint_has(self, reader: Reader) -> None:
        """The query had state before it had the option."""
        on, reader.world.options = reader.world.options, options()
        reader.files.state = True
        reader.restart()
        reader.run()
        reader.world.options = on
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 1, (INPUT, 1): 1})
        use_group(reader)
        reader.restart()
        reader.run()
        assert position(reader.world).stateful
        reader.new_checkpoint({0: 2, 1: 2})
        refuse(reader)

    def test_of_some_partitions_leave_the_others_where_they_were(self, reader: Reader) -> None:
        reader.run(3)
        # They have expired, and one is reset.
        reader.world.cluster.groups.committed.clear()
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 2})
        use_group(reader)
        assert committed(reader.world) == {0: 2, 1: 3}
        reader.new_checkpoint({0: 2, 1: 3})
        reader.run()
        assert reader.world.visible() == sorted([*read_rows({0: 3, 1: 4}), b"0-2"])

    def test_leave_a_topic_that_is_not_read_any_more(self, reader: Reader) -> None:
        reader.run(3)
        reader.new_checkpoint({0: 3})
        number = reader.begin(until={0: 4, 1: 0})
        del reader.files.ends[number][1]
        reports = reader.driver.write(reader.driver.planner.plan(), number, [b"0-3"])
        reader.commit(number, reports)
        # Offsets expire by partition, while nothing commits them.
        del reader.world.cluster.groups.committed[GROUP][INPUT, 1]
        use_group(reader)
        assert position(reader.world).reached == {(INPUT, 0): 4, (INPUT, 1): 3}

    def test_of_some_partitions_are_not_enough_if_the_log_knows_none(self, reader: Reader) -> None:
        reader.run(3)
        on = reader.world.options
        reader.world.options = options()
        reader.restart()
        reader.run()
        reader.world.options = on
        reader.world.cluster.groups.committed.clear()
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 4})
        with pytest.raises(RefusedChoice, match=r"in\[1\]"):
            use_group(reader)
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 1): 4})
        use_group(reader)
        reader.new_checkpoint({0: 4, 1: 4})
        reader.run()
        assert reader.world.visible() == read_rows({0: 5, 1: 5})


class TestBothWaysToWrite:
    """A query that writes by itself has another identity than within `foreachBatch`."""

    GIVEN: ClassVar = {"eos.id": "story", "subscribe": INPUT, "checkpointLocation": "/checkpoint"}

    def find(self, reader: Reader) -> object:
        given = given_options(**self.GIVEN, **{"eos.source.group.id": GROUP})
        kafka = FakeKafka(reader.world.cluster)
        found = find_starting_offsets(given, "earliest", lambda _: kafka, reader.files)
        return json.loads(found)[INPUT]

    def within_foreach_batch(
        self, reader: Reader, identity: Run | None = None, /, **extra: str
    ) -> None:
        reader.world.options = batch_options(**self.GIVEN, **extra)
        stream = BatchId.numbered_by(Numbering.FOREACH, str(reader.files.stream), 0).stream
        reader.driver = Driver(reader.world, stream, identity, files=reader.files)

    def test_the_one_that_has_written_last_tells_where_a_new_checkpoint_begins(
        self, reader: Reader
    ) -> None:
        reader.run(2)
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        reader.files = Checkpoint(None)
        assert self.find(reader) == {"0": 3, "1": 3}

    def test_a_group_that_has_expired_is_compared_with_the_one_that_was_started_last(
        self, reader: Reader
    ) -> None:
        reader.run(2)
        first = reader.driver.identity
        later = replace(first, started_ms=first.started_ms + 1)
        self.within_foreach_batch(reader, later, **{"eos.source.group.id": GROUP})
        reader.run()
        reader.world.cluster.groups.committed.clear()
        reader.files = Checkpoint(None)
        with pytest.raises(OperatorNeededError) as raised:
            self.find(reader)
        assert raised.value.data["stands"] == {INPUT: {"0": 3, "1": 3}}

    def test_a_new_checkpoint_of_the_former_one_is_refused(self, reader: Reader) -> None:
        by_itself = reader.world.options
        reader.run(2)
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        for began in (2, 3):
            reader.world.options = by_itself
            reader.new_checkpoint({0: began, 1: began})
            error = refuse(reader)
            assert error.remedy.startswith("Start the query as it was then: within foreachBatch")
        # As the error says, and then by itself with this checkpoint.
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        reader.world.options = by_itself
        reader.restart()
        reader.run()
        assert reader.world.visible() == read_rows({0: 5, 1: 5})

    def test_one_that_has_only_begun_follows_what_the_former_one_decides_meanwhile(
        self, reader: Reader
    ) -> None:
        """A driver that stood still goes on with the same checkpoint."""
        reader.run(2)
        left = reader.driver
        number = reader.begin()
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.driver.planner.plan()  # It notes where it goes on.
        reader.driver = left
        reader.run()
        # A batch that is decided there, and not noted as done, is finished there.
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.files.commits.remove(number)
        error = refuse(reader)
        assert error.remedy.startswith("Start the query once as it was then: with writeStream")
        reader.files.commits.add(number)
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        assert reader.world.visible() == read_rows({0: 4, 1: 4})

    def start_with_another_querys_checkpoint(self, reader: Reader) -> None:
        """The first start of a query, whose writer names the wrong directory."""
        right = reader.files
        reader.files = Checkpoint("another", began={0: 5, 1: 5})
        reader.begin()
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        stream, reader.files = BatchId.numbered_by(Numbering.FOREACH, "stream-1", 0).stream, right
        reader.driver = Driver(reader.world, stream, files=reader.driver.files)

    def test_the_planner_refuses_the_checkpoint_of_another_query_than_it_is_told(
        self, reader: Reader
    ) -> None:
        self.start_with_another_querys_checkpoint(reader)
        with pytest.raises(ConfigurationError, match="another"):
            reader.driver.planner.plan("stream-1")
        assert committed(reader.world) == {}
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.begin()
        reader.driver.planner.plan("stream-1")
        reader.run()
        assert reader.world.visible() == read_rows({0: 1, 1: 1})

    def test_a_planner_that_is_told_nothing_lets_the_right_checkpoint_go_on(
        self, reader: Reader
    ) -> None:
        self.start_with_another_querys_checkpoint(reader)
        number = reader.begin()
        reports = reader.driver.write(reader.driver.planner.plan(), number, *reader.rows(number))
        with pytest.raises(ConfigurationError):
            reader.driver.committer.commit(reports)
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        assert reader.world.visible() == read_rows({0: 1, 1: 1})

    def go_on_without_the_group(self, reader: Reader, begins: int) -> SinkOptions:
        """Within foreachBatch, with a new checkpoint; return how the query was started before."""
        by_itself = reader.world.options
        self.within_foreach_batch(reader)
        reader.files = Checkpoint("stream-2", {0: begins, 1: begins})
        self.within_foreach_batch(reader)
        reader.run()
        return by_itself

    def without_rows(self, reader: Reader) -> None:
        """A batch that Spark has noted as done, and nobody has decided."""
        number = reader.begin(0)
        reader.files.commits.add(number)

    def test_one_that_goes_back_goes_on_behind_a_batch_that_nobody_has_decided(
        self, reader: Reader
    ) -> None:
        reader.run(2)
        by_itself = self.go_on_without_the_group(reader, 2)
        self.without_rows(reader)
        reader.world.options = by_itself
        reader.restart()
        number = reader.begin()
        with pytest.raises(ConfigurationError) as raised:
            reader.driver.planner.plan()
        assert raised.value.remedy.startswith("Name another group")
        assert by_itself.source
        reader.world.options = replace(by_itself, source=replace(by_itself.source, group="another"))
        reader.restart()
        reader.commit(number, reader.write(number))
        reader.run()
        assert reader.world.visible() == read_rows({0: 5, 1: 5})

    def test_one_that_has_read_on_since_is_not_taken_back(self, reader: Reader) -> None:
        """An old copy of the checkpoint that the other one has written last."""
        reader.run()
        old = reader.files
        by_itself = self.go_on_without_the_group(reader, 1)
        copy = reader.files
        reader.files, reader.world.options = old, by_itself
        reader.restart()
        reader.run(3)
        reader.files = copy
        reader.restart()
        error = refuse(reader)
        assert error.stop
        assert error.stop[0] is Reason.BEGINS_ELSEWHERE

    def test_one_that_has_gone_on_in_the_stream_itself_is_not_asked_for(
        self, reader: Reader
    ) -> None:
        reader.run()
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run(2)
        old, reader.files = reader.files, Checkpoint("stream-2", {0: 3, 1: 3})
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        reader.run()
        reader.files = old
        self.within_foreach_batch(reader, **{"eos.source.group.id": GROUP})
        error = refuse(reader)
        assert error.stop
        assert error.stop[0] is Reason.BEGINS_ELSEWHERE

    def test_one_that_has_gone_on_without_the_group_is_the_one_to_ask(self, reader: Reader) -> None:
        reader.run(2)
        self.go_on_without_the_group(reader, 2)
        reader.files = Checkpoint(None)
        with pytest.raises(OperatorNeededError) as raised:
            self.find(reader)
        assert reader.world.options.names.query in raised.value.remedy
        assert "first rows that are not in the topic" in raised.value.remedy

    def test_a_batch_that_this_sink_has_begun_is_not_another_ones(self, reader: Reader) -> None:
        self.within_foreach_batch(reader)
        reader.run(2)
        reader.write(reader.begin())
        # The option is switched on with a checkpoint whose last batch is not finished.
        assert self.find(reader) == {"0": -2, "1": -2}


class TestALostDecision:
    @pytest.fixture
    def world(self) -> ReadingWorld:
        return reading_world()

    def lose(self, reader: Reader, *partitions: int) -> None:
        """Batch 1, of rows 1 and 2 of each partition, is decided, and loses partitions."""
        reader.run(1)
        number = reader.begin(2)
        reports = reader.write(number)
        process = reader.driver.commits.process

        def expire() -> None:
            for partition in partitions:
                late_attempt(reader.world, reports[0].slot, partition)
            process.kill()

        At(process, "log_producer.commit", Moment.AFTER, expire)
        with pytest.raises(Killed):
            reader.driver.committer.commit(reports)

    def test_invisible_as_a_whole_it_is_read_again(self, reader: Reader) -> None:
        self.lose(reader, 0, 1)
        assert committed(reader.world) == {0: 3, 1: 3}
        reader.new_checkpoint({0: 1, 1: 1})
        reader.run(3)
        assert reader.world.visible() == read_rows({0: 4, 1: 4})
        assert committed(reader.world) == {0: 4, 1: 4}

    def test_that_the_source_has_lost_in_part_it_is_read_again_from_there(
        self, reader: Reader
    ) -> None:
        self.lose(reader, 0, 1)
        reader.world.cluster.topics[INPUT].partitions[0].delete_before(2)
        reader.new_checkpoint({0: 2, 1: 1})
        assert "--drop in" in refuse(reader).remedy
        TestATopicThatIsGone().drop(reader, INPUT)
        reader.new_checkpoint({0: 2, 1: 1}, "stream-3")
        reader.run(3)
        there = [row for row in read_rows({0: 5, 1: 4}) if row != b"0-1"]
        assert reader.world.visible() == there

    def test_its_end_is_not_the_position_any_more(self, reader: Reader) -> None:
        self.lose(reader, 0, 1)
        reader.new_checkpoint({0: 3, 1: 3})
        refuse(reader)
        assert committed(reader.world) == {0: 1, 1: 1}

    def test_a_reset_of_the_group_is_not_overwritten(self, reader: Reader) -> None:
        self.lose(reader, 0, 1)
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 2})
        reader.new_checkpoint({0: 1, 1: 1})
        refuse(reader)
        assert committed(reader.world) == {0: 2, 1: 3}

    def test_its_own_checkpoint_writes_it_again(self, reader: Reader) -> None:
        self.lose(reader, 0, 1)
        reader.restart()
        reader.run()
        assert reader.world.visible() == read_rows({0: 3, 1: 3})
        assert committed(reader.world) == {0: 3, 1: 3}

    def test_visible_in_part_it_stops_a_new_checkpoint(self, reader: Reader) -> None:
        self.lose(reader, 0)
        reader.new_checkpoint({0: 3, 1: 3})
        number = reader.begin()
        plan = reader.driver.planner.plan()
        with pytest.raises(OperatorNeededError):
            reader.driver.write(plan, number, *reader.rows(number))
        assert reader.world.visible() == sorted([*read_rows({0: 1, 1: 1}), b"1-1", b"1-2"])

    def test_the_old_checkpoint_returns_after_it(self, reader: Reader) -> None:
        self.lose(reader, 0, 1)
        old = reader.files
        reader.new_checkpoint({0: 1, 1: 1})
        reader.begin(3)
        reader.driver.planner.plan()
        back = Reader(reader.world, old)
        back.run()
        assert back.world.visible() == read_rows({0: 3, 1: 3})


class TestTheOption:
    def test_switched_on_it_takes_the_position_of_the_checkpoint(self, reader: Reader) -> None:
        on = reader.world.options
        reader.world.options = options(**{"eos.inline.bytes": "0"})
        reader.restart()
        reader.run(2)
        reader.world.options = on
        reader.restart()
        reader.run()
        assert committed(reader.world) == {0: 3, 1: 3}
        assert position(reader.world).start == {(INPUT, 0): 2, (INPUT, 1): 2}

    def test_switched_on_it_overwrites_no_offsets_of_another_program(self, reader: Reader) -> None:
        on = reader.world.options
        reader.world.options = options(**{"eos.inline.bytes": "0"})
        reader.restart()
        reader.run(2)
        reader.world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 7})
        reader.world.options = on
        reader.restart()
        reader.begin()
        with pytest.raises(ConfigurationError) as raised:
            reader.driver.planner.plan()
        assert committed(reader.world) == {0: 7}
        # Nothing else knows where the query stands.
        assert "/checkpoint" not in raised.value.remedy
        reader.world.cluster.groups.committed.clear()
        reader.restart()
        reader.run()
        assert reader.world.visible() == read_rows({0: 3, 1: 3})

    def test_switched_off_the_position_is_stale(self, reader: Reader) -> None:
        reader.run()
        on = reader.world.options
        reader.world.options = options()
        reader.restart()
        reader.run(2)
        assert position(reader.world).stale
        reader.world.options = on
        old = reader.files
        reader.new_checkpoint({0: 3, 1: 3})
        refuse(reader)
        reader.files = old
        reader.restart()
        reader.run()
        assert committed(reader.world) == {0: 4, 1: 4}
        assert not position(reader.world).stale

    def test_an_older_checkpoint_does_not_make_a_stale_position_known(self, reader: Reader) -> None:
        reader.run()
        on, old = reader.world.options, reader.files
        reader.new_checkpoint({0: 1, 1: 1})
        reader.run()
        reader.world.options = options()
        reader.restart()
        reader.run()
        reader.world.options = on
        refuse(Reader(reader.world, old))


def replace_stream(driver: object, number: int) -> BatchId:
    return BatchId("stream-2", number)
