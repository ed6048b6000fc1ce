"""Every option and every Kafka setting at its ends and between them, on a real broker: the rows are
visible once, or the setting is refused by the name that the user has given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import check_setting, find_setting
from eos_sink.kafka_config.java_settings import CONSUMER_ONLY, LIBRDKAFKA_ONLY, SETTINGS, Handling
from eos_sink.kafka_config.librdkafka_settings import PROPERTIES, get_range
from eos_sink.options import OPTIONS
from eos_sink_lab.testing import KafkaCluster
from integration.checker import assert_each_once, read_topic
from integration.in_process import Run
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

pytestmark = pytest.mark.long

WAYS = {"inlined": "65536", "prepared": "0"}
TOPIC, OTHER, WAY = "{topic}", "{topic}-other", "{way}"
"""Stand for two topics that exist, and for a key of `WAYS`."""
MOST = str(2**31 - 1)
# Of each option of the sink: without its values here, nothing of this file is collected.
OF_OPTIONS: dict[str, tuple[str, ...]] = {
    "topic": (TOPIC, "no/topic"),
    "txnAppId": ("app",),
    "txnVersion": ("0",),
    "eos.write.id": ("1", "x"),
    "eos.id": (WAY, f"query 1/ü {WAY}"),
    "eos.transactional.id.prefix": ("p", "any-", "ü"),
    "eos.timestamp.column": ("at", "missing"),
    "eos.destinations": (TOPIC, f"{TOPIC}:0-2", f"{OTHER}, {TOPIC}", OTHER),
    "eos.dead.letter.topic": (OTHER, TOPIC),
    # A run of this module has no checkpoint.
    "eos.source.group.id": ("readers", "eos-sink-readers"),
    "eos.inline.bytes": ("-1", "0", "1000", MOST),
    "eos.log.topic": ("another_log", "no/topic"),
    "eos.log.replication.factor": ("0", "1", "3", MOST),
    "eos.transaction.timeout.ms": ("999", "1000", "60000", "900000", MOST),
    "eos.step.timeout.ms": ("999", "1000", "120000", MOST),
    "eos.native": ("true", "false", "no"),
    "eos.oauth.token.provider": ("msk", "module:function"),
    "eos.metrics.log": ("true", "false", "no"),
}
UNTRIED = {
    "kafka.bootstrap.servers=x": "the broker has another address",
    "kafka.broker.address.family=v6": "the broker listens on IPv4",
    "kafka.plugin.library.paths=x": "it loads a library",
    "kafka.security.protocol=ssl": "the broker has no TLS; integration/test_logins.py has",
    "kafka.security.protocol=sasl_plaintext": "the broker knows no users; test_logins.py does",
    "kafka.security.protocol=sasl_ssl": "neither",
    "eos.transaction.timeout.ms=1000": "a batch may take longer",
    "eos.step.timeout.ms=1000": "a step may take longer",
}


def values_of(name: str) -> Iterator[str]:
    """Of a setting of Kafka's clients, in the unit of the name; any text where all texts do."""
    row = find_setting(name)
    unit, target = 1, name
    if row is not None and row.name == name:
        unit, target = row.unit, row.librdkafka or name
    takes = PROPERTIES.get(target, "")
    if bounds := get_range(target) if takes else None:
        low, high = bounds
        between = math.isqrt(max(low, 1) * high)
        yield from (str(each * unit) for each in (low - 1, low, between, high, high + 1))
    else:
        yield from takes.split(", ") if takes else ["x"]


NAMES = sorted({row.name for row in (*SETTINGS, *LIBRDKAFKA_ONLY)} | {*PROPERTIES} | CONSUMER_ONLY)
KAFKA = [(name, value) for name in NAMES for value in values_of(name)]
IGNORED = [case for case in KAFKA if check_setting(*case).handling is Handling.IGNORED]
CASES = {f"kafka.{n}={v}": (f"kafka.{n}", v) for n, v in KAFKA if (n, v) not in IGNORED}
CASES |= {
    f"{row.name}={value}": (row.name, value)
    for row in OPTIONS
    if not row.name.startswith("kafka.")
    for value in OF_OPTIONS[row.name]
}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaCluster]:
    with start_own_kafka() as cluster:
        yield cluster


def test_what_is_not_tried_is_a_case() -> None:
    assert UNTRIED.keys() <= CASES.keys()


@pytest.mark.parametrize("case", [case for case in CASES if case not in UNTRIED])
def test_rows_are_visible_once_or_the_setting_is_refused_by_its_name(
    broker: KafkaCluster, case: str
) -> None:
    name, value = CASES[case]
    try:
        rows_are_visible_once(broker, {name: value})
    except ConfigurationError as error:
        refusal = error
    else:
        return
    # librdkafka's own refusals have its names.
    assert name.removeprefix("kafka.") in refusal.message


def test_settings_that_are_ignored_change_nothing(broker: KafkaCluster) -> None:
    rows_are_visible_once(broker, {f"kafka.{name}": value for name, value in IGNORED})


def rows_are_visible_once(broker: KafkaCluster, given: Mapping[str, str]) -> None:
    """Two batches of two tasks, whose rows are inlined; and again with transactions."""
    topic = new_topic(broker, "swept")
    if OTHER in "".join(given.values()):
        broker.create_topic(OTHER.format(topic=topic), partitions=3)
    written: list[str] = []
    for way, size in WAYS.items():
        options = {n: v.replace(TOPIC, topic).replace(WAY, way) for n, v in given.items()}
        run = Run(broker, {"topic": topic, "eos.inline.bytes": size, **options})
        try:
            for batch in range(2):
                rows = [f"{way} {batch} {number}" for number in range(20)]
                run.write_tasks(*([{"value": part, "key": part}] for part in (rows[:9], rows[9:])))
                written += rows
        finally:
            run.close()
    assert_each_once(read_topic(broker.bootstrap_servers, topic), written)
