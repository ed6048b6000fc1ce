"""What the table hands on, the installed librdkafka takes, in every combination that it refuses
when it is given the user's values as they are."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.confluent_client import ConfluentClient
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.producer_events import ProducerEvents
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.check_setting import check_setting
from eos_sink.kafka_config.java_settings import SETTINGS, Handling
from eos_sink.kafka_config.librdkafka_settings import PROPERTIES, get_range
from eos_sink.options import parse_options

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"}
TRANSACTION_MS = 60_000


def accepted(given: dict[str, str]) -> None:
    """A task's producer and the decision log's can be made; neither connects."""
    options = parse_options({**BROKER, **{f"kafka.{n}": v for n, v in given.items()}})
    settings = librdkafka_settings(options.cluster.client)
    for each in (settings, connection_settings(settings)):
        ConfluentProducer(each, "id", TRANSACTION_MS, Permissions("", "log")).close()


def test_kerberos_without_its_library_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    login = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "GSSAPI"}
    settings = librdkafka_settings(parse_options({**BROKER, **login}).cluster.client)
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match="gssapi") as refused:
        kafka_python_settings(settings)
    assert "eos-sink[kerberos]" in refused.value.remedy


@pytest.mark.parametrize(
    "given",
    [
        {"delivery.timeout.ms": "2147483647"},
        {"socket.timeout.ms": "300000"},
        {"reconnect.backoff.ms": "20000"},
        {"batch.size": "0", "linger.ms": "0", "buffer.memory": "33554432"},
        {"compression.type": "zstd", "compression.zstd.level": "22"},
        {"max.in.flight.requests.per.connection": "5", "retries": "2147483647"},
        {"partitioner.ignore.keys": "true"},
        {"receive.buffer.bytes": "-1", "send.buffer.bytes": "-1"},
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
        {"metadata.max.age.ms": "0", "retry.backoff.ms": "0", "connections.max.idle.ms": "-1"},
    ],
)
def test_what_java_takes_is_taken(given: dict[str, str]) -> None:
    accepted(given)


@pytest.mark.parametrize(
    ("given", "idle_ms", "control_ms"),
    [
        ({}, "60000", 3000),
        ({"connections.max.idle.ms": "-1"}, "0", 3000),
        ({"connections.max.idle.ms": "2000"}, "2000", 2000),
    ],
)
def test_no_client_keeps_an_idle_connection(
    given: dict[str, str], idle_ms: str, control_ms: int
) -> None:
    """A load balancer may have dropped it without a word."""
    options = parse_options({**BROKER, **{f"kafka.{n}": v for n, v in given.items()}})
    connection = connection_settings(librdkafka_settings(options.cluster.client))
    assert connection["connections.max.idle.ms"] == idle_ms
    assert connection["socket.keepalive.enable"] == "true"
    assert kafka_python_settings(connection)["connections_max_idle_ms"] == control_ms


@pytest.mark.parametrize("end", [0, 1])
def test_the_ends_of_each_range_are_taken(end: int) -> None:
    """All at once where that is possible; what depends on others is left out."""
    related = {"linger.ms", "delivery.timeout.ms", "reconnect.backoff.ms"}
    given: dict[str, str] = {}
    for row in SETTINGS:
        bounds = get_range(row.librdkafka or row.name) if row.handling is Handling.SAME else None
        if bounds and row.name not in related:
            given[row.name] = str(bounds[end])
    taken = {
        name: v
        for name, v in given.items()
        if check_setting(name, v).handling is not Handling.REFUSED
    }
    assert len(taken) > 7
    accepted(taken)


# integration/test_logins.py logs in.
CHOICES = sorted(
    name
    for name, values in PROPERTIES.items()
    if "," in values and "true" not in values and not name.startswith(("sasl.", "security."))
)


@pytest.mark.parametrize("name", CHOICES)
def test_each_choice_is_taken(name: str) -> None:
    for choice in PROPERTIES[name].split(","):
        if check_setting(name, choice).handling is not Handling.REFUSED:
            accepted({name: choice})


def test_what_the_client_refuses_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="debug"):
        accepted({"debug": "everything"})


def test_a_plan_finds_what_the_client_would_refuse() -> None:
    kafka = ConfluentKafka(parse_options({**BROKER, "kafka.debug": "everything"}).cluster)
    with pytest.raises(ConfigurationError, match="debug"):
        kafka.check_settings("id", TRANSACTION_MS)


def test_a_plan_does_not_refuse_a_linger_that_only_the_other_client_uses() -> None:
    given = {**BROKER, "kafka.linger.ms": "900000"}
    ConfluentKafka(parse_options(given).cluster).check_settings("id", TRANSACTION_MS)
    other = ConfluentKafka(parse_options({**given, "eos.native": "false"}).cluster)
    with pytest.raises(ConfigurationError, match=r"linger\.ms"):
        other.check_settings("id", TRANSACTION_MS)


class Recorder(ConfluentClient):
    """Keeps librdkafka's configuration."""

    def __init__(self, configuration: dict[str, Any], _: ProducerEvents) -> None:
        self.configuration = configuration


@pytest.mark.parametrize(
    ("given", "kilobytes"),
    [
        ({}, 49152),
        ({"message.max.bytes": "1000"}, 49152),
        ({"message.max.bytes": "100000000"}, 97657),
        ({"queue.buffering.max.kbytes": "1000"}, "1000"),
    ],
)
def test_a_task_keeps_48_mb_of_rows_or_the_largest_record_or_what_is_asked(
    given: dict[str, str], kilobytes: int | str
) -> None:
    permissions = Permissions("", "log")
    producer = ConfluentProducer(given, "id", TRANSACTION_MS, permissions, client=Recorder)
    assert isinstance(producer._client, Recorder)
    assert producer._client.configuration["queue.buffering.max.kbytes"] == kilobytes
