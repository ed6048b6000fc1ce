"""All private attributes of kafka-python that are used here, and in no other module.

It has no public way to send any request over its connections, nor to decode a record batch whose
codec needs another library. `tests/kafka/test_internals.py` fails if a release changes one of them.
"""

from __future__ import annotations

from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

_SNAPPY, _LZ4, _ZSTD = 2, 3, 4  # CompressionType.java
_STREAMS = {_LZ4: "lz4", _ZSTD: "zstd"}
# SnappyOutputStream.java, which Java producers use: blocks, each with its length in front.
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_MORE = 0x80


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """Waits longer and longer after each login that a broker refuses, as after other failures to
    connect, and gives up a TLS handshake that is not answered. And it does not close a connection
    as idle that waits for an answer.

    Attributes:
        refused: why, by node, a login or TLS handshake has failed since the last one that did not.
    """

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.refused: dict[Any, str] = {}

    def least_used_connections(self) -> list[Any]:
        return [each for each in super().least_used_connections() if not each.in_flight_requests]

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        known = self._conns.get(node_id)
        found = super().get_connection(node_id, **options)
        if found is not known:
            found.init_future.add_errback(lambda _: self.update_backoff(node_id))
            # With TLS 1.3 a broker refuses a certificate after the handshake.
            found.close_future.add_errback(lambda error: self._note_refusal(node_id, error))

            async def give_up() -> None:
                if found.initializing and found.transport is None:
                    found.close(KafkaConnectionError("No connection, or no TLS handshake, in time"))

            # kafka-python waits for a handshake without a limit, and so does all that joins it.
            self._net.call_later(self.socket_connection_setup_timeout_ms(node_id) / 1000, give_up)
        return found

    def _note_refusal(self, node_id: Any, error: BaseException) -> None:
        of_login = isinstance(error, SaslAuthenticationFailedError)
        text = str(error.args[-1] if of_login else error)
        if of_login or ("[SSL: " in text and "UNEXPECTED_EOF" not in text):
            broker = self.cluster.broker_metadata(node_id)
            self.refused[node_id] = f"{broker.host}:{broker.port}: {text}"

    def reset_backoff(self, node_id: Any) -> None:
        """kafka-python calls it also when the login was refused."""
        found = self._conns.get(node_id)
        if found is not None and found.connected:
            self.refused.pop(node_id, None)
            super().reset_backoff(node_id)


def _make_client(**settings: Any) -> Any:
    net = NetworkSelector(**settings)
    return KafkaNetClient(net, _Manager(net, **settings))


class AdminClient(KafkaAdminClient):  # type: ignore[misc]
    """Ends its thread if it cannot connect. kafka-python leaves it running."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings, kafka_client=_make_client)
        except BaseException:
            if hasattr(self, "_net"):
                self._closed = False
                self.close()
            raise

    @property
    def manager(self) -> Any:
        """Sends requests, and runs coroutines on the client's event loop."""
        return self._manager


def add_node(cluster: Any, broker: Any) -> None:
    """Let a client connect to a node that no metadata names."""
    cluster._coordinator_brokers[broker.node_id] = broker


def forget_coordinator(cluster: Any, kind: Any, name: str) -> None:
    cluster._coordinators.pop((kind, name), None)


def decompress(batch: Any) -> None:
    """Decompress a kafka-python batch in place if kafka-python cannot. Imports pyarrow, which takes
    a quarter of a second, only for such a batch.

    Raises:
        ValueError, OSError: the data is corrupt.
    """
    codec = batch.compression_type
    if batch._decompressed or not batch.records_count or codec not in (_SNAPPY, *_STREAMS):
        return
    import pyarrow as pa

    data = bytes(batch._buffer[batch._pos :])
    if codec == _SNAPPY:
        plain = b"".join(map(_decompress_snappy, _split_blocks(data)))
    else:
        plain = pa.CompressedInputStream(pa.BufferReader(data), _STREAMS[codec]).read()
    batch._buffer, batch._pos, batch._decompressed = bytearray(plain), 0, True


def _split_blocks(data: bytes) -> list[bytes]:
    if not data.startswith(_XERIAL):
        return [data]
    blocks, at = [], _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        blocks.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return blocks


def _decompress_snappy(block: bytes) -> bytes:
    """A block begins with its decompressed size as a varint."""
    import pyarrow as pa

    size = shift = 0
    for byte in block:
        size |= (byte & ~_MORE) << shift
        shift += 7
        if not byte & _MORE:
            break
    plain: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return plain
