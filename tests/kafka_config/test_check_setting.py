"""The table of Kafka settings: complete, and clear about each value."""

from __future__ import annotations

import ctypes
import re
import tempfile
from importlib.metadata import files
from pathlib import Path

import pytest

from eos_sink.kafka_config.check_setting import CheckedSetting, check_setting, find_setting
from eos_sink.kafka_config.java_settings import CONSUMER_ONLY, SETTINGS, Handling
from eos_sink.kafka_config.librdkafka_settings import ALIASES, PROPERTIES

_PROPERTY = re.compile(r"^(\S+) +\| +([*CP]) +\| *([^|]*?) *\|.*?\*Type: ([^*]*)\*", re.MULTILINE)
_ALGORITHM = "ssl.endpoint.identification.algorithm"
_ALIAS = re.compile(r"^(\S+) .*Alias for `(\S+)`", re.MULTILINE)


@pytest.fixture(scope="module")
def printed() -> str:
    """What the installed librdkafka says of its own settings."""
    bundled = [f for f in files("confluent-kafka") or [] if f.name.startswith("librdkafka")]
    if not bundled:
        pytest.skip("confluent-kafka was built against the system's librdkafka")
    import confluent_kafka  # noqa: F401 - loads what the library depends on

    library = ctypes.CDLL(str(bundled[0].locate()))
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "properties"
        file = libc.fopen(str(path).encode(), b"w")
        library.rd_kafka_conf_properties_show(file)
        libc.fclose(file)
        return path.read_text()


def test_librdkafkas_settings_are_those_of_the_installed_library(printed: str) -> None:
    known: dict[str, str] = {}
    for name, scope, values, kind in _PROPERTY.findall(printed):
        if scope != "C" and kind != "see dedicated API":
            known.setdefault(
                name, "" if kind in ("string", "CSV flags", "pattern list") else values
            )
    assert {n: v.replace(" .. ", "..") for n, v in known.items()} == PROPERTIES


def test_second_names_are_those_of_the_installed_library(printed: str) -> None:
    """librdkafka calls Java's name the alias where both are known."""
    pairs = {frozenset(pair) for pair in _ALIAS.findall(printed)}
    ours = {frozenset(pair) for pair in ALIASES.items()}
    consumers = {pair for pair in pairs if pair <= CONSUMER_ONLY}
    assert ours == pairs - consumers


def test_what_only_librdkafkas_consumer_has_is_passed_over(printed: str) -> None:
    consumer = {
        name
        for name, scope, _, kind in _PROPERTY.findall(printed)
        if scope == "C" and kind != "see dedicated API"
    }
    assert consumer <= CONSUMER_ONLY


def test_what_is_handed_on_has_a_name_that_librdkafka_knows() -> None:
    for row in SETTINGS:
        if row.handling is Handling.SAME:
            assert row.name in PROPERTIES, row
        if row.librdkafka:
            assert row.librdkafka in PROPERTIES, row
            assert row.handling is Handling.TRANSLATED, row


def test_names_are_unique_and_in_order() -> None:
    names = [row.name for row in SETTINGS]
    assert names == sorted(set(names))
    assert not CONSUMER_ONLY & set(names)


def test_each_row_that_is_not_handed_on_says_why() -> None:
    assert [
        r for r in SETTINGS if r.handling in (Handling.IGNORED, Handling.OWNED, Handling.REFUSED)
    ]
    for row in SETTINGS:
        assert row.note or row.handling is Handling.SAME, row
        assert not row.note or row.note.endswith("."), row


def test_a_second_name_has_the_same_row() -> None:
    assert find_setting("request.required.acks") is find_setting("acks")
    assert find_setting("Linger.MS") is find_setting("queue.buffering.max.ms")
    assert find_setting("no.such.thing") is None


def handling(name: str, value: str) -> Handling:
    return check_setting(name, value).handling


@pytest.mark.parametrize(
    ("name", "value", "handed_on"),
    [
        ("batch.size", "0", {"batch.size": "1"}),
        ("batch.size", "16384", {"batch.size": "16384"}),
        ("buffer.memory", "33554432", {"queue.buffering.max.kbytes": "32768"}),
        ("buffer.memory", "1", {"queue.buffering.max.kbytes": "1"}),
        ("compression.type", "ZSTD", {"compression.type": "zstd"}),
        ("compression.codec", "lz4", {"compression.type": "lz4"}),
        ("connections.max.idle.ms", "-1", {"connections.max.idle.ms": "0"}),
        ("linger.ms", "0.5", {"linger.ms": "0.5"}),
        ("max.in.flight", "5", {"max.in.flight.requests.per.connection": "5"}),
        ("max.request.size", "2000000", {"message.max.bytes": "2000000"}),
        ("metadata.max.age.ms", "60000", {"topic.metadata.refresh.interval.ms": "60000"}),
        ("metadata.recovery.strategy", "NONE", {"metadata.recovery.strategy": "none"}),
        ("partitioner", "random", {"partitioner": "random"}),
        ("partitioner.ignore.keys", "TRUE", {"partitioner": "random"}),
        ("partitioner.ignore.keys", "false", {"partitioner": "murmur2_random"}),
        ("security.protocol", "SASL_SSL", {"security.protocol": "sasl_ssl"}),
        ("send.buffer.bytes", "-1", {"socket.send.buffer.bytes": "0"}),
        ("socket.keepalive.enable", "true", {"socket.keepalive.enable": "true"}),
        (_ALGORITHM, "", {_ALGORITHM: "none"}),
        (_ALGORITHM, "HTTPS", {_ALGORITHM: "https"}),
        ("ssl.truststore.certificates", "-----", {"ssl.ca.pem": "-----"}),
    ],
)
def test_values_are_spelt_as_librdkafka_takes_them(
    name: str, value: str, handed_on: dict[str, str]
) -> None:
    checked = check_setting(name, value)
    assert checked.settings == handed_on
    assert checked.handling in (Handling.SAME, Handling.TRANSLATED)
    assert not checked.warning


@pytest.mark.parametrize(
    ("name", "value", "used"),
    [
        ("connections.max.idle.ms", str(2**63 - 1), "2147483647"),
        ("compression.zstd.level", "19", "12"),
        ("metadata.max.age.ms", "3600000", "715827"),
        ("request.timeout.ms", "2147483647", "900000"),
        ("socket.connection.setup.timeout.ms", "10", "1000"),
    ],
)
def test_a_tuning_beyond_librdkafkas_range_becomes_the_nearest_with_a_warning(
    name: str, value: str, used: str
) -> None:
    checked = check_setting(name, value)
    assert list(checked.settings.values()) == [used]
    assert checked.warning
    assert used in checked.note


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("linger.ms", "1000000", "0 to 900000"),
        ("linger.ms", "soon", "0 to 900000"),
        ("max.request.size", "1", "1000 to 1000000000"),
        ("max.in.flight.requests.per.connection", "6", "1 to 5"),
        ("retries", "0", "1 to 2147483647"),
        ("message.send.max.retries", "0", "1 to 2147483647"),
        ("compression.type", "brotli", "none, gzip, snappy, lz4, zstd"),
        ("security.protocol", "TLS", "plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ("buffer.memory", "a lot", "whole number"),
        ("partitioner.ignore.keys", "maybe", "true becomes random"),
        ("partitioner", "round_robin", "murmur2_random"),
        ("sasl.mechanism", "NTLM", "Kerberos"),
        ("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "OpenSSL's names"),
    ],
)
def test_a_value_that_librdkafka_does_not_take_is_refused_with_what_it_takes(
    name: str, value: str, needed: str
) -> None:
    checked = check_setting(name, value)
    assert checked.handling is Handling.REFUSED
    assert needed in checked.note
    assert repr(value) in checked.note


def test_a_keytab_is_that_of_the_process() -> None:
    checked = check_setting("sasl.kerberos.keytab", "/a.keytab")
    assert checked.handling is Handling.REFUSED
    assert "KRB5_CLIENT_KTNAME" in checked.note


@pytest.mark.parametrize("url", ["file:///canary", "https://me:canary@host/token"])
def test_a_token_comes_from_a_server_without_a_login_in_its_url_which_is_not_shown(
    url: str,
) -> None:
    checked = check_setting("sasl.oauthbearer.token.endpoint.url", url)
    assert checked.handling is Handling.REFUSED
    assert "canary" not in checked.note


@pytest.mark.parametrize("rest", ["", "/a@b", "?tenant=a@b", ":8443/token"])
def test_the_path_of_a_token_server_may_have_any_characters(rest: str) -> None:
    url = f"https://host{rest}"
    checked = check_setting("sasl.oauthbearer.token.endpoint.url", url)
    assert checked.settings == {"sasl.oauthbearer.token.endpoint.url": url}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "all"),
        ("acks", "-1"),
        ("request.required.acks", "-1"),
        ("enable.idempotence", "True"),
        ("interceptor.classes", ""),
        ("partitioner.class", "org.apache.kafka.clients.producer.internals.DefaultPartitioner"),
        ("ssl.enabled.protocols", "TLSv1.2, TLSv1.1, TLSv1"),
        ("ssl.protocol", "TLSv1.3"),
        ("transaction.two.phase.commit.enable", "false"),
    ],
)
def test_what_the_sink_does_anyway_is_accepted_in_silence(name: str, value: str) -> None:
    checked = check_setting(name, value)
    assert checked.handling is not Handling.REFUSED
    assert not checked.settings
    assert not checked.warning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "1"),
        ("request.required.acks", "1"),
        ("enable.idempotence", "false"),
        ("interceptor.classes", "com.example.Mask"),
        ("key.serializer", "org.apache.kafka.common.serialization.StringSerializer"),
        ("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"),
        ("config.providers", "file"),
        ("config.providers.file.class", "com.example.FileConfigProvider"),
        ("listener.name.internal.sasl.jaas.config", "x"),
        ("queuing.strategy", "lifo"),
        ("ssl.enabled.protocols", "TLSv1.3"),
        ("statistics.interval.ms", "1000"),
        ("transaction.two.phase.commit.enable", "true"),
        ("transactional.id", "mine"),
    ],
)
def test_what_changes_the_data_or_the_security_is_refused(name: str, value: str) -> None:
    assert handling(name, value) is Handling.REFUSED
    assert check_setting(name, value).note


@pytest.mark.parametrize(
    "name", ["metric.reporters", "max.block.ms", "group.id", "fetch.min.bytes"]
)
def test_what_changes_neither_is_passed_over_with_a_warning(name: str) -> None:
    checked = check_setting(name, "something")
    assert checked.handling is Handling.IGNORED
    assert checked.warning
    assert not checked.settings


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("linger.msec", "kafka.linger.ms"),
        ("sasl.jaas.conf", "kafka.sasl.jaas.config"),
        ("queue.buffering.max.kb", "kafka.queue.buffering.max.kbytes"),
    ],
)
def test_a_name_that_neither_knows_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    assert handling(name, "1") is Handling.REFUSED
    assert repr(nearest) in check_setting(name, "1").note


def test_a_checked_does_not_show_what_may_be_secret() -> None:
    shown: CheckedSetting = check_setting("ssl.key.password", "canary")
    assert shown.settings == {"ssl.key.password": "canary"}
    assert "canary" not in repr(shown)
