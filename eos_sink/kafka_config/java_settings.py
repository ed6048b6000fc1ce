"""The table of settings: every setting of Java's producer (Kafka 3.9 to 4.3), and its handling.

From ProducerConfig, SslConfigs and SaslConfigs in Kafka's source. docs/options.md shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Handling(Enum):
    """The treatment of a setting."""

    SAME = "same"
    """Passed on under its name; at most the spelling of its value changes."""
    TRANSLATED = "translated"
    """Passed on under another name, in another unit, or read by the sink itself."""
    IGNORED = "ignored"
    """Accepted with a warning: it changes neither the data nor who may read it."""
    OWNED = "owned"
    """The sink sets it: accepted only with the value that the sink uses anyway."""
    REFUSED = "refused"
    """It would change the data or the security, and the sink cannot honour it."""


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Attributes:
        name: the Java name, without `kafka.` in front.
        handling: what the sink does with it.
        note: the reason, or what to use instead.
        librdkafka: the name there, if it differs. A translated setting without one is read by
            `translate`, together with others.
        accepts: pattern of the values, in lower case, that say what happens anyway: they cause
            neither an error nor a warning.
        instead: values that librdkafka spells differently.
        takes: pattern of the values that can be honoured; the note says why others cannot.
        unit: how many of Java's units make one of librdkafka's.
        clamped: a number outside librdkafka's range becomes the nearest one within, with a warning.
    """

    name: str
    handling: Handling
    note: str = ""
    librdkafka: str | None = None
    accepts: str | None = None
    instead: Mapping[str, str] = field(default_factory=dict)
    takes: str = ""
    unit: int = 1
    clamped: bool = False


# Names, rules and a note in each row; an indented line continues the row before.
_JAVA = r"""
acks | owned accepts=all|-1 | A transaction needs every in-sync replica. Remove the option.
auto.include.jmx.reporter metrics.num.samples metrics.recording.level metrics.sample.window.ms |
    ignored | It concerns the JVM's metrics; librdkafka's statistics take their place.
batch.size | same instead=0:1 | Bytes. librdkafka's default is 1000000 instead of 16384; 0 (no
    batching) becomes 1.
bootstrap.servers | same | Required.
buffer.memory | translated librdkafka=queue.buffering.max.kbytes unit=1024 clamped | Bytes become
    kilobytes, for each task. The default is 48 MB or the largest record.
client.dns.lookup client.id compression.type enable.metrics.push
    sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.scope
    sasl.oauthbearer.sub.claim.name ssl.key.password | same
compression.gzip.level compression.lz4.level compression.zstd.level | translated
    librdkafka=compression.level clamped | Used where compression.type is this codec; -1 at least,
    12 at most.
config.providers | refused accepts= | Placeholders in values would be sent as they are. Write the
    values themselves.
connections.max.idle.ms | same instead=-1:0 clamped | 60000 by default; Java's is 540000. -1
    (never) becomes 0. The driver's control connections are closed after 3 s at most.
delivery.timeout.ms | same clamped | At most eos.transaction.timeout.ms, which is also its
    default, and more than linger.ms.
enable.idempotence | owned accepts=true | A transactional producer is idempotent. Remove the
    option.
interceptor.classes | refused accepts= | An interceptor may change records, and no Java class can
    run here. Make its change to the columns.
key.serializer value.serializer | refused | Keys and values are written as they are, string or
    binary. Cast the column instead and remove the option.
linger.ms | same | Used with eos.native=false, with a default of 5. Otherwise a task sends a
    request when it is full, ten times a second, when its buffer is full, and at its end.
max.block.ms | ignored | eos.step.timeout.ms bounds the sink's steps, and a full buffer holds the
    task up.
max.in.flight.requests.per.connection | same takes=[1-5] | 1 to 5, as for every idempotent
    producer.
max.request.size | translated librdkafka=message.max.bytes | librdkafka's default is 1000000
    instead of 1048576.
metadata.max.age.ms | translated librdkafka=topic.metadata.refresh.interval.ms instead=0:1 clamped
    | At most 715827 is used. librdkafka's setting of this name means something else.
metadata.max.idle.ms | ignored | librdkafka keeps what it knows of the topics that it writes to.
metadata.recovery.rebootstrap.trigger.ms | same takes=0*[1-9]\d{2,} clamped | 100 at least: with
    0 or 1 librdkafka starts again before it has connected.
metadata.recovery.strategy | same | none by default. With rebootstrap, librdkafka tries again
    without a pause when no broker lets it in.
metric.reporters | ignored accepts= | It concerns the JVM's metrics; librdkafka's statistics take
    their place.
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms | ignored | Rows
    without a key stay with one partition for some milliseconds (10 by default), as with Java.
partitioner.class | refused
    accepts=|org\.apache\.kafka\.clients\.producer\.internals\.defaultpartitioner | Rows would go
    to other partitions than this class puts them in. Compute the column partition instead, or
    remove the option for Kafka's default (murmur2 of the key).
partitioner.ignore.keys | translated librdkafka=partitioner
    instead=true:random,false:murmur2_random takes=true|false | true becomes random, false the
    default murmur2_random.
receive.buffer.bytes | translated librdkafka=socket.receive.buffer.bytes instead=-1:0 clamped | -1
    (the system's) becomes 0, which is librdkafka's default.
reconnect.backoff.max.ms | same clamped | librdkafka's default is 10000.
reconnect.backoff.ms | same clamped | 100 by default, 10 for the driver's own clients.
request.timeout.ms | same instead=0:1 clamped | How long brokers wait for the replicas of a produce
    request. The client's limits are socket.timeout.ms for each request and delivery.timeout.ms for
    a record.
retries | same takes=0*[1-9]\d* | 1 to 2147483647, as for every idempotent producer.
retry.backoff.max.ms retry.backoff.ms | same instead=0:1 clamped
sasl.client.callback.handler.class | refused accepts= | No Java class can run here. The class of
    Amazon's library for IAM is translated; for others set eos.oauth.token.provider.
sasl.jaas.config | translated | PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule,
    Amazon's IAMLoginModule, and Krb5LoginModule with the ticket cache.
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor | ignored | The process's own Kerberos credentials are
    used, and the system's library renews them.
sasl.kerberos.service.name | same | kafka by default: the brokers' principals are
    kafka/HOST@REALM.
sasl.login.callback.handler.class | refused
    accepts=|(kafkashaded\.)?org\.apache\.kafka\.common\.security\.oauthbearer\.(secured\.)?oauthbearerlogincallbackhandler
    | No Java class can run here; set eos.oauth.token.provider. Kafka's own handler for
    OAUTHBEARER is accepted: the token comes from sasl.oauthbearer.token.endpoint.url. The classes
    of Amazon, Google and Microsoft's samples are translated.
sasl.login.class security.providers ssl.provider | refused accepts= | No Java class can run here.
    Remove the option.
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms | ignored | The clients have their
    own limits.
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms | ignored | librdkafka asks for a
    new token when 80 % of the old one's life is over.
sasl.mechanism | same takes=plain|scram-sha-256|scram-sha-512|oauthbearer|aws_msk_iam|gssapi |
    Set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM (used as OAUTHBEARER) or
    GSSAPI (Kerberos, if librdkafka is built with it). There is no default.
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file | refused | Client credentials are the only way to get
    a token that both Kafka clients support. Set sasl.oauthbearer.client.credentials.client.id and
    .client.secret.
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope.claim.name | ignored | Tokens are
    checked by the broker.
sasl.oauthbearer.header.urlencode | refused accepts=false | Client id and secret are sent without
    this encoding. Remove the option, or choose a secret that it does not change.
sasl.oauthbearer.jwt.retriever.class | refused
    accepts=|org\.apache\.kafka\.common\.security\.oauthbearer\.(default|clientcredentials)jwtretriever
    | Client credentials are the only way to get a token that both Kafka clients support. Set
    sasl.oauthbearer.client.credentials.client.id and .client.secret.
sasl.oauthbearer.token.endpoint.url | same takes=https?://[^/?#@]+([/?#].*)? | http or https, not
    file, without a user name or password, which librdkafka would log. Its certificate is
    checked against https.ca.location, else the system's.
security.protocol | same | In upper or lower case.
send.buffer.bytes | translated librdkafka=socket.send.buffer.bytes instead=-1:0 clamped | -1 (the
    system's) becomes 0, which is librdkafka's default.
socket.connection.setup.timeout.max.ms | ignored | librdkafka does not raise
    socket.connection.setup.timeout.ms.
socket.connection.setup.timeout.ms | same clamped | 1000 at least; librdkafka's default is 30000.
ssl.cipher.suites | same takes=[^_@]* | By OpenSSL's names for TLS 1.2, not Java's (openssl ciphers
    -stdname lists both), and without @SECLEVEL, which the two clients' OpenSSL may take
    differently.
ssl.enabled.protocols | refused accepts=|(.*,)?\s*tlsv1\.2\s*(,.*)? | TLS 1.2 and 1.3 are used,
    the newest that the broker offers. Set ssl.enabled.protocols there and remove the option here.
    Lists with TLSv1.2, such as Java's default, are accepted.
ssl.endpoint.identification.algorithm | same instead=:none | https, or none for Java's empty text.
ssl.engine.factory.class | refused
    accepts=|org\.apache\.kafka\.common\.security\.ssl\.defaultsslenginefactory | No Java class
    can run here. Remove the option.
ssl.keymanager.algorithm ssl.trustmanager.algorithm | ignored | OpenSSL has no such choice.
ssl.keystore.certificate.chain | translated librdkafka=ssl.certificate.pem | PEM text.
ssl.keystore.key | translated librdkafka=ssl.key.pem | PEM text.
ssl.keystore.location ssl.keystore.type ssl.truststore.location ssl.truststore.type | translated |
    JKS is refused, with the command that converts it; PEM and PKCS12 are read.
ssl.keystore.password ssl.truststore.password | translated | For a PKCS12 store.
ssl.protocol | ignored accepts=|tls|tlsv1\.2|tlsv1\.3 | TLS 1.2 and 1.3 are used, the newest that
    the broker offers. Set ssl.enabled.protocols there and remove the option here.
ssl.secure.random.implementation | ignored | OpenSSL uses the system's random numbers.
ssl.truststore.certificates | translated librdkafka=ssl.ca.pem | PEM text.
transaction.timeout.ms | translated | The same as eos.transaction.timeout.ms.
transaction.two.phase.commit.enable | owned accepts=false | The sink finishes its transactions
    itself. Remove the option.
transactional.id | owned | The sink makes the transactional ids. Remove the option;
    eos.transactional.id.prefix sets how they start.
"""
_LIBRDKAFKA = r"""
delivery.report.only.error log.queue | owned accepts=false | The sink rests on its value. Remove
    the option.
enabled_events statistics.interval.ms | owned | The sink rests on its value. Remove the option.
partitioner | same takes=random|(consistent|murmur2|fnv1a)(_random)? | random, consistent,
    consistent_random, murmur2, murmur2_random, fnv1a or fnv1a_random.
queue.buffering.backpressure.threshold | owned accepts=1 | The sink rests on its value. Remove the
    option.
queuing.strategy | owned accepts=fifo | The sink rests on its value. Remove the option.
sasl.kerberos.keytab sasl.kerberos.principal | refused | Only one of the two Kafka clients knows it.
    Set KRB5_CLIENT_KTNAME to the keytab in the environment of driver and executors.
sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.pem | refused
    | Both Kafka clients know client credentials only. Remove the option.
ssl.ca.certificate.stores ssl.curves.list ssl.engine.id ssl.engine.location ssl.providers
    ssl.sigalgs.list | refused | Only one of the two Kafka clients knows it. Remove the option.
sasl.oauthbearer.grant.type | refused accepts=client_credentials | Both Kafka clients know client
    credentials only. Remove the option.
sasl.oauthbearer.metadata.authentication.type | refused accepts=none | Both Kafka clients know
    client credentials only. Remove the option.
"""
_CONSUMER = """
allow.auto.create.topics auto.commit.enable auto.commit.interval.ms auto.offset.reset check.crcs
client.rack consume.callback.max.messages coordinator.query.interval.ms default.api.timeout.ms
enable.auto.commit enable.auto.offset.store enable.partition.eof exclude.internal.topics
fetch.error.backoff.ms fetch.max.bytes fetch.max.wait.ms fetch.message.max.bytes fetch.min.bytes
fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id group.protocol
group.protocol.type group.remote.assignor heartbeat.interval.ms internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
max.partition.fetch.bytes max.poll.interval.ms max.poll.records offset.store.method
offset.store.path offset.store.sync.interval.ms partition.assignment.strategy
queued.max.messages.kbytes queued.min.messages session.timeout.ms share.acknowledgement.mode
share.acquire.mode value.deserializer
"""


def _read_rows(table: str) -> Iterator[Setting]:
    for row in re.split(r"\n(?=\S)", table.strip()):
        names, rules, *note = " ".join(row.split()).split(" | ")
        handling, *words = rules.split()
        given = dict(word.partition("=")[::2] for word in words)
        instead = given.get("instead")
        for name in names.split():
            yield Setting(
                name,
                Handling(handling),
                "".join(note),
                librdkafka=given.get("librdkafka"),
                accepts=given.get("accepts"),
                instead=dict(pair.split(":") for pair in instead.split(",")) if instead else {},
                takes=given.get("takes", ""),
                unit=int(given.get("unit", 1)),
                clamped="clamped" in given,
            )


SETTINGS = tuple(sorted(_read_rows(_JAVA), key=lambda row: row.name))
LIBRDKAFKA_ONLY = tuple(_read_rows(_LIBRDKAFKA))
"""Settings of librdkafka alone that are not simply passed on."""
CONSUMER_ONLY = frozenset(_CONSUMER.split())
"""Settings that only a consumer has (Java's ConsumerConfig and librdkafka's). Java's producer
ignores them, so that a source and a sink can share their options."""
