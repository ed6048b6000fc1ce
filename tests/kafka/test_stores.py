"""Stores of Java clients are read as PEM; what only a JVM can read says how to convert it."""

from __future__ import annotations

import builtins
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.connection.settings import (
    Hidden,
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.connection.stores import PKCS12_REQUIREMENT, read_store
from eos_sink.kafka_config.cluster_config import Store
from eos_sink.kafka_config.translate import translate
from eos_sink_lab.testing.security import Authority
from tests.key_stores import STORE_PASSWORD, encrypt_key, pkcs12_keystore, pkcs12_truststore


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def key_store(location: Path, kind: str = "", password: str | None = STORE_PASSWORD) -> Store:
    return Store("ssl.keystore.location", True, str(location), kind, password)


def trust_store(location: Path, kind: str) -> Store:
    return Store("ssl.truststore.location", False, str(location), kind, STORE_PASSWORD)


def refused(store: Store) -> str:
    with pytest.raises(ConfigurationError) as error:
        read_store(store)
    assert f"kafka.{store.option}" in str(error.value)
    assert "Nothing was written" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["PEM", ""])
def test_a_pem_store_is_handed_on_as_a_file(authority: Authority, kind: str) -> None:
    both = authority.identity("ann").both
    assert read_store(key_store(both, kind)) == {
        "ssl.certificate.location": str(both),
        "ssl.key.location": str(both),
    }
    assert read_store(trust_store(authority.ca, kind)) == {"ssl.ca.location": str(authority.ca)}


@pytest.mark.parametrize("kind", ["PEM", ""])
def test_a_missing_store_is_named_with_the_option(tmp_path: Path, kind: str) -> None:
    message = refused(trust_store(tmp_path / "ca.pem", kind))
    assert str(tmp_path / "ca.pem") in message
    assert "No such file" in message


# Java reads PKCS#12 under its default type too.
@pytest.mark.parametrize("kind", ["PKCS12", "JKS", ""])
def test_a_pkcs12_store_becomes_pem(authority: Authority, kind: str) -> None:
    pytest.importorskip("cryptography")
    settings = read_store(key_store(pkcs12_keystore(authority.identity("ann")), kind))
    assert settings["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")
    assert settings["ssl.certificate.pem"].count("BEGIN CERTIFICATE") == 2
    trusted = read_store(trust_store(pkcs12_truststore(authority), kind))
    assert trusted["ssl.ca.pem"].strip() == authority.ca.read_text().strip()


def test_a_wrong_password_is_reported_and_not_shown(authority: Authority) -> None:
    pytest.importorskip("cryptography")
    message = refused(key_store(pkcs12_keystore(authority.identity("ann")), "PKCS12", "canary"))
    assert "kafka.ssl.keystore.password" in message
    assert "canary" not in message


def test_a_store_without_a_key_is_no_key_store(authority: Authority) -> None:
    pytest.importorskip("cryptography")
    assert "no key with its certificate" in refused(key_store(pkcs12_truststore(authority)))


def test_without_the_package_the_error_says_how_to_get_it(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = key_store(pkcs12_keystore(authority.identity("ann")))
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("cryptography"):
            raise ModuleNotFoundError(name=name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    message = refused(store)
    assert f"pip install '{PKCS12_REQUIREMENT}'" in message


@pytest.mark.parametrize("content", [b"\xfe\xed\xfe\xed rest", b"\xce\xce\xce\xce rest"])
def test_a_jks_store_is_refused_with_the_command_that_converts_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "client.jks"
    path.write_bytes(content)
    message = refused(key_store(path, "JKS"))
    assert (
        f"keytool -importkeystore -srckeystore {path} -destkeystore client.p12 "
        "-deststoretype PKCS12" in message
    )
    assert "kafka.ssl.keystore.type to PKCS12" in message


def test_that_command_makes_a_store_that_is_read(authority: Authority, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    if shutil.which("keytool") is None:
        pytest.skip("keytool is not on the PATH")
    jks = tmp_path / "client.jks"
    words = ["-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD, "-noprompt"]
    convert = ["keytool", "-importkeystore", "-srckeystore"]
    first = [
        *convert,
        str(pkcs12_keystore(authority.identity("ann"))),
        "-destkeystore",
        str(jks),
        *words,
    ]
    subprocess.run([*first, "-deststoretype", "JKS"], check=True, capture_output=True, timeout=60)
    said = refused(key_store(jks)).split("Convert it: ")[1].split(". Then")[0].split()
    subprocess.run([*said, *words], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert "ssl.key.pem" in read_store(key_store(tmp_path / "client.p12", "PKCS12"))


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = refused(trust_store(tmp_path / "missing", "PKCS12"))
    assert str(tmp_path / "missing") in message
    assert "every executor" in message


@pytest.mark.parametrize("kind", ["PKCS11", "BCFKS"])
def test_another_kind_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(b"?")
    assert kind in refused(trust_store(path, kind))


def translated(settings: Mapping[str, str]) -> dict[str, Any]:
    return librdkafka_settings(translate(settings))


def context_of(settings: Mapping[str, str]) -> ssl.SSLContext:
    connection = connection_settings(
        translated({"bootstrap.servers": "b:1", "security.protocol": "SSL", **settings})
    )
    context = kafka_python_settings(connection)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


def test_kafka_python_trusts_what_librdkafka_trusts(authority: Authority) -> None:
    for trust in (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.ca)},
        {"ssl.truststore.certificates": authority.ca.read_text()},
        {"ssl.ca.location": str(authority.ca)},
    ):
        context = context_of(trust)
        assert "test authority" in str(context.get_ca_certs())
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname


def test_names_and_certificates_are_checked_unless_that_is_switched_off(
    authority: Authority,
) -> None:
    assert not context_of({"ssl.endpoint.identification.algorithm": ""}).check_hostname
    off = context_of({"enable.ssl.certificate.verification": "false"})
    assert off.verify_mode is ssl.CERT_NONE


def test_an_inline_key_leaves_no_file(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ann = authority.identity("ann")
    context_of(
        {
            "ssl.keystore.key": ann.key.read_text(),
            "ssl.keystore.certificate.chain": ann.chain.read_text(),
        }
    )
    assert list(tmp_path.iterdir()) == []


def test_only_this_user_can_open_an_inline_key_meanwhile(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    def load(_: ssl.SSLContext, path: Path, **__: object) -> None:
        modes.extend(each.stat().st_mode & 0o777 for each in (path, path.parent))

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)
    ann = authority.identity("ann")
    key, chain = ann.key.read_text(), ann.chain.read_text()
    context_of({"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain})
    assert modes == [0o600, 0o700]


def test_an_encrypted_key_without_its_password_is_an_error_and_no_question(
    authority: Authority,
) -> None:
    ann = authority.identity("ann")
    settings = {
        "ssl.keystore.key": encrypt_key(ann),
        "ssl.keystore.certificate.chain": ann.chain.read_text(),
    }
    with pytest.raises(ConfigurationError, match=r"kafka\.ssl\.key\.password"):
        context_of(settings)
    context_of({**settings, "ssl.key.password": STORE_PASSWORD})
    with pytest.raises(ConfigurationError) as error:
        context_of({**settings, "ssl.key.password": "canary"})
    assert "canary" not in str(error.value)


def test_a_key_that_is_none_is_an_error_without_it() -> None:
    with pytest.raises(ConfigurationError) as error:
        context_of({"ssl.keystore.key": "canary", "ssl.keystore.certificate.chain": "canary"})
    assert "canary" not in str(error.value)


def test_servers_and_logins_reach_kafka_python() -> None:
    connection = connection_settings(
        translated(
            {
                "bootstrap.servers": " a:1, b:2 ,",
                "client.id": "me",
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "plain",
                "sasl.username": "ann",
                "sasl.password": "canary",
                "linger.ms": "5",
            }
        )
    )
    arguments = kafka_python_settings(connection)
    assert "canary" not in repr(arguments)
    assert arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "connections_max_idle_ms": 3000,
        "reconnect_backoff_max_ms": 1000,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": Hidden("canary"),
    }
