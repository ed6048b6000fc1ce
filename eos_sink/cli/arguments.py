"""Options that commands share: numbers, and how to reach a cluster. Named as in Kafka's tools."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eos_sink.cli.output import CommandError
from eos_sink.identity import DEFAULT_LOG, DEFAULT_PREFIX
from eos_sink.kafka_config.properties_file import read_properties
from eos_sink.shell import quote

if TYPE_CHECKING:
    from eos_sink.kafka_config.cluster_config import ClusterConfig

T = TypeVar("T", int, float)
_LONGEST_S = 1_000_000
"""Eleven days; clients count milliseconds in 32 bits."""

ENVIRONMENT = {
    "--bootstrap-server": "EOS_SINK_BOOTSTRAP_SERVER",
    "--command-config": "EOS_SINK_COMMAND_CONFIG",
    "--log-topic": "EOS_SINK_LOG_TOPIC",
    "--prefix": "EOS_SINK_PREFIX",
    "--timeout": "EOS_SINK_TIMEOUT",
}
"""The environment variable that gives the default of an option."""

_TIMEOUT_S = 120.0


def _number(kind: type[T], minimum: float, maximum: float, what: str) -> Callable[[str], T]:
    """Make a parser of numbers for the `type` of an option."""

    def parse(text: str) -> T:
        with contextlib.suppress(ValueError):
            number = kind(text)
            if minimum <= number <= maximum:
                return number
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")

    return parse


whole = _number(int, 0, 2**63 - 1, "a whole number")
positive = _number(int, 1, 2**63 - 1, "a whole number above 0")
port = _number(int, 0, 65_535, "a port")
partition = _number(int, 0, 999_999, "a partition")
seconds = _number(float, 0, _LONGEST_S, f"a number of seconds, at most {_LONGEST_S}")
positive_seconds = _number(
    float, sys.float_info.min, _LONGEST_S, f"a number of seconds above 0, at most {_LONGEST_S}"
)


def add_brokers(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Declare how the command reaches a cluster, which it may do without if it is not `needed`."""
    needed = needed and not os.environ.get(ENVIRONMENT["--bootstrap-server"])
    help_ = "Brokers to connect to, separated by commas."
    _add(parser, "--bootstrap-server", help_, metavar="HOST:PORT", required=needed)
    help_ = "Properties for the Kafka clients, such as the login."
    _add(parser, "--command-config", help_, type=Path, metavar="FILE")
    help_ = "Show the log of the Kafka clients on standard error."
    parser.add_argument("--verbose", action="store_true", help=help_)


def add_connection(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Declare how the command reaches a cluster, as `add_brokers` does, and its queries."""
    add_brokers(parser, needed=needed)
    help_ = "Topic of the decision log: the queries' eos.log.topic."
    _add(parser, "--log-topic", help_, DEFAULT_LOG, metavar="TOPIC")
    help_ = "The queries' eos.transactional.id.prefix."
    _add(parser, "--prefix", help_, DEFAULT_PREFIX, type=str)


def add_timeout(
    parser: argparse.ArgumentParser, default_s: float = _TIMEOUT_S, *, limits: str = ""
) -> None:
    """Declare `--timeout`: one deadline for the whole command.

    Args:
        limits: what the deadline does not bound, as the end of a sentence.
    """
    help_ = f"Seconds that the command may take{limits}."
    default = f"{default_s:g}"
    _add(parser, "--timeout", help_, default, type=positive_seconds, metavar="S")


def _add(
    parser: argparse.ArgumentParser,
    option: str,
    help_: str,
    default: str | None = None,
    **declared: Any,
) -> None:
    """Declare an option whose default the environment may give."""
    variable = ENVIRONMENT[option]
    default = os.environ.get(variable) or default
    shown = "" if default is None else " Default: %(default)s."
    help_ = f"{help_}{shown} Environment: {variable}."
    parser.add_argument(option, default=default, help=help_, **declared)


def cluster_config(arguments: argparse.Namespace) -> ClusterConfig:
    """Make what the Kafka clients of a command need.

    Args:
        arguments: those of `add_connection`, or of `add_brokers`.

    Raises:
        CommandError: the file of `--command-config` cannot be read.
        ConfigurationError: a setting cannot be honoured.
    """
    from eos_sink.kafka_config.cluster_config import ClusterConfig
    from eos_sink.kafka_config.translate import translate

    return ClusterConfig(
        translate(kafka_settings(arguments)),
        log_topic=getattr(arguments, "log_topic", DEFAULT_LOG),
        prefix=getattr(arguments, "prefix", DEFAULT_PREFIX),
    )


def kafka_settings(arguments: argparse.Namespace) -> dict[str, str]:
    """Read the client settings of `--command-config` and add `--bootstrap-server`.

    Raises:
        CommandError: the file cannot be read.
    """
    settings: dict[str, str] = {}
    file: Path | None = arguments.command_config
    if file is not None:
        settings = read_settings("--command-config", file)
    if arguments.bootstrap_server:
        settings["bootstrap.servers"] = arguments.bootstrap_server
    return settings


def read_settings(option: str, file: Path) -> dict[str, str]:
    """Read a Java properties file that `option` names.

    Raises:
        CommandError: the file cannot be read.
    """
    try:
        entries = read_properties(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{option} {file}: {error}") from error
    return {entry.name: entry.value for entry in entries}


def command_line(arguments: argparse.Namespace) -> str:
    """Format the options with which another command reaches the same cluster and log."""
    given: dict[str, Any] = {
        "--bootstrap-server": arguments.bootstrap_server,
        "--command-config": arguments.command_config,
    }
    if getattr(arguments, "log_topic", DEFAULT_LOG) != DEFAULT_LOG:
        given["--log-topic"] = arguments.log_topic
    if getattr(arguments, "prefix", DEFAULT_PREFIX) != DEFAULT_PREFIX:
        given["--prefix"] = arguments.prefix
    return " ".join(f"{name} {quote(value)}" for name, value in given.items() if value)
