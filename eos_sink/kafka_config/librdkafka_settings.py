"""The settings that librdkafka knows, with the values that each takes.

From `rd_kafka_conf_properties_show` of librdkafka 2.16 (its CONFIGURATION.md), without callbacks
and without what only a consumer has. A test holds the table against the installed library.
"""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?\d+")
_FRACTION = re.compile(r"-?\d+(\.\d+)?")
_MAY_BE_FRACTION = {"linger.ms"}

# name: range of a number, or the values of an enumeration, or nothing for a text.
_TABLE = """
builtin.features:
client.id:
metadata.broker.list:
bootstrap.servers:
message.max.bytes: 1000..1000000000
message.copy.max.bytes: 0..1000000000
receive.message.max.bytes: 1000..2147483647
max.in.flight.requests.per.connection: 1..1000000
max.in.flight: 1..1000000
metadata.recovery.strategy: none, rebootstrap
metadata.recovery.rebootstrap.trigger.ms: 0..2147483647
topic.metadata.refresh.interval.ms: -1..3600000
metadata.max.age.ms: 1..86400000
topic.metadata.refresh.fast.interval.ms: 1..60000
topic.metadata.refresh.fast.cnt: 0..1000
topic.metadata.refresh.sparse: true, false
topic.metadata.propagation.max.ms: 0..3600000
topic.blacklist:
debug:
socket.timeout.ms: 10..300000
socket.blocking.max.ms: 1..60000
socket.send.buffer.bytes: 0..100000000
socket.receive.buffer.bytes: 0..100000000
socket.keepalive.enable: true, false
socket.nagle.disable: true, false
socket.max.fails: 0..1000000
broker.address.ttl: 0..86400000
broker.address.family: any, v4, v6
socket.connection.setup.timeout.ms: 1000..2147483647
connections.max.idle.ms: 0..2147483647
reconnect.backoff.jitter.ms: 0..3600000
reconnect.backoff.ms: 0..3600000
reconnect.backoff.max.ms: 0..3600000
statistics.interval.ms: 0..86400000
enabled_events: 0..2147483647
log_level: 0..7
log.queue: true, false
log.thread.name: true, false
enable.random.seed: true, false
log.connection.close: true, false
internal.termination.signal: 0..128
api.version.request: true, false
api.version.request.timeout.ms: 1..300000
api.version.fallback.ms: 0..604800000
broker.version.fallback:
allow.auto.create.topics: true, false
security.protocol: plaintext, ssl, sasl_plaintext, sasl_ssl
ssl.cipher.suites:
ssl.curves.list:
ssl.sigalgs.list:
ssl.key.location:
ssl.key.password:
ssl.key.pem:
ssl.certificate.location:
ssl.certificate.pem:
ssl.ca.location:
https.ca.location:
https.ca.pem:
ssl.ca.pem:
ssl.ca.certificate.stores:
ssl.crl.location:
ssl.keystore.location:
ssl.keystore.password:
ssl.providers:
ssl.engine.location:
ssl.engine.id:
enable.ssl.certificate.verification: true, false
ssl.endpoint.identification.algorithm: none, https
sasl.mechanisms:
sasl.mechanism:
sasl.kerberos.service.name:
sasl.kerberos.principal:
sasl.kerberos.kinit.cmd:
sasl.kerberos.keytab:
sasl.kerberos.min.time.before.relogin: 0..86400000
sasl.username:
sasl.password:
sasl.oauthbearer.config:
enable.sasl.oauthbearer.unsecure.jwt: true, false
sasl.oauthbearer.method: default, oidc
sasl.oauthbearer.client.id:
sasl.oauthbearer.client.credentials.client.id:
sasl.oauthbearer.client.credentials.client.secret:
sasl.oauthbearer.client.secret:
sasl.oauthbearer.scope:
sasl.oauthbearer.extensions:
sasl.oauthbearer.token.endpoint.url:
sasl.oauthbearer.sub.claim.name:
sasl.oauthbearer.grant.type: client_credentials, urn:ietf:params:oauth:grant-type:jwt-bearer
sasl.oauthbearer.assertion.algorithm: RS256, ES256
sasl.oauthbearer.assertion.private.key.file:
sasl.oauthbearer.assertion.private.key.passphrase:
sasl.oauthbearer.assertion.private.key.pem:
sasl.oauthbearer.assertion.file:
sasl.oauthbearer.assertion.claim.aud:
sasl.oauthbearer.assertion.claim.exp.seconds: 1..2147483647
sasl.oauthbearer.assertion.claim.iss:
sasl.oauthbearer.assertion.claim.jti.include: true, false
sasl.oauthbearer.assertion.claim.nbf.seconds: 0..2147483647
sasl.oauthbearer.assertion.claim.sub:
sasl.oauthbearer.assertion.jwt.template.file:
sasl.oauthbearer.metadata.authentication.type: none, azure_imds, aws_iam
plugin.library.paths:
client.rack:
transactional.id:
transaction.timeout.ms: 1000..2147483647
enable.idempotence: true, false
enable.gapless.guarantee: true, false
queue.buffering.max.messages: 0..2147483647
queue.buffering.max.kbytes: 1..2147483647
queue.buffering.max.ms: 0..900000
linger.ms: 0..900000
message.send.max.retries: 0..2147483647
retries: 0..2147483647
retry.backoff.ms: 1..300000
retry.backoff.max.ms: 1..300000
queue.buffering.backpressure.threshold: 1..1000000
compression.codec: none, gzip, snappy, lz4, zstd
compression.type: none, gzip, snappy, lz4, zstd
batch.num.messages: 1..1000000
batch.size: 1..2147483647
delivery.report.only.error: true, false
sticky.partitioning.linger.ms: 0..900000
client.dns.lookup: use_all_dns_ips, resolve_canonical_bootstrap_servers_only
enable.metrics.push: true, false
request.required.acks: -1..1000
acks: -1..1000
request.timeout.ms: 1..900000
message.timeout.ms: 0..2147483647
delivery.timeout.ms: 0..2147483647
queuing.strategy: fifo, lifo
produce.offset.report: true, false
partitioner:
compression.level: -1..12
"""

PROPERTIES: dict[str, str] = {
    name: values.strip()
    for name, _, values in (line.partition(":") for line in _TABLE.strip().splitlines())
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


def checked(name: str, value: str) -> str:
    """A value as librdkafka takes it for one of its settings.

    Raises:
        ValueError: it does not take it; says what it takes, and never the value.
    """
    takes = PROPERTIES[name]
    if not takes:
        return value
    text = value.strip()
    if bounds := number_range(name):
        form = _FRACTION if name in _MAY_BE_FRACTION else _WHOLE
        if not form.fullmatch(text) or not bounds[0] <= float(text) <= bounds[1]:
            raise ValueError(f"a number from {bounds[0]} to {bounds[1]} is needed")
        return text
    allowed = {choice.strip().lower(): choice.strip() for choice in takes.split(",")}
    if text.lower() not in allowed:
        raise ValueError(f"one of {takes} is needed")
    return allowed[text.lower()]


def number_range(name: str) -> tuple[int, int] | None:
    """The lowest and the highest value of a setting that is a number."""
    low, between, high = PROPERTIES[name].partition("..")
    return (int(low), int(high)) if between else None
