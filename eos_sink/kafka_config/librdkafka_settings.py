"""The settings that librdkafka knows, and the values that each takes.

From `rd_kafka_conf_properties_show` of librdkafka 2.16 (its CONFIGURATION.md), without callbacks
and without settings of consumers. A test compares the table with the installed library.
"""

from __future__ import annotations

import re

_TEXTS = """
bootstrap.servers broker.version.fallback builtin.features client.id client.rack debug
https.ca.location https.ca.pem metadata.broker.list partitioner plugin.library.paths
sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.principal sasl.kerberos.service.name
sasl.mechanism sasl.mechanisms sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub
sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id
sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
sasl.password sasl.username ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
ssl.engine.id ssl.engine.location ssl.key.location ssl.key.password ssl.key.pem
ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list topic.blacklist
transactional.id
"""
_SWITCHES = """
allow.auto.create.topics api.version.request delivery.report.only.error enable.gapless.guarantee
enable.idempotence enable.metrics.push enable.random.seed enable.sasl.oauthbearer.unsecure.jwt
enable.ssl.certificate.verification log.connection.close log.queue log.thread.name
produce.offset.report sasl.oauthbearer.assertion.claim.jti.include socket.keepalive.enable
socket.nagle.disable topic.metadata.refresh.sparse
"""
_NUMBERS = """
acks=-1..1000 api.version.fallback.ms=0..604800000 api.version.request.timeout.ms=1..300000
batch.num.messages=1..1000000 batch.size=1..2147483647 broker.address.ttl=0..86400000
compression.level=-1..12 connections.max.idle.ms=0..2147483647 delivery.timeout.ms=0..2147483647
enabled_events=0..2147483647 internal.termination.signal=0..128 linger.ms=0..900000 log_level=0..7
max.in.flight.requests.per.connection=1..1000000 max.in.flight=1..1000000
message.copy.max.bytes=0..1000000000 message.max.bytes=1000..1000000000
message.send.max.retries=0..2147483647 message.timeout.ms=0..2147483647
metadata.max.age.ms=1..86400000 metadata.recovery.rebootstrap.trigger.ms=0..2147483647
queue.buffering.backpressure.threshold=1..1000000 queue.buffering.max.kbytes=1..2147483647
queue.buffering.max.messages=0..2147483647 queue.buffering.max.ms=0..900000
receive.message.max.bytes=1000..2147483647 reconnect.backoff.jitter.ms=0..3600000
reconnect.backoff.max.ms=0..3600000 reconnect.backoff.ms=0..3600000 request.required.acks=-1..1000
request.timeout.ms=1..900000 retries=0..2147483647 retry.backoff.max.ms=1..300000
retry.backoff.ms=1..300000 sasl.kerberos.min.time.before.relogin=0..86400000
sasl.oauthbearer.assertion.claim.exp.seconds=1..2147483647
sasl.oauthbearer.assertion.claim.nbf.seconds=0..2147483647 socket.blocking.max.ms=1..60000
socket.connection.setup.timeout.ms=1000..2147483647 socket.max.fails=0..1000000
socket.receive.buffer.bytes=0..100000000 socket.send.buffer.bytes=0..100000000
socket.timeout.ms=10..300000 statistics.interval.ms=0..86400000
sticky.partitioning.linger.ms=0..900000 topic.metadata.propagation.max.ms=0..3600000
topic.metadata.refresh.fast.cnt=0..1000 topic.metadata.refresh.fast.interval.ms=1..60000
topic.metadata.refresh.interval.ms=-1..3600000 transaction.timeout.ms=1000..2147483647
"""
_CHOICES = """
broker.address.family: any, v4, v6
client.dns.lookup: use_all_dns_ips, resolve_canonical_bootstrap_servers_only
compression.codec: none, gzip, snappy, lz4, zstd
compression.type: none, gzip, snappy, lz4, zstd
metadata.recovery.strategy: none, rebootstrap
queuing.strategy: fifo, lifo
sasl.oauthbearer.assertion.algorithm: RS256, ES256
sasl.oauthbearer.grant.type: client_credentials, urn:ietf:params:oauth:grant-type:jwt-bearer
sasl.oauthbearer.metadata.authentication.type: none, azure_imds, aws_iam
sasl.oauthbearer.method: default, oidc
security.protocol: plaintext, ssl, sasl_plaintext, sasl_ssl
ssl.endpoint.identification.algorithm: none, https
"""

PROPERTIES: dict[str, str] = {
    **dict.fromkeys(_TEXTS.split(), ""),
    **dict.fromkeys(_SWITCHES.split(), "true, false"),
    **dict(number.split("=") for number in _NUMBERS.split()),
    **dict(line.split(": ") for line in _CHOICES.strip().splitlines()),
}
"""Name -> "low..high", "one, other", or "" for any text."""

ALIASES = {
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
"""librdkafka's second names for settings that have a Java name too."""


def check_value(name: str, value: str) -> str:
    """Spell a value as librdkafka takes it for this setting.

    Raises:
        ValueError: librdkafka does not take it; says what it takes, and never the value.
    """
    takes = PROPERTIES[name]
    if not takes:
        return value
    text = value.strip()
    if bounds := get_range(name):
        number = r"-?\d+(\.\d+)?" if name == "linger.ms" else r"-?\d+"
        if not re.fullmatch(number, text) or not bounds[0] <= float(text) <= bounds[1]:
            raise ValueError(f"a number from {bounds[0]} to {bounds[1]} is needed")
        return text
    for choice in takes.split(", "):
        if text.lower() == choice.lower():
            return choice
    raise ValueError(f"one of {takes} is needed")


# Three times this many microseconds still fit into 32 bits. Above, librdkafka 2.16 takes the topics
# that it knows for expired, with some values (rd_kafka_metadata_cache_topic_update), and a first
# subscription ends with "Subscribed topic not available".
_LOWERED = {"topic.metadata.refresh.interval.ms": "-1..715827"}


def get_range(name: str) -> tuple[int, int] | None:
    """The lowest and the highest value; None: the setting is not a number."""
    low, dots, high = _LOWERED.get(name, PROPERTIES[name]).partition("..")
    return (int(low), int(high)) if dots else None
