"""From the user's `kafka.*` settings to what each client library understands.

Users write Java client names, as for Spark's own sink. librdkafka shares most of them, refuses
unknown ones and cannot read Java key stores; kafka-python has its own. Sources: librdkafka's
CONFIGURATION.md, Kafka's ProducerConfig and kafka-python's KafkaAdminClient.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eos_sink.errors import ConfigurationError

# Java name -> librdkafka name, with the factor between their units.
_RENAMED = {
    "max.request.size": ("message.max.bytes", 1),
    "buffer.memory": ("queue.buffering.max.kbytes", 1024),
    "send.buffer.bytes": ("socket.send.buffer.bytes", 1),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", 1),
    "socket.connection.setup.timeout.ms": ("socket.connection.setup.timeout.ms", 1),
    "ssl.enabled.protocols": (None, 1),
    "sasl.mechanisms": ("sasl.mechanism", 1),
    "ssl.truststore.certificates": ("ssl.ca.pem", 1),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem", 1),
    "ssl.keystore.key": ("ssl.key.pem", 1),
}
_CONNECTION = re.compile(
    r"^(bootstrap\.servers|client\.|security\.|sasl\.|ssl\.|enable\.ssl\.|socket\.|broker\."
    r"|reconnect\.|connections\.|metadata\.|topic\.metadata\.|debug$|log_level$)"
)
_JAAS_LOGIN = re.compile(r"(PlainLoginModule|ScramLoginModule)\s+required\b(.*);\s*$", re.DOTALL)
_JAAS_VALUE = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")


def librdkafka_settings(kafka: Mapping[str, str]) -> dict[str, str]:
    """All settings under librdkafka's names.

    Raises:
        ConfigurationError: one has no equivalent; names the replacement.
    """
    translated: dict[str, str] = {}
    for name, value in kafka.items():
        if name == "sasl.jaas.config":
            translated.update(_from_jaas(value))
        elif name.startswith(("ssl.keystore.", "ssl.truststore.")) and name not in _RENAMED:
            translated.update(_from_store(name, value, kafka))
        else:
            new, unit = _RENAMED.get(name, (name, 1))
            if new:
                translated[new] = str(int(value) // unit) if unit != 1 else value
    return translated


def connection_settings(kafka: Mapping[str, str]) -> dict[str, str]:
    """The part of the settings that says how to reach and trust the brokers."""
    return {n: v for n, v in librdkafka_settings(kafka).items() if _CONNECTION.match(n)}


def kafka_python_settings(kafka: Mapping[str, str]) -> dict[str, object]:
    """Arguments of KafkaAdminClient that reach the same brokers with the same identity.

    Raises:
        ConfigurationError: a security setting cannot be honoured by kafka-python.
    """
    settings = connection_settings(kafka)
    arguments: dict[str, object] = {"bootstrap_servers": settings["bootstrap.servers"].split(",")}
    names = {
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
        "ssl.ca.location": "ssl_cafile",
        "ssl.certificate.location": "ssl_certfile",
        "ssl.key.location": "ssl_keyfile",
        "ssl.key.password": "ssl_password",
        "client.id": "client_id",
    }
    arguments.update({names[n]: v for n, v in settings.items() if n in names})
    if "security_protocol" in arguments:
        arguments["security_protocol"] = str(arguments["security_protocol"]).upper()
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.strip().lower() in ("", "none"):
        arguments["ssl_check_hostname"] = False
    mechanism = str(arguments.get("sasl_mechanism", "PLAIN")).upper()
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        raise ConfigurationError(
            f"SASL mechanism {mechanism} is not supported yet.",
            remedy="Use PLAIN or SCRAM over TLS, or mutual TLS. Nothing was written.",
        )
    inline = sorted(n for n in settings if n.endswith(".pem"))
    if inline:
        raise ConfigurationError(
            f"Settings {inline} give certificates inline, which is not supported yet.",
            remedy="Write them to files and set kafka.ssl.ca.location, "
            "kafka.ssl.certificate.location and kafka.ssl.key.location. Nothing was written.",
        )
    return arguments


def _from_jaas(value: str) -> dict[str, str]:
    login = _JAAS_LOGIN.search(value)
    found = {
        m[1]: m[2] or m[3] or m[4] or "" for m in _JAAS_VALUE.finditer(login[2] if login else "")
    }
    if not login or "username" not in found or "password" not in found:
        raise ConfigurationError(
            "Option kafka.sasl.jaas.config is not a PlainLoginModule or ScramLoginModule with "
            "username and password.",
            remedy="Set kafka.sasl.username and kafka.sasl.password instead. Nothing was written.",
        )
    return {
        "sasl.username": _unescaped(found["username"]),
        "sasl.password": _unescaped(found["password"]),
    }


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value)


def _from_store(name: str, value: str, kafka: Mapping[str, str]) -> dict[str, str]:
    store = name.split(".")[1]
    kind = kafka.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        raise ConfigurationError(
            f"Option kafka.{name} names a {kind} store, which only a JVM can read.",
            remedy="Convert it (keytool -importkeystore -deststoretype pkcs12, then openssl pkcs12 "
            "-nodes) and set kafka.ssl.ca.location, kafka.ssl.certificate.location and "
            "kafka.ssl.key.location to the PEM files. Nothing was written.",
        )
    if name == "ssl.truststore.location":
        return {"ssl.ca.location": value}
    if name == "ssl.keystore.location":
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    return {}
