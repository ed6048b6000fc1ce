"""Clusters for tests that need their own: with nodes to strike, properties, or a version."""

from __future__ import annotations

import os
from typing import Any

from eos_sink_lab.testing import Backend, KafkaCluster, start_kafka
from eos_sink_lab.testing.backends import choose_backend


def start_own_kafka(**arguments: Any) -> KafkaCluster:
    """As `start_kafka`, but never the shared cluster of EOS_BOOTSTRAP, which has no nodes.

    On that cluster a test that strikes nodes, or needs properties, would prove nothing.
    """
    wanted = os.environ.get("EOS_KAFKA")
    backend = Backend.AUTO if wanted == Backend.EXTERNAL.value else wanted
    environ = {name: value for name, value in os.environ.items() if name != "EOS_BOOTSTRAP"}
    return start_kafka(**arguments, backend=choose_backend(backend, environ))
