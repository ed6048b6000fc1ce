"""All settings of a query seen together: names, times, logins, stores and warnings."""

from __future__ import annotations

from itertools import combinations

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import is_secret
from eos_sink.kafka_config.cluster_config import Store
from eos_sink.kafka_config.translate import _ONE_OF, translate

JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="ann" password="word";'
)
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT = "sasl.oauthbearer.client.credentials.client"
SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
BEARER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "oauthbearer"}


def refused(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as error:
        translate(settings)
    assert "Nothing was written" in str(error.value)
    return str(error.value)


def test_a_refused_setting_is_named_with_what_to_do() -> None:
    message = refused({"interceptor.classes": "com.example.Mask"})
    assert "kafka.interceptor.classes" in message
    assert "Make its change to the columns" in message


def test_ignored_and_adjusted_settings_are_reported() -> None:
    translation = translate({"metric.reporters": "x", "compression.zstd.level": "22"})
    assert translation.settings == {}
    assert len(translation.warnings) == 2
    assert "kafka.metric.reporters is ignored" in translation.warnings[0]
    assert "kafka.compression.zstd.level is adjusted: 12" in translation.warnings[1]


def test_the_level_of_the_compression_in_use_counts() -> None:
    levels = {"compression.gzip.level": "1", "compression.zstd.level": "7"}
    used = translate({**levels, "compression.type": "zstd"}).settings
    assert used == {"compression.type": "zstd", "compression.level": "7"}
    assert "compression.level" not in translate(levels).settings
    own = translate({**levels, "compression.type": "gzip", "compression.level": "2"}).settings
    assert own["compression.level"] == "2"


def test_two_names_for_one_thing_may_agree_and_must_not_differ() -> None:
    both = {"max.request.size": "2000000", "message.max.bytes": "2000000"}
    assert translate(both).settings == {"message.max.bytes": "2000000"}
    message = refused({**both, "message.max.bytes": "1000"})
    assert "kafka.max.request.size" in message
    assert "kafka.message.max.bytes" in message


@pytest.mark.parametrize("pair", sorted({p for g in _ONE_OF for p in combinations(g, 2)}))
def test_tls_means_the_same_to_both_clients_or_is_refused(pair: tuple[str, str]) -> None:
    """Also if both are one setting of librdkafka."""
    with pytest.raises(ConfigurationError, match=f"kafka.{pair[0]} and kafka.{pair[1]} are both"):
        translate({"bootstrap.servers": "h:1", **dict.fromkeys(pair, "same")})


@pytest.mark.parametrize("name", ["ssl.sigalgs.list", "ssl.curves.list", "ssl.cipher.suites"])
def test_tls_that_only_one_client_can_be_told_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"kafka.{name}"):
        translate({"bootstrap.servers": "h:1", name: "DEFAULT@SECLEVEL=0"})


def test_waits_that_outlast_the_transaction_are_reported() -> None:
    waits = {"delivery.timeout.ms": "2147483647", "socket.timeout.ms": "60000"}
    assert translate(waits, 900_000).warnings == (
        "Option kafka.delivery.timeout.ms is adjusted: 900000 is used, as long as the "
        "transaction lasts (eos.transaction.timeout.ms).",
    )
    assert translate({"message.timeout.ms": "300000"}, 900_000).warnings == ()


def test_times_that_contradict_each_other_are_named_as_the_user_names_them() -> None:
    message = refused({"message.timeout.ms": "5000", "queue.buffering.max.ms": "6000"})
    assert "kafka.message.timeout.ms is 5000" in message
    assert "kafka.queue.buffering.max.ms" in message


@pytest.mark.parametrize(("delivery", "linger"), [("0", "0"), ("100", "100"), ("100", "100.5")])
def test_a_delivery_that_is_late_before_it_begins_is_refused(delivery: str, linger: str) -> None:
    message = refused({"delivery.timeout.ms": delivery, "linger.ms": linger})
    assert "kafka.linger.ms" in message


def test_a_delivery_in_less_than_a_second_is_refused() -> None:
    assert "kafka.delivery.timeout.ms" in refused({"delivery.timeout.ms": "999"})
    assert translate({"delivery.timeout.ms": "1000"}).settings["delivery.timeout.ms"] == "1000"


def test_the_longest_backoff_is_no_shorter_than_the_first() -> None:
    assert translate({"reconnect.backoff.ms": "20000"}).settings == {
        "reconnect.backoff.ms": "20000",
        "reconnect.backoff.max.ms": "20000",
    }
    assert translate({"reconnect.backoff.max.ms": "50"}).settings == {
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "50",
    }


def test_a_jaas_login_becomes_user_and_password() -> None:
    settings = translate({**SCRAM, "sasl.jaas.config": JAAS}).settings
    assert settings["sasl.username"] == "ann"
    assert settings["sasl.password"] == "word"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512"
    assert "sasl.jaas.config" not in settings


def test_kerberos_needs_no_user_and_runs_no_kinit() -> None:
    settings = translate({"security.protocol": "SASL_SSL", "sasl.mechanism": "gssapi"}).settings
    assert settings["sasl.mechanism"] == "GSSAPI"
    assert settings["sasl.kerberos.service.name"] == "kafka"
    assert settings["sasl.kerberos.min.time.before.relogin"] == "0"


def test_a_login_without_its_mechanism_is_refused() -> None:
    message = refused({"security.protocol": "SASL_SSL", "sasl.jaas.config": JAAS})
    assert "kafka.sasl.mechanism is missing" in message
    assert "Kerberos" in message


def test_a_login_for_another_mechanism_is_refused() -> None:
    message = refused({**SCRAM, "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS})
    assert "SCRAM-SHA-256 or SCRAM-SHA-512" in message


def test_a_mechanism_without_user_and_password_is_refused() -> None:
    assert "kafka.sasl.username" in refused(SCRAM)


def test_logins_are_ignored_without_sasl() -> None:
    translation = translate({"security.protocol": "SSL", "sasl.jaas.config": JAAS})
    assert translation.settings == {"security.protocol": "ssl"}
    assert "kafka.sasl.*" in translation.warnings[0]


def test_tokens_come_from_the_server_that_is_named() -> None:
    server = {**BEARER, TOKEN_URL: "https://login/token"}
    jaas = {"sasl.jaas.config": f'{OAUTH} clientId="id" clientSecret="word";'}
    settings = translate({**server, **jaas}).settings
    assert settings["sasl.oauthbearer.method"] == "oidc"
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    kip_1139 = translate({**server, f"{CLIENT}.id": "id", f"{CLIENT}.secret": "word"})
    assert kip_1139.settings == settings
    older = {"sasl.oauthbearer.client.id": "id", "sasl.oauthbearer.client.secret": "word"}
    assert translate({**server, **older}).settings == settings


def test_a_token_server_without_tls_is_warned_of() -> None:
    login = {f"{CLIENT}.id": "id", f"{CLIENT}.secret": "word"}
    safe = translate({**BEARER, **login, TOKEN_URL: "https://login/token"})
    unsafe = translate({**BEARER, **login, TOKEN_URL: "HTTP://login/token"})
    assert safe.warnings == ()
    assert TOKEN_URL in unsafe.warnings[0]
    assert "login" not in unsafe.warnings[0]


def test_a_token_server_needs_to_know_who_asks() -> None:
    message = refused({**BEARER, TOKEN_URL: "https://login/token", f"{CLIENT}.id": "id"})
    assert f"kafka.{CLIENT}.secret" in message
    assert f"kafka.{CLIENT}.id" not in message


def test_tokens_have_to_come_from_somewhere() -> None:
    assert TOKEN_URL in refused(BEARER)


def test_an_unsigned_token_is_for_tests_and_that_is_said() -> None:
    jaas = {"sasl.jaas.config": f'{OAUTH} unsecuredLoginStringClaim_sub="ann";'}
    translation = translate({**BEARER, **jaas})
    assert "for tests only" in translation.warnings[0]
    assert translation.settings["enable.sasl.oauthbearer.unsecure.jwt"] == "true"


def test_stores_are_read_where_there_is_tls() -> None:
    stores = {
        "ssl.keystore.type": "pkcs12",
        "ssl.keystore.location": "/key.p12",
        "ssl.keystore.password": "word",
        "ssl.truststore.location": "/trust.jks",
    }
    translation = translate({"security.protocol": "SSL", **stores})
    assert translation.settings == {"security.protocol": "ssl"}
    assert translation.stores == (
        Store("ssl.keystore.location", True, "/key.p12", "PKCS12", "word"),
        Store("ssl.truststore.location", False, "/trust.jks", ""),
    )
    assert "word" not in repr(translation)
    assert translate(stores).stores == ()


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.config",
    ],
)
def test_secrets_are_known_as_such(name: str) -> None:
    assert is_secret(name)
    assert not is_secret("linger.ms")
