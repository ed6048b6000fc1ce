"""All private attributes of kafka-python that are used here, and in no other module.

It has no public way to send any request over its connections, nor to decode a record batch whose
codec needs another library. `tests/kafka/test_internals.py` fails if a release changes one of them.
"""

from __future__ import annotations

from typing import Any

from kafka import KafkaAdminClient


class AdminClient(KafkaAdminClient):  # type: ignore[misc]
    """Ends its thread if it cannot connect. kafka-python leaves it running."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except BaseException:
            if hasattr(self, "_net"):
                self._closed = False
                self.close()
            raise

    @property
    def manager(self) -> Any:
        """What sends requests, and runs coroutines on the client's event loop."""
        return self._manager


def add_node(cluster: Any, broker: Any) -> None:
    """Let a client connect to a node that no metadata names."""
    cluster._coordinator_brokers[broker.node_id] = broker


def forget_coordinator(cluster: Any, kind: Any, name: str) -> None:
    cluster._coordinators.pop((kind, name), None)


def take_compressed(batch: Any) -> bytes | None:
    """The records of a batch as they came; None if they are plain already."""
    return None if batch._decompressed else bytes(batch._buffer[batch._pos :])


def put_plain(batch: Any, records: bytes) -> None:
    """Replace the compressed records of a batch."""
    batch._buffer, batch._pos, batch._decompressed = bytearray(records), 0, True
