"""A command that would end a run of the query refuses while one may be alive."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from eos_sink.cli.arguments import add_timeout
from eos_sink.cli.output import CommandError
from eos_sink.driver.processes import is_alive_here, is_dead_here
from eos_sink.identity import QueryNames
from eos_sink.ops.operator_run import may_be_alive
from eos_sink.protocol.model import Run


def add_change(parser: argparse.ArgumentParser) -> None:
    """Declare `--yes`, without which the command asks before it changes something, `--take-over`,
    and `--timeout`: what is confirmed is not cut short because the question took long."""
    help_ = "Do not ask for the query's name as a confirmation."
    parser.add_argument("--yes", action="store_true", help=help_)
    help_ = (
        "Continue although a run of the query may be alive. Such a run can decide nothing any "
        "more, and stops."
    )
    parser.add_argument("--take-over", action="store_true", help=help_)
    add_timeout(parser, limits="; a change may take as long again")


def check_driver(
    names: QueryNames, run: Run | None, hosts: Sequence[str] | None, *, take_over: bool
) -> None:
    """Do not end a live run by mistake: it would be safe, but the run would stop.

    Args:
        run: the one that wrote last, if the log names it.
        hosts: of the group's members; None if the group could not be read.
        take_over: the operator has accepted that.

    Raises:
        CommandError: a run of the query is alive, or may be.
    """
    if not take_over and may_be_alive(run, hosts):
        raise CommandError(
            f"{' '.join(describe_run(names, run, hosts))} Stop the query. Then wait until the "
            "group lists no member; or add --take-over, after which a run that is alive all the "
            "same can decide nothing any more, and stops"
        )


def describe_run(names: QueryNames, run: Run | None, hosts: Sequence[str] | None) -> Iterator[str]:
    """Say which run of the query wrote last, and whether one may be alive."""
    if run is not None:
        state = "; it is alive" if is_alive_here(run) else ""
        state = "; it has ended" if run.tool or is_dead_here(run) else state
        yield f"The last record was written by {run}{state}."
    if hosts is None:
        yield (
            f"The group {names.group} cannot be read, so a run may be alive (its members are shown "
            "to who has Describe on the group)."
        )
    elif hosts and not may_be_alive(run, hosts):
        yield (
            f"The group {names.group} lists a member from {', '.join(hosts)}: that command's, "
            "unless a run has started since."
        )
    elif hosts:
        yield (
            f"The group {names.group} lists a member from {', '.join(hosts)}, so a run is alive, "
            "or died within its session (half an hour unless the brokers' "
            "group.max.session.timeout.ms says otherwise, an hour at most)."
        )
