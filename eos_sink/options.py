"""The options of `format("kafka-eos")`, parsed once into frozen objects.

Spark passes their names in lower case. docs/options.md shows the table `OPTIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, ParamSpec, TypeVar, cast

from eos_sink.errors import ConfigurationError
from eos_sink.identity import (
    DEFAULT_LOG,
    DEFAULT_PREFIX,
    SESSION_PREFIX,
    Origin,
    QueryNames,
    batch_identity,
    normalised_location,
    query_identity,
    query_origin,
)
from eos_sink.kafka_config.check_setting import check_setting
from eos_sink.kafka_config.cluster_config import ClusterConfig
from eos_sink.kafka_config.destinations import Destinations, is_topic_name, parse_destinations
from eos_sink.kafka_config.java_settings import Handling
from eos_sink.kafka_config.token_source import PROVIDER
from eos_sink.kafka_config.translate import translate
from eos_sink.sink_options import (
    SOURCE_GROUP,
    BatchOptions,
    SinkOptions,
    SourceOptions,
    Version,
)

P = ParamSpec("P")
T = TypeVar("T")


class Option(NamedTuple):
    """A row of the table in docs/options.md, which says what it means. `default` None: none."""

    name: str
    default: str | None = None


OPTIONS = (
    Option("kafka.bootstrap.servers"),
    Option("topic"),
    Option("eos.id"),
    Option(SOURCE_GROUP),
    Option("eos.dead.letter.topic"),
    # The others stand under "Advanced", with the reason to set them.
    Option("kafka.*"),
    Option("eos.destinations"),
    Option("eos.timestamp.column"),
    Option("eos.inline.bytes", "65536"),
    Option("eos.transaction.timeout.ms", "900000"),
    Option("eos.step.timeout.ms", "120000"),
    Option(PROVIDER),
    Option("eos.metrics.log", "false"),
    Option("eos.native", "true"),
    Option("eos.log.topic", DEFAULT_LOG),
    Option("eos.log.replication.factor", "3"),
    Option("eos.transactional.id.prefix", DEFAULT_PREFIX),
    Option("txnAppId"),
    Option("txnVersion"),
    Option("eos.write.id"),
)

_BY_NAME = {option.name.lower(): option for option in OPTIONS}
_ASYNC_PROGRESS = "asyncprogresstrackingenabled"
_ASYNC_INTERVAL = "asyncprogresstrackingcheckpointintervalms"
_SPARK_OPTIONS = frozenset(
    {
        _ASYNC_PROGRESS,
        _ASYNC_INTERVAL,
        "_asyncprogresstrackingoverridesinksupportcheck",
        "checkpointlocation",
        "includeheaders",
        "path",
        "queryname",
    }
)
# Options of Spark's Kafka source: a query that reads and writes with one set of options may
# have them; Spark's own sink ignores them too.
_SOURCE_NAMES = """
assign endingoffsets endingoffsetsbytimestamp endingtimestamp failondataloss fetchoffset.numretries
fetchoffset.retryintervalms groupidprefix kafkaconsumer.polltimeoutms maxoffsetspertrigger
maxrecordsperpartition maxtriggerdelay minoffsetspertrigger minpartitions startingoffsets
startingoffsetsbytimestamp startingoffsetsbytimestampstrategy startingtimestamp subscribe
subscribepattern
"""
_SOURCE_OPTIONS = frozenset(_SOURCE_NAMES.split())
_STARTS_BY_TIME = ("startingoffsetsbytimestamp", "startingtimestamp")
_JAVA_TIMEOUT = "kafka.transaction.timeout.ms"
_MIN_TIMEOUT_MS = 1_000
# librdkafka's default of `message.max.bytes`.
_CLIENTS_RECORD_BYTES = 1_000_000
_PRINTABLE = re.compile(r"[ -~]+")
# Kafka's largest int, as for its own settings.
_MOST_NUMBER = 2**31 - 1
_APP, _VERSION, _WRITE = "txnappid", "txnversion", "eos.write.id"
_MOST = 2**63 - 1
_METRICS = "eos.metrics.log"
_NOTHING = " Nothing was written."


class Kind(Enum):
    """To whom an option belongs, by its name alone."""

    OWN = "the sink's"
    SPARK = "Spark's"
    SOURCE = "of a Kafka source"
    KAFKA = "the Kafka client's"
    UNKNOWN = "unknown"


def kind_of(name: str) -> Kind:
    """Whose option it is. The name is case-insensitive."""
    name = name.lower()
    if name in _BY_NAME and name != "kafka.*":
        return Kind.OWN
    if name in _SPARK_OPTIONS:
        return Kind.SPARK
    if name in _SOURCE_OPTIONS:
        return Kind.SOURCE
    return Kind.KAFKA if name.startswith("kafka.") else Kind.UNKNOWN


def parse_common_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse what streams and batch writes have in common, which is all but the query's name.

    Raises:
        ConfigurationError: as in `parse_options`.
    """
    return _sink_options(_lowered(given), "", Origin())


def parse_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options of a stream, and check what can be checked without a broker.

    Args:
        given: the options as Spark passes them, names in any case.

    Raises:
        ConfigurationError: an option is missing, unknown, refused or has an invalid value.
    """
    options = _lowered(given)
    if options.keys() & {_APP, _VERSION, _WRITE}:
        raise _wrong(
            "Options txnAppId, txnVersion and eos.write.id are for df.write; Spark numbers a "
            "stream's batches.",
            "Remove them.",
        )
    named = _given(options, "eos.id"), options.get("checkpointlocation"), options.get("queryname")
    return _sink_options(options, query_identity(*named), query_origin(*named))


def parse_batch_options(given: Mapping[str, str]) -> BatchOptions:
    """Parse the options of a batch write, as `parse_options` does."""
    options = _lowered(given)
    version = _version(options)
    explicit, app = _given(options, "eos.id"), (version.app if version else None) or None
    topic = _given(options, "topic")
    query, origin = batch_identity(explicit, app, topic), Origin(explicit, batch=True, topic=topic)
    return BatchOptions(_sink_options(options, query, origin), version)


def check_names(values: Mapping[str, str]) -> None:
    """Check the names of settings that are defaults of options; values are checked with a query's.

    Raises:
        ConfigurationError: names the setting.
    """
    for name in values:
        try:
            _check_name(name)
        except ConfigurationError as error:
            what = f"{SESSION_PREFIX}{name}: {error.message}"
            raise ConfigurationError(what, remedy=error.remedy) from error


def _lowered(given: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in given.items()}


def _given(options: Mapping[str, str], name: str) -> str | None:
    return options.get(name, "").strip() or None


def _version(options: Mapping[str, str]) -> Version | None:
    app, number, own = (_given(options, name) for name in (_APP, _VERSION, _WRITE))
    if app is None and number is None:
        return None if own is None else Version("", _whole(own, "eos.write.id"))
    if own is not None:
        raise _wrong("Options eos.write.id and txnVersion both number the write.", "Set only one.")
    if app is None or number is None:
        here, missing = ("txnAppId", "txnVersion") if app else ("txnVersion", "txnAppId")
        raise _wrong(f"Option {here} is set without {missing}.", f"Set {missing} too, or neither.")
    return Version(app, _whole(number, "txnVersion"))


def _whole(number: str, name: str) -> int:
    if not re.fullmatch("[0-9]+", number) or int(number) > _MOST:
        raise _wrong(
            f"Option {name} is {number!r}, not a whole number from 0 to {_MOST}.", "Correct it."
        )
    return int(number)


class _Attempts:
    """Parses one option after the other, so that all that are wrong are told at once."""

    def __init__(self) -> None:
        self._errors: list[ConfigurationError] = []

    def __call__(self, parse: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what was parsed; after an error only `check` may be called, which raises it."""
        try:
            return parse(*arguments, **named)
        except ConfigurationError as error:
            # Two options may be read from the text of a third.
            if str(error) not in map(str, self._errors):
                self._errors.append(error)
            return cast("T", None)

    def check(self) -> None:
        """Raises ConfigurationError if an attempt has failed."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            told = (f"{e.message} {e.remedy.removesuffix(_NOTHING)}".strip() for e in self._errors)
            error = _wrong(" ".join(told), f"Correct these {len(self._errors)}.")
            error.errors = tuple(self._errors)
            raise error


def _sink_options(options: Mapping[str, str], query: str, origin: Origin) -> SinkOptions:
    attempt = _Attempts()
    for name in options:
        attempt(_check_name, name)
    attempt(_check_brokers, options)
    transaction_timeout_ms = attempt(_transaction_timeout, options)
    client = attempt(translate, _kafka_settings(options), transaction_timeout_ms)
    prefix, topic = attempt(_prefix, options), attempt(_topic, options, "topic")
    log_topic = attempt(_log_topic, options)
    log_replication = attempt(_number, options, "eos.log.replication.factor", 1)
    native, metrics_log = attempt(_flag, options, "eos.native"), attempt(_flag, options, _METRICS)
    step_timeout_ms = attempt(_number, options, "eos.step.timeout.ms", _MIN_TIMEOUT_MS)
    most_inline = attempt(_number, options, "eos.inline.bytes", 0)
    destinations = attempt(_destinations, options)
    dead_letter_topic = attempt(_dead_letter_topic, options)
    source = attempt(_source, options)
    late_checkpoint = attempt(_late_checkpoint, options)
    attempt.check()
    # Within the client's limit for a record, which then need not be checked.
    largest = int(client.settings.get("message.max.bytes", _CLIENTS_RECORD_BYTES))
    inline_bytes = min(most_inline, largest)
    return SinkOptions(
        names=QueryNames(prefix, query),
        topic=topic,
        cluster=ClusterConfig(
            client,
            log_topic=log_topic,
            prefix=prefix,
            log_replication=log_replication,
            native=native,
            # Not larger than those of tasks.
            driver_batch_bytes=max(1, inline_bytes),
        ),
        timestamp_column=_given(options, "eos.timestamp.column"),
        transaction_timeout_ms=transaction_timeout_ms,
        step_timeout=step_timeout_ms / 1000,
        origin=origin,
        destinations=destinations,
        dead_letter_topic=dead_letter_topic,
        metrics_log=metrics_log,
        inline_bytes=inline_bytes,
        source=source,
        late_checkpoint=late_checkpoint,
    )


def _check_brokers(options: Mapping[str, str]) -> None:
    if not options.get("kafka.bootstrap.servers", "").strip():
        raise _wrong(
            "Option kafka.bootstrap.servers is missing.",
            "Set it to 'host:port[,...]'. Where it is set for the session, as "
            f"{SESSION_PREFIX}kafka.bootstrap.servers, call eos_sink.register(spark)."
            if options
            else "In SQL, insert into a view (CREATE TEMPORARY VIEW ... USING `kafka-eos` OPTIONS "
            "(...)): Spark passes a data source in Python none of the options of a table.",
        )


def _late_checkpoint(options: Mapping[str, str]) -> str | None:
    """Spark's AsyncProgressTrackingMicroBatchExecution: only with an interval of 0 does it write
    the offsets of every batch."""
    if options.get(_ASYNC_PROGRESS, "false").strip().lower() == "false":
        return None
    interval = options.get(_ASYNC_INTERVAL, "1000").strip()
    if interval != "0":
        raise _wrong(
            "Option asyncProgressTrackingEnabled is set, and "
            f"asyncProgressTrackingCheckpointIntervalMs is {interval!r}: Spark then does not write "
            "the offsets of each batch, and a batch without them cannot be repeated as it was.",
            "Set asyncProgressTrackingCheckpointIntervalMs to 0, and with it "
            "_asyncProgressTrackingOverrideSinkSupportCheck to true: Spark permits sinks by name.",
        )
    checkpoint = _given(options, "checkpointlocation")
    if checkpoint is None:
        raise _wrong(
            "Option asyncProgressTrackingEnabled needs the option checkpointLocation: a batch is "
            "decided when Spark has written its offsets there. A checkpoint directory of the "
            "session cannot be seen here.",
            "Give checkpointLocation to the query.",
        )
    return normalised_location(checkpoint)


def _source(options: Mapping[str, str]) -> SourceOptions | None:
    group = _given(options, SOURCE_GROUP)
    if group is None:
        return None
    if not _PRINTABLE.fullmatch(group) or group.startswith(_prefix(options)):
        raise _wrong(
            f"Option {SOURCE_GROUP} is {group!r}; a group's name has printable ASCII characters "
            "only, and this one must not begin with eos.transactional.id.prefix, as the sink's own "
            "groups do.",
            "Name another group.",
        )
    checkpoint = _given(options, "checkpointlocation")
    if checkpoint is None:
        raise _wrong(
            f"Option {SOURCE_GROUP} needs the option checkpointLocation, where Spark keeps the "
            "source's offsets. A checkpoint directory of the session cannot be seen here, nor can "
            "the query's within foreachBatch.",
            "Give checkpointLocation to the query, and within foreachBatch to the writer as well.",
        )
    if _VERSION in options:
        raise _wrong(
            f"Option {SOURCE_GROUP} is for batches that Spark numbers, and txnVersion numbers this "
            "one.",
            "Remove one of the two.",
        )
    by_time = next((name for name in _STARTS_BY_TIME if name in options), None)
    if by_time is not None:
        raise _wrong(
            f"Options {SOURCE_GROUP} and {by_time} contradict each other: Spark ignores "
            "startingOffsets then, which begins a new checkpoint where the query stands.",
            f"Remove {by_time}.",
        )
    # Few queries have such a group.
    from eos_sink.kafka_config.source_topics import parse_source_topics

    topics = parse_source_topics(options)
    return SourceOptions(group, normalised_location(checkpoint), topics)


def _destinations(options: Mapping[str, str]) -> Destinations | None:
    declared = parse_destinations(options.get("eos.destinations", ""))
    topic = options.get("topic", "").strip()
    if declared is not None and topic and topic not in declared.ranges:
        raise ConfigurationError(
            f"UnknownTopicOrPartition: option topic is {topic!r}, which option eos.destinations "
            "does not declare.",
            remedy="Correct one of the two. Nothing was written.",
            data={"kafka_error": "UnknownTopicOrPartition", "topic": topic},
        )
    return declared


def _prefix(options: Mapping[str, str]) -> str:
    prefix = _text(options, "eos.transactional.id.prefix")
    if not _PRINTABLE.fullmatch(prefix):
        raise _wrong(
            f"Option eos.transactional.id.prefix is {prefix!r}; librdkafka takes only printable "
            "ASCII characters in the name of a group.",
            "Correct it.",
        )
    return prefix


def _topic(options: Mapping[str, str], name: str) -> str | None:
    topic = _given(options, name)
    if topic is not None and not is_topic_name(topic):
        raise _wrong(f"Option {name} is {topic!r}, which cannot be a topic's name.", "Correct it.")
    return topic


def _log_topic(options: Mapping[str, str]) -> str:
    """Rows in the decision log would be read as decisions."""
    log = _topic(options, "eos.log.topic") or _text(options, "eos.log.topic")
    declared = parse_destinations(options.get("eos.destinations", ""))
    if _given(options, "topic") == log:
        own = "topic"
    elif declared is not None and log in declared.ranges:
        own = "eos.destinations"
    else:
        return log
    raise ConfigurationError(
        f"Option {own} names {log!r}, the decision log, where the sink keeps its decisions.",
        remedy="Name another topic for the rows. Nothing was written.",
        data={"topic": log},
    )


def _dead_letter_topic(options: Mapping[str, str]) -> str | None:
    own = "eos.dead.letter.topic"
    name = _topic(options, own)
    for other in ("topic", "eos.log.topic"):
        if name and name in (_given(options, other), _BY_NAME[other].default):
            raise _wrong(f"Option {own} is {name!r}, as is option {other}.", "Name another topic.")
    return name


def _kafka_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The clients' settings, without those that only repeat what the sink does anyway."""
    given = {
        name.removeprefix("kafka."): value
        for name, value in options.items()
        if name.startswith("kafka.") and name != _JAVA_TIMEOUT
    }
    kept = {
        name: value
        for name, value in given.items()
        if check_setting(name, value).handling != Handling.OWNED
    }
    # The clients of operator commands have it from a properties file, beside their settings.
    provider = _given(options, PROVIDER)
    return {**kept, PROVIDER: provider} if provider else kept


def _check_name(name: str) -> None:
    if kind_of(name) is Kind.UNKNOWN:
        import difflib

        names = [option.name for option in OPTIONS if option.name != "kafka.*"]
        close = difflib.get_close_matches(name, [*names, *_SPARK_OPTIONS], n=1, cutoff=0.7)
        known = f"Known are {', '.join(names)} and kafka.*."
        raise _wrong(f"Unknown option {name!r}.", f"Did you mean {close[0]!r}?" if close else known)


def _transaction_timeout(options: Mapping[str, str]) -> int:
    own = "eos.transaction.timeout.ms"
    if _JAVA_TIMEOUT not in options:
        return _number(options, own, _MIN_TIMEOUT_MS)
    if options.get(own, options[_JAVA_TIMEOUT]) != options[_JAVA_TIMEOUT]:
        raise _wrong(f"Options {own} and {_JAVA_TIMEOUT} differ.", f"Set only {own}.")
    return _number(options, _JAVA_TIMEOUT, _MIN_TIMEOUT_MS)


def _text(options: Mapping[str, str], name: str) -> str:
    value = (options[name] if name in options else _BY_NAME[name].default or "").strip()
    if not value:
        raise _wrong(f"Option {name} is empty.", "Give it a value or leave it out.")
    return value


def _number(options: Mapping[str, str], name: str, least: int) -> int:
    text = _text(options, name)
    try:
        number = int(text)
    except ValueError:
        raise _wrong(f"Option {name} is {text!r}, not a whole number.", "Correct it.") from None
    if number < least:
        raise _wrong(f"Option {name} is {number}, less than {least}.", "Raise it.")
    if number > _MOST_NUMBER:
        raise _wrong(f"Option {name} is {number}, more than {_MOST_NUMBER}.", "Lower it.")
    return number


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = _text(options, name).lower()
    if text not in ("true", "false"):
        raise _wrong(f"Option {name} is {text!r}, neither true nor false.", "Correct it.")
    return text == "true"


def _wrong(what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(what, remedy=f"{remedy}{_NOTHING}")
