"""Where a new checkpoint begins, and whose position counts."""

from __future__ import annotations

import json

import pytest

from eos_sink.errors import OperatorNeededError
from eos_sink.ops.starting_offsets import find_starting_offsets
from eos_sink.protocol.model import BatchId, Numbering
from tests.fakes.kafka import FakeKafka
from tests.protocol.checkpoint import INPUT, Checkpoint
from tests.protocol.driver import Driver, once
from tests.protocol.source import GROUP, Reader, ReadingWorld, reading_world
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
) -> dict[str, int]:
    """What `eos_sink.starting_offsets` returns for the input."""
    given = given_options(**{**GIVEN, "eos.id": eos_id})
    kafka = FakeKafka(world.cluster)
    found = find_starting_offsets(given, default, lambda _: kafka, files or Checkpoint(None))
    return dict(json.loads(found)[INPUT])


def write_in_foreach_batch(reader: Reader, **extra: str) -> None:
    """A batch of the query, which writes in foreachBatch now."""
    reader.world.options = batch_options(**{"eos.inline.bytes": "0", **extra})
    stream = BatchId.numbered_by(Numbering.FOREACH, str(reader.files.stream), 0).stream
    reader.driver = Driver(reader.world, stream, files=reader.files)
    reader.run()


class TestTheIdentitiesThatCount:
    def test_without_an_id_another_query_on_the_same_topic_does_not(self, reader: Reader) -> None:
        options = {**GIVEN, "checkpointLocation": "/another"}
        del options["eos.id"]
        write_in_foreach_batch(reader, **options)
        assert find(reader.world, eos_id="") == {"0": -2, "1": -2}

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
    assert raised.value.data["stands"] == {INPUT: {"0": 2}}
