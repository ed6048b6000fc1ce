"""`eos-sink exporter`: the figures of every query of a cluster, for Prometheus."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NoReturn

from eos_sink.cli.connection import add_connection, sink_options
from eos_sink.cli.numbers import some_seconds
from eos_sink.cli.report import CommandError, Report

if TYPE_CHECKING:
    from eos_sink.ops.exposition import Look
    from eos_sink.ops.scraper import Scraper

NAME = "exporter"
HELP = "Serve the figures of every query to Prometheus."
EXAMPLES = """\
examples:
  eos-sink exporter --bootstrap-server kafka:9092                     on port 9464, until it ends
  eos-sink exporter --bootstrap-server kafka:9092 --once              print them and leave
  eos-sink exporter --bootstrap-server kafka:9092 --textfile /var/lib/node_exporter/eos-sink.prom

exit code: 0 served until it was ended, or printed; 2 the port or the file cannot be used, or, with
--once, no broker answers; 130 interrupted with Ctrl-C
"""

_PORT = 9464
# Below Prometheus' default scrape_timeout of 10 s.
_TIMEOUT_S = 8.0
_INTERVAL_S = 5.0
_TEXTFILE_INTERVAL_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_connection(parser, timeout=_TIMEOUT_S)
    add = parser.add_argument
    add("--port", type=int, default=_PORT, help=f"to serve on ({_PORT})")
    add("--address", default="0.0.0.0", help="to serve on (all)")  # noqa: S104
    add("--once", action="store_true", help="look once, print and leave")
    add(
        "--textfile",
        type=Path,
        metavar="FILE",
        help="do not serve, write FILE (*.prom) for node_exporter's textfile collector, again and "
        "again",
    )
    add(
        "--interval",
        type=some_seconds,
        metavar="S",
        help=f"seconds for which a look at the cluster serves ({_INTERVAL_S:g}), or between two "
        f"writes of the file ({_TEXTFILE_INTERVAL_S:g})",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Serve until the process is ended, or once.

    Raises:
        CommandError: the port or the file cannot be used; once: no broker answers.
    """
    with _scraper(arguments) as scraper:
        if arguments.once:
            return _once(scraper, arguments.textfile)
        if arguments.textfile is not None:
            return _keep_writing(
                scraper, arguments.textfile, arguments.interval or _TEXTFILE_INTERVAL_S
            )
        return _serve(scraper, arguments.address, arguments.port)


@contextmanager
def _scraper(arguments: argparse.Namespace) -> Iterator[Scraper]:
    try:
        import prometheus_client  # noqa: F401
    except ImportError as missing:
        raise CommandError(
            "the exporter needs prometheus-client: pip install 'eos-sink[cli]'"
        ) from missing
    from eos_sink.kafka.admin.cluster_admin import ConfluentAdmin
    from eos_sink.ops.scraper import Scraper

    if arguments.textfile is not None and arguments.textfile.suffix != ".prom":
        raise CommandError(f"--textfile {arguments.textfile}: node_exporter reads *.prom only")
    options = sink_options(arguments)
    interval = 0.0 if arguments.textfile else arguments.interval or _INTERVAL_S
    scraper = Scraper(
        lambda: closing(ConfluentAdmin(options)),
        arguments.prefix,
        arguments.timeout,
        interval,
    )
    try:
        yield scraper
    finally:
        scraper.close()


def _once(scraper: Scraper, file: Path | None) -> Report:
    from eos_sink.ops.prometheus import metrics, text_of

    look = scraper.look()
    if file is not None:
        _write(look, file)
    if look.snapshot is None:
        raise CommandError(look.error)
    document = {
        each.name: [{"name": s.name, "labels": s.labels, "value": s.value} for s in each.samples]
        for each in metrics(look)
    }
    text = f"Written: {file}" if file else text_of(look).rstrip("\n")
    return Report((), (), (text,), True, document)


def _keep_writing(scraper: Scraper, file: Path, interval: float) -> NoReturn:
    _say(f"Writing {file} every {interval:g} s.")
    while True:
        _write(scraper.look(), file)
        time.sleep(interval)


def _serve(scraper: Scraper, address: str, port: int) -> NoReturn:
    from eos_sink.ops.prometheus import serve

    try:
        serve(scraper, address, port)
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot serve on {address}:{port}: {error}") from error
    _say(f"Serving http://{address}:{port}/metrics")
    while True:
        Event().wait()


def _write(look: Look, file: Path) -> None:
    from eos_sink.ops.prometheus import write_text

    try:
        write_text(look, file)
    except OSError as error:
        raise CommandError(f"--textfile {file}: {error}") from error


def _say(what: str) -> None:
    """To whoever watches it or reads its log; standard output is for figures."""
    print(f"eos-sink: {what}", file=sys.stderr, flush=True)
