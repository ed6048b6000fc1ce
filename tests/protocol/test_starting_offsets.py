"""Where a new checkpoint begins, and whose position counts."""

from __future__ import annotations

import json

import pytest

from eos_sink.decision_log.start_notes import read_note, write_note
from eos_sink.errors import Action, ClusterError, OperatorNeededError
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.source_position import Use, choose, read_source
from eos_sink.ops.starting_offsets import find_starting_offsets
from eos_sink.options import parse_options
from eos_sink.protocol.model import BatchId, Numbering, StartNote
from eos_sink.protocol.values import Hanging, HangingLook
from tests.fakes.kafka import FakeControl, FakeKafka
from tests.protocol.checkpoint import INPUT, Checkpoint
from tests.protocol.driver import Driver, once
from tests.protocol.source import GROUP, Reader, ReadingWorld, reading_world, source_options
from tests.protocol.world import batch_options, given_options

GIVEN = {
    "eos.id": "story",
    "subscribe": INPUT,
    "eos.source.group.id": GROUP,
    "checkpointLocation": "/checkpoint",
}


@pytest.fixture
def world() -> ReadingWorld:
    return reading_world()


@pytest.fixture
def reader(world: ReadingWorld) -> Reader:
    return Reader(world, Checkpoint(began={0: 0, 1: 0}))


def find(
    world: ReadingWorld,
    files: Checkpoint | None = None,
    default: str = "earliest",
    eos_id: str = "story",
    group: str = GROUP,
) -> dict[str, int]:
    """What `eos_sink.starting_offsets` returns for the input."""
    given = given_options(**{**GIVEN, "eos.id": eos_id, "eos.source.group.id": group})
    kafka = FakeKafka(world.cluster)
    found = find_starting_offsets(given, default, lambda _: kafka, files or Checkpoint(None))
    return dict(json.loads(found)[INPUT])


def find_numbers(
    world: ReadingWorld, default: str = "earliest", eos_id: str = "story"
) -> dict[int, int]:
    """Where a new checkpoint begins."""
    found = find(world, default=default, eos_id=eos_id)
    return {int(number): max(0, offset) for number, offset in found.items()}


def use_record(world: ReadingWorld, names: QueryNames) -> None:
    kafka = FakeKafka(world.cluster)
    state = read_source(kafka, names, GROUP, Deadline(30))
    choose(kafka, names, state, Use.RECORD, Deadline(30))


def write_in_foreach_batch(reader: Reader, **extra: str) -> None:
    """A batch of the query, which writes in foreachBatch now."""
    reader.world.options = batch_options(**{"eos.inline.bytes": "0", **extra})
    stream = BatchId.numbered_by(Numbering.FOREACH, str(reader.files.stream), 0).stream
    reader.driver = Driver(reader.world, stream, files=reader.files)
    reader.run()


def test_what_hangs_in_the_log_is_ended_before_it_is_read(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each id that the query writes it with may have left it behind."""
    find(world)
    names, control = world.options.names, world.cluster.coordinator
    started = control.describe(names.start)
    home = FakeKafka(world.cluster).log_reader(names, Deadline(1)).home
    left = Hanging(started.transaction, home.topic, home.partition, 0, -1, started)
    ended: list[tuple[Hanging, bool]] = []

    def look(_: object, topics: object, ids: list[str], *__: object) -> HangingLook:
        return HangingLook([left] if ids == [names.driver, names.start] else [], frozenset())

    def end(_: object, hanging: Hanging, commits: bool, __: Deadline) -> bool:
        ended.append((hanging, commits))
        return True

    monkeypatch.setattr(FakeControl, "find_hanging", look)
    monkeypatch.setattr(FakeControl, "end_hanging", end)
    find(world)
    assert ended == [(left, True)]


def test_a_topic_that_the_options_name_has_to_be_there(world: ReadingWorld) -> None:
    given = given_options(**{**GIVEN, "subscribe": f"{INPUT}, gone"})
    kafka = FakeKafka(world.cluster)
    with pytest.raises(ClusterError, match="topic gone, which"):
        find_starting_offsets(given, "earliest", lambda _: kafka, Checkpoint(None))


class TestTheIdentitiesThatCount:
    def test_without_an_id_another_query_on_the_same_topic_does_not(self, reader: Reader) -> None:
        options = {**GIVEN, "checkpointLocation": "/another"}
        del options["eos.id"]
        write_in_foreach_batch(reader, **options)
        assert find(reader.world, eos_id="", group="another") == {"0": -2, "1": -2}

    @pytest.mark.parametrize("named", [True, False])
    def test_a_single_write_does_not(self, world: ReadingWorld, named: bool) -> None:
        world.options = batch_options(**({"eos.id": "story"} if named else {}))
        Driver(world).run(once("load"), [b"a"])
        assert find(world, eos_id="story" if named else "") == {"0": -2, "1": -2}


def test_rows_that_were_deleted_before_the_groups_offset_stop_the_first_start(
    world: ReadingWorld,
) -> None:
    world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 2, (INPUT, 1): 5})
    assert find(world, default="committed") == {"0": 2, "1": 5}
    world.cluster.topics[INPUT].partitions[0].delete_before(4)
    with pytest.raises(OperatorNeededError) as raised:
        find(world, default="committed")
    assert list(raised.value.data["places"]) == [f"{INPUT}[0]"]


def test_an_offset_of_the_group_in_no_partition_is_left_out_by_name(
    world: ReadingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka deletes it with the partition, unless it has missed that; no tool can."""
    world.cluster.groups.commit_offsets(GROUP, {(INPUT, 0): 2, (INPUT, 7): 5})
    assert find(world, default="committed") == {"0": 2, "1": -2}
    assert f"{INPUT}[7]" in caplog.text


def test_what_was_noted_of_topics_that_a_call_does_not_name_is_kept(world: ReadingWorld) -> None:
    """One call for each source of a query forgot where the others had begun."""
    kafka, names, deadline = FakeKafka(world.cluster), world.options.names, Deadline(30)
    world.cluster.create_topic("more", 1)
    find(world)
    ids = kafka.topic_ids({INPUT, "more"}, deadline)
    note = StartNote("", None, {(INPUT, 0): 5, ("more", 0): 7}, ids)
    write_note(kafka, names, GROUP, note, deadline)
    assert find(world, default="latest") == {"0": 5, "1": -2}
    noted = read_note(kafka, GROUP, deadline)
    assert noted is not None
    assert (noted.begins, noted.topics) == (note.begins, ids)


class TestABatchThatIsThereUnfinished:
    """Nothing in a checkpoint tells which sink has begun a batch."""

    def other_sink(self, reader: Reader, *, finished: bool) -> None:
        """Another sink has written two batches with the checkpoint."""
        reader.files.ends = {0: {0: 1, 1: 1}, 1: {0: 2, 1: 2}}
        reader.files.commits = {0, 1} if finished else {0}

    def refuse(self, reader: Reader) -> OperatorNeededError:
        """The plan stops, twice, and so does a program that calls `starting_offsets`."""
        for _ in range(2):
            with pytest.raises(OperatorNeededError):
                reader.restart().planner.plan()
        with pytest.raises(OperatorNeededError) as raised:
            find(reader.world, reader.files)
        with pytest.raises(OperatorNeededError):
            reader.restart().planner.plan()
        assert reader.world.visible() == []
        assert raised.value.action is Action.LOOK
        return raised.value

    def test_of_a_program_that_does_not_ask_is_read_again(self, reader: Reader) -> None:
        reader.files = Checkpoint(began={0: 5, 1: 6}, ends={0: {0: 7, 1: 7}})
        error = self.refuse(reader)
        # As the error says; with other rows since, and the program begins at the end.
        assert "If not: Delete the checkpoint directory" in error.remedy
        reader.files = Checkpoint(None)
        for _ in range(2):
            assert find(reader.world, reader.files, "latest") == {"0": 5, "1": 6}
        reader.files = Checkpoint("stream-2", began={0: 5, 1: 6}, ends={0: {0: 8, 1: 8}})
        reader.restart()
        reader.run()
        assert reader.world.visible() == [b"0-5", b"0-6", b"0-7", b"1-6", b"1-7"]

    def test_of_another_sink_is_finished_by_that(self, reader: Reader) -> None:
        self.other_sink(reader, finished=False)
        assert "with the same sink" in self.refuse(reader).remedy
        # As the error says.
        reader.files.commits.add(1)
        find(reader.world, reader.files)
        reader.files.ends[2] = {0: 3, 1: 3}
        reader.restart()
        reader.run()
        assert reader.world.visible() == [b"0-2", b"1-2"]

    def test_after_a_call_without_a_start_is_not_this_starts(self, reader: Reader) -> None:
        find(reader.world, Checkpoint(None))
        self.other_sink(reader, finished=False)
        self.refuse(reader)

    def test_of_this_start_is_written(self, reader: Reader) -> None:
        self.other_sink(reader, finished=True)
        for _ in range(2):
            find(reader.world, reader.files)
        reader.files.ends[2] = {0: 3, 1: 3}
        reader.run()
        assert reader.world.visible() == [b"0-2", b"1-2"]

    def test_is_known_from_the_first_plan_on(self, reader: Reader) -> None:
        find(reader.world, Checkpoint(None))
        reader.files.ends[0] = {0: 1, 1: 1}
        reader.driver.planner.plan()
        find(reader.world, reader.files)
        reader.restart()
        reader.run()
        assert reader.world.visible() == [b"0-0", b"1-0"]


class TestATopicThatIsMadeAgain:
    """No position has its id yet."""

    def test_during_the_first_batch_stops(self, reader: Reader) -> None:
        find(reader.world, Checkpoint(None))
        rows = reader.rows(reader.begin())
        reader.world.make_input_again()
        with pytest.raises(OperatorNeededError, match="topic in of the source was") as raised:
            reader.driver.write(reader.driver.planner.plan(), 0, *rows)
        # As the error says.
        assert raised.value.remedy.startswith("Delete the checkpoint directory")
        reader.new_checkpoint(find_numbers(reader.world))
        reader.run()
        begun = [row for part in reader.rows(0) for row in part]
        assert reader.world.visible() == sorted(begun) != []

    def test_is_not_read_from_where_an_unfinished_batch_began(self, reader: Reader) -> None:
        reader.files = Checkpoint(began={0: 5, 1: 6}, ends={0: {0: 7, 1: 7}})
        with pytest.raises(OperatorNeededError, match="was begun by a start"):
            reader.restart().planner.plan()
        reader.world.make_input_again()
        # Neither does a second look at the batch take the new topic for the former one.
        with pytest.raises(OperatorNeededError, match="was begun by a start"):
            find(reader.world, reader.files)
        for _ in range(2):
            assert set(find(reader.world, Checkpoint(None)).values()) == {-2}


class TestAFormerIdentity:
    def rename(self, reader: Reader) -> None:
        reader.world.options = source_options(**{"eos.id": "renamed"})
        reader.restart()

    def test_that_has_decided_the_batch_finishes_it(self, reader: Reader) -> None:
        former = reader.world.options
        reader.run()
        reports = reader.write(reader.begin())
        reader.driver.committer.commit(reports)
        visible = reader.world.visible()
        # Spark has not noted it; and the query gets another name.
        self.rename(reader)
        errors = []
        with pytest.raises(OperatorNeededError) as raised:
            find(reader.world, reader.files, eos_id="renamed")
        errors.append(raised.value)
        with pytest.raises(OperatorNeededError) as raised:
            reader.driver.planner.plan()
        errors.append(raised.value)
        for error in errors:
            assert error.data["query"] == former.names.query
            assert "elete the checkpoint" not in error.remedy
        # As the error says.
        reader.world.options = former
        reader.restart()
        reader.commit(1, reader.write(1))
        self.rename(reader)
        find(reader.world, reader.files, eos_id="renamed")
        reader.run()
        assert reader.world.visible() == sorted([*visible, b"0-2", b"1-2"])

    def test_that_has_not_decided_the_batch_is_followed(self, reader: Reader) -> None:
        reader.run()
        reader.write(reader.begin())
        self.rename(reader)
        find(reader.world, reader.files, eos_id="renamed")
        reader.run()
        reader.world.cluster.coordinator.time_out()
        assert reader.world.visible() == [b"0-0", b"0-1", b"1-0", b"1-1"]

    def test_does_not_know_what_was_written_without_the_option(self, reader: Reader) -> None:
        former = reader.world.options
        reader.run()
        given = given_options(**{**GIVEN, "eos.id": "renamed"})
        del given["eos.source.group.id"]
        reader.world.options = parse_options(given)
        reader.restart()
        reader.run()
        reader.world.options = former
        with pytest.raises(OperatorNeededError):
            find(reader.world)

    def refuse(self, reader: Reader) -> None:
        """A first start under the new identity stops, however often it is tried."""
        for default in ("earliest", "committed"):
            with pytest.raises(OperatorNeededError, match="last under another identity") as raised:
                find(reader.world, default=default, eos_id="renamed")
            with pytest.raises(OperatorNeededError, match="last under another identity"):
                reader.driver.planner.plan()
        remedy = raised.value.remedy
        assert remedy.startswith("Start the query as it was then: with writeStream.format, eos.id")

    @pytest.mark.parametrize("group", ["follows", "is reset", "has expired"])
    def test_writes_the_first_batch_of_a_new_checkpoint(self, reader: Reader, group: str) -> None:
        former, groups = reader.world.options, reader.world.cluster.groups
        reader.run(2)
        if group == "is reset":
            groups.commit_offsets(GROUP, {(INPUT, 0): 0})
        elif group == "has expired":
            groups.committed.clear()
            # A command's record still tells how the query was started.
            use_record(reader.world, former.names)
            groups.committed.clear()
        self.rename(reader)
        for began in (0, 2):
            reader.new_checkpoint({0: began, 1: began})
            reader.files.ends[0] = {0: 3, 1: 3}
            self.refuse(reader)
        # As the error says, and the next ones.
        if group != "follows":
            use_record(reader.world, former.names)
        reader.world.options = former
        reader.new_checkpoint(find_numbers(reader.world))
        reader.run()
        self.rename(reader)
        reader.run()
        rows = sorted(b"%d-%d" % (place, number) for place in range(2) for number in range(4))
        assert reader.world.visible() == rows

    @pytest.mark.parametrize("begun", [True, False])
    def test_writes_the_next_batch_of_a_checkpoint_with_new_metadata(
        self, reader: Reader, *, begun: bool
    ) -> None:
        """Spark makes a new stream id, so that no claim of the stream leads to the identity."""
        former = reader.world.options
        reader.run(2)
        if begun:
            reader.begin()
        reader.files.stream = "stream-2"
        self.rename(reader)
        if not begun:
            reader.begin()
        self.refuse(reader)
        # As the error says.
        reader.world.options = former
        reader.restart()
        reader.run()
        self.rename(reader)
        reader.run()
        rows = sorted(b"%d-%d" % (place, number) for place in range(2) for number in range(4))
        assert reader.world.visible() == rows

    def test_has_ended_where_its_checkpoint_goes_on(self, reader: Reader) -> None:
        """The last batch was made again since, with another end."""
        reader.run(2)
        reader.files.ends[0] = {0: 3, 1: 1}
        self.rename(reader)
        reader.begin()
        with pytest.raises(OperatorNeededError, match="does not go on from there") as raised:
            reader.driver.planner.plan()
        assert "Start the query as it was then" in raised.value.remedy
        # Only there the log knows the position that the commands of an error are about.
        reader.world.options = source_options()
        reader.restart()
        with pytest.raises(OperatorNeededError, match="skip 1 rows") as raised:
            reader.driver.planner.plan()
        assert raised.value.data["stands"] == {INPUT: {"0": 2, "1": 2}}

    def test_tells_where_to_begin_instead_of_an_old_note(self, reader: Reader) -> None:
        # The very first start was refused, and noted where its checkpoint began.
        reader.files = Checkpoint(began={0: 0, 1: 0}, ends={0: {0: 1, 1: 1}})
        with pytest.raises(OperatorNeededError):
            find(reader.world, reader.files)
        reader.new_checkpoint(find_numbers(reader.world))
        reader.files.ends[0] = {0: 2, 1: 2}
        reader.run()
        with pytest.raises(OperatorNeededError, match="last under another identity"):
            find(reader.world, eos_id="renamed")
        assert find(reader.world) == {"0": 2, "1": 2}

    def test_whose_group_has_expired_is_followed_with_its_checkpoint(self, reader: Reader) -> None:
        reader.run(2)
        reader.world.cluster.groups.committed.clear()
        self.rename(reader)
        find(reader.world, reader.files, eos_id="renamed")
        reader.run()
        assert reader.world.visible() == [b"0-0", b"0-1", b"0-2", b"1-0", b"1-1", b"1-2"]

    def test_that_has_lost_its_last_batch_is_started_once_more(self, reader: Reader) -> None:
        """Its rows are nowhere, and the group is behind them."""
        first = reader.world.options
        reader.run()
        self.rename(reader)
        reader.run()
        number = reader.begin()
        plan = reader.driver.planner.plan()
        reader.driver.dies_committing(reader.driver.write(plan, number, *reader.rows(number)))
        reader.world.cluster.coordinator.time_out()
        renamed, reader.world.options = reader.world.options, first
        with pytest.raises(OperatorNeededError, match="last under another identity"):
            find(reader.world)
        # As the error says.
        reader.world.options = renamed
        reader.new_checkpoint(find_numbers(reader.world, eos_id="renamed"), "stream-3")
        reader.run()
        assert reader.world.visible() == [b"0-0", b"0-1", b"0-2", b"1-0", b"1-1", b"1-2"]
