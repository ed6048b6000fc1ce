"""How a command reaches a cluster: options named as in Kafka's own tools, or the environment."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eos_sink.cli.numbers import some_seconds
from eos_sink.cli.report import CommandError
from eos_sink.identity import DEFAULT_LOG, DEFAULT_PREFIX, QueryNames
from eos_sink.kafka_config.properties_file import read_properties

if TYPE_CHECKING:
    from eos_sink.options import SinkOptions

ENVIRONMENT = {
    "--bootstrap-server": "EOS_SINK_BOOTSTRAP_SERVER",
    "--command-config": "EOS_SINK_COMMAND_CONFIG",
    "--log-topic": "EOS_SINK_LOG_TOPIC",
    "--prefix": "EOS_SINK_PREFIX",
    "--timeout": "EOS_SINK_TIMEOUT",
}
"""What an option is where it is not given."""

_TIMEOUT_S = 120.0
_SOME_MS = 60_000  # No transaction of a task is begun by a command.
_REPLICATION = 3  # As the sink's own default, where a command has to make the log again.
_NOBODY = "eos-sink-tool"


def add_brokers(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Declare `--bootstrap-server` and `--command-config`."""
    server = _default("--bootstrap-server")
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        required=needed and server is None,
        default=server,
        help="brokers to connect to",
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        default=_path("--command-config"),
        help="properties for the Kafka clients, such as the login",
    )


def add_connection(
    parser: argparse.ArgumentParser, *, needed: bool = True, timeout: float = _TIMEOUT_S
) -> None:
    """Declare all that a command needs that looks at queries.

    Args:
        parser: of the command.
        needed: `--bootstrap-server` has to be given.
        timeout: seconds that it may take unless it is told otherwise.
    """
    add_brokers(parser, needed=needed)
    add = parser.add_argument
    add(
        "--log-topic",
        default=_default("--log-topic") or DEFAULT_LOG,
        metavar="TOPIC",
        help=f"the queries' eos.log.topic ({DEFAULT_LOG})",
    )
    add(
        "--prefix",
        default=_default("--prefix") or DEFAULT_PREFIX,
        help=f"the queries' eos.transactional.id.prefix ({DEFAULT_PREFIX})",
    )
    add_timeout(parser, timeout)


def add_timeout(
    parser: argparse.ArgumentParser, seconds: float, meaning: str = "seconds that it may take"
) -> None:
    """Declare `--timeout`: all that the command waits for, together, unless it means another."""
    parser.add_argument(
        "--timeout",
        type=some_seconds,
        default=_default("--timeout") or str(seconds),
        metavar="S",
        help=f"{meaning} ({seconds:g})",
    )


def sink_options(arguments: argparse.Namespace, query: str = _NOBODY) -> SinkOptions:
    """What the clients of one query would be made from.

    Args:
        arguments: those of `add_connection`, or of `add_brokers` and `add_timeout`.
        query: its name in the decision log; left out where all queries are looked at.

    Raises:
        CommandError: FILE cannot be read.
    """
    from eos_sink.options import SinkOptions

    return SinkOptions(
        names=QueryNames(getattr(arguments, "prefix", DEFAULT_PREFIX), query),
        topic=None,
        log_topic=getattr(arguments, "log_topic", DEFAULT_LOG),
        log_replication=_REPLICATION,
        transaction_timeout_ms=_SOME_MS,
        step_timeout=arguments.timeout,
        kafka=kafka_settings(arguments),
    )


def kafka_settings(arguments: argparse.Namespace) -> dict[str, str]:
    """The clients' settings: those of FILE, with the brokers that are given.

    Raises:
        CommandError: FILE cannot be read.
    """
    given = properties(arguments.command_config)
    if arguments.bootstrap_server:
        given["bootstrap.servers"] = arguments.bootstrap_server
    return given


def properties(file: Path | None) -> dict[str, str]:
    """The settings of a Java properties file.

    Raises:
        CommandError: it cannot be read.
    """
    if file is None:
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        return {entry.name: entry.value for entry in read_properties(text)}
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--command-config {file}: {error}") from error


def command_line(arguments: argparse.Namespace) -> str:
    """The options that lead another command to the same cluster and log."""
    given: dict[str, Any] = {
        "--bootstrap-server": arguments.bootstrap_server,
        "--command-config": arguments.command_config,
    }
    if getattr(arguments, "log_topic", DEFAULT_LOG) != DEFAULT_LOG:
        given["--log-topic"] = arguments.log_topic
    if getattr(arguments, "prefix", DEFAULT_PREFIX) != DEFAULT_PREFIX:
        given["--prefix"] = arguments.prefix
    return " ".join(f"{name} {shlex.quote(str(value))}" for name, value in given.items() if value)


def _default(option: str) -> str | None:
    return os.environ.get(ENVIRONMENT[option]) or None


def _path(option: str) -> Path | None:
    given = _default(option)
    return Path(given) if given else None
