"""`eos-sink watch`: all queries of a cluster, live, as a picture or as lines."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from eos_sink.cli.connection import add_connection, command_line, sink_options
from eos_sink.cli.numbers import positive, seconds
from eos_sink.cli.report import CommandError
from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline

if TYPE_CHECKING:
    from eos_sink.cli.views import View
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin

NAME = "watch"
HELP = "Watch batches as they are decided and settled, until Ctrl-C."
EXAMPLES = """\
examples:
  eos-sink watch --bootstrap-server kafka:9092                 a live view; Ctrl-C leaves it
  eos-sink watch readings --bootstrap-server kafka:9092        one query
  eos-sink watch --bootstrap-server kafka:9092 | tee seen      a line an event, as in any pipe
  eos-sink watch --bootstrap-server kafka:9092 --json          the same, a JSON object a line

exit code: 0 left with Ctrl-C, or after --looks; 2 no broker answers, or there is no such query
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("query", nargs="*", metavar="QUERY", help="these only")
    add_connection(parser)
    add = parser.add_argument
    add("--interval", type=seconds, default=1.0, metavar="S", help="between two looks (1)")
    add("--looks", type=positive, metavar="N", help="leave after so many")
    add("--lines", action="store_true", help="a line an event on a terminal, too")


def run(arguments: argparse.Namespace) -> None:
    """Look again and again.

    Raises:
        CommandError: the first look fails, or there is no such query.
    """
    from eos_sink.cli.views import make_view
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin

    admin = ConfluentAdmin(sink_options(arguments))
    try:
        with make_view(
            sys.stdout,
            as_json=arguments.json,
            lines=arguments.lines,
            title=f"eos-sink watch · {arguments.bootstrap_server}",
            reach=command_line(arguments),
        ) as view:
            _watch(admin, view, arguments)
    except EosSinkError as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        return  # That is how one leaves it.
    finally:
        admin.close()


def _watch(admin: ConfluentAdmin, view: View, arguments: argparse.Namespace) -> None:
    """Raises:
    EosSinkError: of the first look; a later one that fails is shown, and the next one tried.
    """
    from eos_sink.cli.status import chosen
    from eos_sink.ops.observer import Observer
    from eos_sink.ops.pace import Pacer, topics_of

    observer, pacer, looks = Observer(admin, arguments.prefix), Pacer(), 0
    while True:
        began, silent = time.monotonic(), True
        try:
            look = observer.look(Deadline(arguments.timeout))
            happened = pacer.take(look)
            look = chosen(look, arguments.query, arguments.prefix)
            ends = admin.list_offsets(topics_of(look), Deadline(arguments.timeout))
            known = {each.query for each in look.queries}
            happened = [each for each in happened if each.query in known]
            view.show(look, pacer.paces(look, ends), happened)
            silent = look.silent
        except EosSinkError as error:
            if not looks:
                raise
            view.failed(str(error))
        looks += 1
        if looks == arguments.looks:
            return
        if silent:
            # It makes new clients: librdkafka (2.16) may go on waiting for a coordinator long after
            # its broker was started again.
            admin.close()
        time.sleep(max(0.0, arguments.interval - (time.monotonic() - began)))
