"""Clusters for tests that need their own: with nodes to strike, properties, or a version."""

from __future__ import annotations

import os
from typing import Any

from eos_sink_lab.testing import Backend, KafkaCluster, start_kafka
from eos_sink_lab.testing.backends import choose_backend
from eos_sink_lab.testing.node_properties import OUTSIDE_LISTENER
from eos_sink_lab.testing.security import jaas


def start_own_kafka(**arguments: Any) -> KafkaCluster:
    """As `start_kafka`, but never the shared cluster of EOS_BOOTSTRAP, which has no nodes.

    On that cluster a test that strikes nodes, or needs properties, would prove nothing.
    """
    wanted = os.environ.get("EOS_KAFKA")
    backend = Backend.AUTO if wanted == Backend.EXTERNAL.value else wanted
    environ = {name: value for name, value in os.environ.items() if name != "EOS_BOOTSTRAP"}
    return start_kafka(**arguments, backend=choose_backend(backend, environ))


def log_in_outside(mechanism: str, **login: str) -> dict[str, str]:
    """Properties of a proxied cluster where clients log in over its links, without TLS.

    Args:
        login: arguments of the broker's `sasl.jaas.config`.
    """
    protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"}
    protocols[OUTSIDE_LISTENER] = "SASL_PLAINTEXT"
    listener = f"listener.name.{OUTSIDE_LISTENER.lower()}.{mechanism.lower()}"
    return {
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
        "sasl.enabled.mechanisms": mechanism,
        f"{listener}.sasl.jaas.config": jaas(mechanism, **login),
    }
