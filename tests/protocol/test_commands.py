"""The command that an error prints reaches the log and the query that the error is about."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from eos_sink import cli
from eos_sink.errors import OperatorNeededError
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import World, options

LOG, PREFIX = "team.log", "team b-"


def with_other_rows(world: World) -> None:
    Driver(world).run(0, [b"b"])


def from_an_old_checkpoint(world: World) -> None:
    Driver(world).run(1, [b"b"])
    Driver(world).run(0, [b"a"])


def in_doubt(world: World) -> None:
    decide_and_die(world, [b"b"], batch=1)
    world.a_week_passes()
    Driver(world).run(1, [b"b"])


@pytest.mark.parametrize(
    "goes_on",
    [
        with_other_rows,
        from_an_old_checkpoint,
        in_doubt,
    ],
)
def test_an_error_prints_a_command_for_its_own_log_and_prefix(
    goes_on: Callable[[World], None],
) -> None:
    """Under the usual ones it would find no record, and offer to start without any."""
    made = options(**{"eos.log.topic": LOG, "eos.transactional.id.prefix": PREFIX})
    world = World([], options=made)
    Driver(world).run(0, [b"a"])
    with pytest.raises(OperatorNeededError) as stop:
        goes_on(world)
    printed = re.search(
        r"eos-sink (resolve .*?HOST:PORT(?: --(?:log-topic|prefix) (?:'.*?'|\S+))*)",
        stop.value.remedy,
    )
    assert printed is not None
    given = cli.parser().parse_args(shlex.split(printed[1]))
    assert (given.query, given.log_topic, given.prefix) == (made.names.query, LOG, PREFIX)
