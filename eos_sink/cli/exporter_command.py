"""`eos-sink exporter`: the metrics of every query of a cluster, for Prometheus."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NoReturn

from eos_sink.cli.arguments import add_connection, cluster_config, port, positive_seconds
from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import CommandError, Report, require_libraries

if TYPE_CHECKING:
    from eos_sink.ops.exporter import Scrape, Scraper

NAME = "exporter"
HELP = "Serve the metrics of every query to Prometheus."
EXAMPLES = """\
examples:
  eos-sink exporter --bootstrap-server kafka:9092                     on localhost:9464
  eos-sink exporter --bootstrap-server kafka:9092 --address 0.0.0.0   for other machines, too
  eos-sink exporter --bootstrap-server kafka:9092 --once              print them and exit
  eos-sink exporter --bootstrap-server kafka:9092 --textfile /var/lib/node_exporter/eos-sink.prom

Without --once it runs until it is interrupted or killed.
"""
EXIT_CODES = {ExitCode.OK: "--once has printed or written the metrics"}

_PORT = 9464
# The metrics name queries and topics, and reading them needs no login.
_ADDRESS = "127.0.0.1"
# Below Prometheus' default scrape_timeout of 10 s.
_SCRAPE_TIMEOUT_S = 8.0
_INTERVAL_S = 5.0
_TEXTFILE_INTERVAL_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    add = parser.add_argument
    add("--port", type=port, default=_PORT, help="Port to listen on. Default: %(default)s.")
    add(
        "--address",
        default=_ADDRESS,
        help="Address to listen on; 0.0.0.0 stands for all interfaces. Default: %(default)s.",
    )
    add("--once", action="store_true", help="Read the cluster once, print the metrics and exit.")
    add(
        "--textfile",
        type=Path,
        metavar="FILE",
        help="Do not listen, but write FILE (*.prom) for node_exporter's textfile collector.",
    )
    add(
        "--interval",
        type=positive_seconds,
        metavar="S",
        help="Seconds between two readings of the cluster. "
        f"Default: {_INTERVAL_S:g}, or {_TEXTFILE_INTERVAL_S:g} with --textfile.",
    )
    add(
        "--scrape-timeout",
        type=positive_seconds,
        default=_SCRAPE_TIMEOUT_S,
        metavar="S",
        help="Seconds that one reading of the cluster may take. Default: %(default)g.",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Serve until the process is ended, or once.

    Raises:
        CommandError: the port or the file cannot be used; with --once: no broker answers.
    """
    require_libraries("the exporter", "exporter", "prometheus_client")
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
    from eos_sink.ops.exporter import Scraper

    file = arguments.textfile
    if file is not None and file.suffix != ".prom":
        raise CommandError(f"--textfile {file}: node_exporter reads *.prom only")
    interval = arguments.interval or (_TEXTFILE_INTERVAL_S if file else _INTERVAL_S)
    config = cluster_config(arguments)
    with closing(
        Scraper(
            lambda: ConfluentAdmin(config, arguments.scrape_timeout),
            arguments.prefix,
            arguments.scrape_timeout,
            0.0 if file else interval,
            # With --once it is the command's own error.
            on_error=(lambda _: None) if arguments.once else _log,
        )
    ) as scraper:
        if arguments.once:
            return _run_once(scraper, file)
        if file is not None:
            _write_again_and_again(scraper, file, interval)
        _serve(scraper, arguments.address, arguments.port)
        while True:
            Event().wait()


def _run_once(scraper: Scraper, file: Path | None) -> Report:
    scrape = scraper.scrape()
    if file is not None:
        _write(scrape, file)
    if scrape.snapshot is None:
        raise CommandError(scrape.error)
    document = {
        each.name: [{"name": s.name, "labels": s.labels, "value": s.value} for s in each.samples]
        for each in scrape.collect()
    }
    text = f"Written: {file}" if file else scrape.text().rstrip("\n")
    return Report((), (text,), True, document, lines=True)


def _serve(scraper: Scraper, address: str, port: int) -> None:
    from eos_sink.ops.exporter import serve

    try:
        serve(scraper, address, port)
    except OSError as error:
        raise CommandError(f"cannot serve on {address}:{port}: {error}") from error
    _log(f"Serving http://{address}:{port}/metrics")


def _write(scrape: Scrape, file: Path) -> None:
    from eos_sink.ops.exporter import write_text

    try:
        write_text(scrape, file)
    except OSError as error:
        raise CommandError(f"--textfile {file}: {error}") from error


def _write_again_and_again(scraper: Scraper, file: Path, interval: float) -> NoReturn:
    _write(scraper.scrape(), file)
    _log(f"Writing {file} every {interval:g} s.")
    while True:
        time.sleep(interval)
        try:
            _write(scraper.scrape(), file)
        except CommandError as error:  # The disk may be full for a while.
            _log(str(error))


def _log(what: str) -> None:
    """To standard error; standard output has the metrics."""
    print(f"eos-sink: {what}", file=sys.stderr, flush=True)
