"""`eos-sink watch`: all queries of a cluster, live: a picture on a terminal, else lines or JSON."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from contextlib import closing, suppress

from eos_sink.cli.admin_client import connect
from eos_sink.cli.arguments import (
    add_connection,
    command_line,
    positive,
    positive_seconds,
    seconds,
)
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import signals_within_calls
from eos_sink.cli.query_name import add_query
from eos_sink.cli.status_command import select_queries
from eos_sink.cli.watch_views import Update, View, make_view
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.activity import ActivityTracker
from eos_sink.ops.alerts import find_alerts
from eos_sink.ops.observer import Observer

NAME = "watch"
HELP = "Watch batches as they are decided and settled, until Ctrl-C."
EXAMPLES = """\
examples:
  eos-sink watch --bootstrap-server kafka:9092                 a live view; Ctrl-C leaves it
  eos-sink watch readings --bootstrap-server kafka:9092        one query
  eos-sink watch --bootstrap-server kafka:9092 | tee seen      a line per event, as in any pipe
  eos-sink watch --bootstrap-server kafka:9092 --json          a JSON object per update
"""
EXIT_CODES = {
    ExitCode.OK: "Ctrl-C or --updates has ended it",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C before it had begun",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_query(parser, nargs="*")
    add_connection(parser)
    add = parser.add_argument
    help_ = "Seconds between two updates. Default: %(default)g."
    add("--interval", type=seconds, default=1.0, metavar="S", help=help_)
    add("--updates", type=positive, metavar="N", help="Exit after N updates.")
    help_ = "Seconds that one update may take. Default: %(default)g."
    add("--update-timeout", type=positive_seconds, default=120.0, metavar="S", help=help_)
    add("--lines", action="store_true", help="Print a line per event on a terminal too.")


def run(arguments: argparse.Namespace) -> None:
    """Take snapshots until Ctrl-C."""
    title = f"eos-sink watch · {arguments.bootstrap_server}"
    view = make_view(sys.stdout, as_json=arguments.json, lines=arguments.lines, title=title)
    # Ctrl-C is the usual way to leave.
    with (
        connect(arguments, arguments.update_timeout) as admin,
        closing(view),
        suppress(KeyboardInterrupt),
        signals_within_calls(),
    ):
        _watch(Observer(admin, arguments.prefix), view, arguments)


def _watch(observer: Observer, view: View, arguments: argparse.Namespace) -> None:
    """Raises EosSinkError from the first snapshot; a later failure is shown and tried again."""
    tracker = ActivityTracker()
    for number in itertools.count(1):
        began = time.monotonic()
        try:
            view.show(take_update(observer, tracker, arguments))
        except EosSinkError as error:
            if number == 1:
                raise
            view.show_error(str(error))
        if number == arguments.updates:
            return
        time.sleep(max(0.0, arguments.interval - (time.monotonic() - began)))


def take_update(
    observer: Observer, tracker: ActivityTracker, arguments: argparse.Namespace
) -> Update:
    """Raises:
    CommandError: there is no such query.
    EosSinkError: the cluster cannot be read.
    """
    look = observer.look(Deadline(arguments.update_timeout))
    events = tracker.update(look)
    look = select_queries(look, arguments.query, arguments.prefix)
    known = {each.query for each in look.queries}
    events = [each for each in events if each.query in known]
    alerts = find_alerts(look, command_line(arguments))
    return Update(look.at_ms, tracker.measure(look), events, alerts)
