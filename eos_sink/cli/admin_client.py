"""The Kafka clients of a command."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from eos_sink.cli.arguments import cluster_config

if TYPE_CHECKING:
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin


def connect(arguments: argparse.Namespace, timeout_s: float) -> closing[ConfluentAdmin]:
    """Make the clients of a command, to be closed at its end.

    Args:
        arguments: those of `cluster_config`, which documents the errors.
        timeout_s: how long the command, or a part of it, may take.
    """
    # Imported here: help texts do without the Kafka clients.
    from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin

    return closing(ConfluentAdmin(cluster_config(arguments), timeout_s))
