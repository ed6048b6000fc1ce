"""The Java producer's settings for records, requests and connections (Kafka 4's ProducerConfig)."""

from __future__ import annotations

from eos_sink.kafka_config.setting import Fate, Setting

_JVM = "It concerns the JVM's metrics; librdkafka's statistics take their place."
_SPREAD = (
    "Rows without a key are spread at random by librdkafka; rows with one go where Java puts them."
)

PRODUCER_SETTINGS = (
    Setting(
        "acks",
        Fate.OWNED,
        "A transaction needs every in-sync replica. Remove the option.",
        accepts=frozenset({"all", "-1"}),
    ),
    Setting("auto.include.jmx.reporter", Fate.IGNORED, _JVM),
    Setting(
        "batch.size",
        Fate.SAME,
        "Bytes. librdkafka's default is 1000000 instead of 16384; 0 (no batching) becomes 1.",
        instead={"0": "1"},
    ),
    Setting("bootstrap.servers", Fate.SAME, "Required."),
    Setting(
        "buffer.memory",
        Fate.TRANSLATED,
        "Bytes become kilobytes, for each task. The default is 64 MB or the largest record.",
        librdkafka="queue.buffering.max.kbytes",
        unit=1024,
        clamped=True,
    ),
    Setting("client.dns.lookup", Fate.SAME),
    Setting("client.id", Fate.SAME),
    Setting(
        "compression.gzip.level",
        Fate.TRANSLATED,
        "Used where compression.type is gzip.",
        librdkafka="compression.level",
        clamped=True,
    ),
    Setting(
        "compression.lz4.level",
        Fate.TRANSLATED,
        "Used where compression.type is lz4; at most 12.",
        librdkafka="compression.level",
        clamped=True,
    ),
    Setting("compression.type", Fate.SAME),
    Setting(
        "compression.zstd.level",
        Fate.TRANSLATED,
        "Used where compression.type is zstd; at most 12, and -1 at least.",
        librdkafka="compression.level",
        clamped=True,
    ),
    Setting(
        "config.providers",
        Fate.REFUSED,
        "Placeholders in values would be sent as they are. Write the values themselves.",
        accepts=frozenset({""}),
    ),
    Setting(
        "connections.max.idle.ms",
        Fate.SAME,
        "-1 (never) becomes 0, which is librdkafka's default; Java's is 540000.",
        instead={"-1": "0"},
        clamped=True,
    ),
    Setting(
        "delivery.timeout.ms",
        Fate.SAME,
        "At most eos.transaction.timeout.ms, which is also its default, and more than linger.ms.",
        clamped=True,
    ),
    Setting(
        "enable.idempotence",
        Fate.OWNED,
        "A transactional producer is idempotent. Remove the option.",
        accepts=frozenset({"true"}),
    ),
    Setting("enable.metrics.push", Fate.SAME),
    Setting(
        "interceptor.classes",
        Fate.REFUSED,
        "An interceptor may change records, and no Java class can run here. Make its change to "
        "the columns.",
        accepts=frozenset({""}),
    ),
    Setting(
        "key.serializer",
        Fate.REFUSED,
        "Keys are written as they are, string or binary. Cast the column instead and remove the "
        "option.",
    ),
    Setting("linger.ms", Fate.SAME, "The default is 5, as in Kafka 4; it was 0 in Kafka 3."),
    Setting(
        "max.block.ms",
        Fate.IGNORED,
        "eos.step.timeout.ms bounds the sink's steps, and a full buffer holds the task up.",
    ),
    Setting(
        "max.in.flight.requests.per.connection",
        Fate.SAME,
        "1 to 5, as for every idempotent producer.",
    ),
    Setting(
        "max.request.size",
        Fate.TRANSLATED,
        "librdkafka's default is 1000000 instead of 1048576.",
        librdkafka="message.max.bytes",
    ),
    Setting(
        "metadata.max.age.ms",
        Fate.TRANSLATED,
        "librdkafka's setting of this name is another thing.",
        librdkafka="topic.metadata.refresh.interval.ms",
        instead={"0": "1"},
        clamped=True,
    ),
    Setting("metadata.max.idle.ms", Fate.IGNORED, "librdkafka keeps what it has been asked for."),
    Setting("metadata.recovery.rebootstrap.trigger.ms", Fate.SAME, clamped=True),
    Setting("metadata.recovery.strategy", Fate.SAME),
    Setting("metric.reporters", Fate.IGNORED, _JVM, accepts=frozenset({""})),
    Setting("metrics.num.samples", Fate.IGNORED, _JVM),
    Setting("metrics.recording.level", Fate.IGNORED, _JVM),
    Setting("metrics.sample.window.ms", Fate.IGNORED, _JVM),
    Setting("partitioner.adaptive.partitioning.enable", Fate.IGNORED, _SPREAD),
    Setting("partitioner.availability.timeout.ms", Fate.IGNORED, _SPREAD),
    Setting(
        "partitioner.class",
        Fate.REFUSED,
        "Rows would go to other partitions than this class puts them in. Compute the column "
        "partition instead, or remove the option for Kafka's default (murmur2 of the key).",
        accepts=frozenset({"", "org.apache.kafka.clients.producer.internals.defaultpartitioner"}),
    ),
    Setting(
        "partitioner.ignore.keys",
        Fate.TRANSLATED,
        "true becomes random, false the default murmur2_random.",
        librdkafka="partitioner",
        instead={"true": "random", "false": "murmur2_random"},
        takes="true|false",
    ),
    Setting(
        "receive.buffer.bytes",
        Fate.TRANSLATED,
        "-1 (the system's) becomes 0, which is librdkafka's default.",
        librdkafka="socket.receive.buffer.bytes",
        instead={"-1": "0"},
        clamped=True,
    ),
    Setting("reconnect.backoff.max.ms", Fate.SAME, "librdkafka's default is 10000.", clamped=True),
    Setting(
        "reconnect.backoff.ms",
        Fate.SAME,
        "100 by default, 10 for the driver's own clients.",
        clamped=True,
    ),
    Setting(
        "request.timeout.ms",
        Fate.SAME,
        "For produce requests; socket.timeout.ms is for all others.",
        instead={"0": "1"},
        clamped=True,
    ),
    Setting("retries", Fate.SAME, "1 at least, as for every idempotent producer."),
    Setting("retry.backoff.max.ms", Fate.SAME, instead={"0": "1"}, clamped=True),
    Setting("retry.backoff.ms", Fate.SAME, instead={"0": "1"}, clamped=True),
    Setting(
        "send.buffer.bytes",
        Fate.TRANSLATED,
        "-1 (the system's) becomes 0, which is librdkafka's default.",
        librdkafka="socket.send.buffer.bytes",
        instead={"-1": "0"},
        clamped=True,
    ),
    Setting(
        "socket.connection.setup.timeout.max.ms",
        Fate.IGNORED,
        "librdkafka does not raise socket.connection.setup.timeout.ms.",
    ),
    Setting(
        "socket.connection.setup.timeout.ms",
        Fate.SAME,
        "1000 at least; librdkafka's default is 30000.",
        clamped=True,
    ),
    Setting(
        "transaction.timeout.ms",
        Fate.TRANSLATED,
        "The same as eos.transaction.timeout.ms.",
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        Fate.OWNED,
        "The sink finishes its transactions itself. Remove the option.",
        accepts=frozenset({"false"}),
    ),
    Setting(
        "transactional.id",
        Fate.OWNED,
        "The sink derives transactional ids from query, slot and partition. Remove the option; "
        "eos.transactional.id.prefix sets how they start.",
    ),
    Setting(
        "value.serializer",
        Fate.REFUSED,
        "Values are written as they are, string or binary. Cast the column instead and remove "
        "the option.",
    ),
)

# Settings of librdkafka alone that are not just handed on.
_CREDENTIALS = "Both Kafka clients know client credentials only. Remove the option."
_OWN = "The sink rests on its value. Remove the option."
LIBRDKAFKA_SETTINGS = (
    Setting("delivery.report.only.error", Fate.OWNED, _OWN, accepts=frozenset({"false"})),
    Setting("enabled_events", Fate.OWNED, _OWN),
    Setting("log.queue", Fate.OWNED, _OWN, accepts=frozenset({"false"})),
    Setting(
        "partitioner",
        Fate.SAME,
        "random, consistent, consistent_random, murmur2, murmur2_random, fnv1a or fnv1a_random.",
        takes="random|(consistent|murmur2|fnv1a)(_random)?",
    ),
    Setting("queue.buffering.backpressure.threshold", Fate.OWNED, _OWN, accepts=frozenset({"1"})),
    Setting("queuing.strategy", Fate.OWNED, _OWN, accepts=frozenset({"fifo"})),
    Setting("sasl.oauthbearer.assertion.jwt.template.file", Fate.REFUSED, _CREDENTIALS),
    Setting("sasl.oauthbearer.assertion.private.key.pem", Fate.REFUSED, _CREDENTIALS),
    Setting(
        "sasl.oauthbearer.grant.type",
        Fate.REFUSED,
        _CREDENTIALS,
        accepts=frozenset({"client_credentials"}),
    ),
    Setting(
        "sasl.oauthbearer.metadata.authentication.type",
        Fate.REFUSED,
        _CREDENTIALS,
        accepts=frozenset({"none"}),
    ),
    Setting("statistics.interval.ms", Fate.OWNED, _OWN),
)

CONSUMER_ONLY = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "consume.callback.max.messages",
        "coordinator.query.interval.ms",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "exclude.internal.topics",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "internal.leave.group.on.close",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "offset.store.method",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "value.deserializer",
    }
)
"""What only a consumer has (Java's ConsumerConfig and librdkafka's): Java's producer passes over
it, so that a source and a sink can share their options."""
