"""Reads the `kafka-acls` commands that pages and errors print."""

from __future__ import annotations

import argparse
import shlex

from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink_lab.testing.access import Access


def parse_kafka_acls(command: str) -> tuple[str, tuple[Acl, ...]]:
    """The user and the permissions of a `kafka-acls ... --add` command.

    Raises:
        ValueError: it is not such a command.
    """
    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    for name in ("--bootstrap-server", "--command-config"):
        parser.add_argument(name)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--allow-principal")
    parser.add_argument("--operation", action="append", default=[])
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--cluster", action="append_const", const="kafka-cluster")
    named = [kind for kind in Resource if kind is not Resource.CLUSTER]
    for kind in named:
        parser.add_argument(f"--{kind.value}", action="append")
    words = shlex.split(command)
    try:
        given, unknown = parser.parse_known_args(words[1:])
    except argparse.ArgumentError as error:
        raise ValueError(f"{command!r} is not understood: {error}") from error
    if unknown or words[0] != "kafka-acls" or not (given.add and given.allow_principal):
        raise ValueError(f"{command!r} is not understood {unknown or ''}")
    prefixed = given.resource_pattern_type == "prefixed"
    acls = tuple(
        Acl(operation, kind, name, prefixed)
        for kind in Resource
        for name in getattr(given, kind.value.replace("-", "_")) or ()
        for operation in given.operation
    )
    return given.allow_principal.removeprefix("User:"), acls


def run_kafka_acls(command: str, access: Access) -> None:
    """Grant what the command grants."""
    user, acls = parse_kafka_acls(command)
    access.allow(user, *acls)
