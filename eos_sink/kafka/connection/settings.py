"""From the translated settings to the arguments of each client library.

`eos_sink.kafka_config` translates what the user wrote. This module reads stores, and makes
kafka-python's arguments. Sources: librdkafka's CONFIGURATION.md and kafka-python's
KafkaAdminClient.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.cluster_config import Translation

_CONNECTION = re.compile(
    r"(bootstrap\.servers|client\.|security\.|sasl\.|ssl\.|https\.|enable\.s(sl|asl)\.|socket\."
    r"|broker\.|reconnect\.|connections\.|metadata\.|topic\.metadata\.|debug$|log_level$|oauth_cb$)"
)
# Load balancers and firewalls drop an idle connection without a word: what is sent over it then has
# no answer, for 10 s with kafka-python and 60 with librdkafka. A new one takes milliseconds.
# librdkafka's producers renew what they close, so they close it later.
_CONTROL_IDLE_MS = 3_000
_DEFAULTS = {
    "connections.max.idle.ms": "60000",
    "socket.keepalive.enable": "true",
    # When no broker is left, librdkafka 2.16 begins again with its bootstrap servers, and without
    # the pause that it has reached: a client whose logins are refused tried 117 in a second.
    "metadata.recovery.strategy": "none",
}
# A control connection of the driver that is missing holds a batch up.
_CONTROL_BACKOFF_MS = 1_000


class Hidden(str):
    """A secret whose repr does not show it: kafka-python logs its arguments at level DEBUG."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def librdkafka_settings(translation: Translation) -> dict[str, Any]:
    """All settings under librdkafka's names. Reads the stores, and gets the first token of a
    provider, which may block for some seconds. `oauth_cb`, as confluent-kafka calls it, is a
    `TokenCache`; all others are texts.

    Args:
        translation: of the user's settings.

    Raises:
        ConfigurationError: a store cannot be read; shows nothing of its content.
        ClusterError: the provider makes no token.
    """
    settings: dict[str, Any] = {**_DEFAULTS, **translation.settings}
    for store in translation.stores:
        from eos_sink.kafka.connection.stores import read_store

        settings.update(read_store(store))
    if translation.tokens is not None:
        from eos_sink.kafka.connection.token_providers import share_tokens

        settings["oauth_cb"] = tokens = share_tokens(translation.tokens)
        # librdkafka would wait for a token without saying why there is none.
        tokens.get()
    return settings


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The part of librdkafka's settings that says how to reach and trust the brokers."""
    return {name: value for name, value in settings.items() if _CONNECTION.match(name)}


def kafka_python_settings(connection: Mapping[str, Any]) -> dict[str, object]:
    """Arguments of KafkaAdminClient that reach the same brokers with the same identity.

    Args:
        connection: from `connection_settings`.

    Raises:
        ConfigurationError: a certificate or key cannot be loaded, or Kerberos' library is missing.
    """
    servers = [server.strip() for server in connection["bootstrap.servers"].split(",")]
    protocol = connection.get("security.protocol", "plaintext")
    arguments: dict[str, object] = {
        "bootstrap_servers": [server for server in servers if server],
        "security_protocol": protocol.upper(),
    }
    # 0 is librdkafka's word for never.
    idle_ms = int(connection.get("connections.max.idle.ms", 0)) or _CONTROL_IDLE_MS
    arguments["connections_max_idle_ms"] = min(idle_ms, _CONTROL_IDLE_MS)
    arguments["reconnect_backoff_max_ms"] = _CONTROL_BACKOFF_MS
    if "client.id" in connection:
        arguments["client_id"] = connection["client.id"]
    if protocol.endswith("ssl"):
        from eos_sink.kafka.connection.tls import make_broker_context

        arguments["ssl_context"] = make_broker_context(connection)
    if not protocol.startswith("sasl"):
        return arguments
    arguments["sasl_mechanism"] = connection["sasl.mechanism"]
    if connection["sasl.mechanism"] == "OAUTHBEARER":
        from eos_sink.kafka.connection.oauth import Tokens

        arguments["sasl_oauth_token_provider"] = Tokens(connection)
    elif connection["sasl.mechanism"] == "GSSAPI":
        _check_gssapi()
        arguments["sasl_kerberos_service_name"] = connection["sasl.kerberos.service.name"]
    else:
        arguments["sasl_plain_username"] = connection["sasl.username"]
        arguments["sasl_plain_password"] = Hidden(connection["sasl.password"])
    return arguments


def _check_gssapi() -> None:
    """kafka-python itself would try again until the time is up."""
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"kafka.sasl.mechanism is GSSAPI, and the driver's Python has no gssapi: {error}.",
            remedy="pip install 'eos-sink[kerberos]', which needs the system's Kerberos library "
            "(Debian: libkrb5-dev; Red Hat: krb5-devel). Nothing was written.",
        ) from error
