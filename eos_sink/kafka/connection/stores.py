"""Reads key stores and trust stores of Java clients, as PEM for librdkafka and Python's ssl."""

from __future__ import annotations

from pathlib import Path

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.cluster_config import Store

PKCS12_REQUIREMENT = "eos-sink[pkcs12]"

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_ASN1_SEQUENCE = b"\x30"


def read_store(store: Store) -> dict[str, str]:
    """The settings that librdkafka gets instead of a store.

    Raises:
        ConfigurationError: it cannot be read, or only by a JVM; shows nothing of its content.
    """
    try:
        content = Path(store.location).read_bytes()
    except OSError as error:
        raise _error(
            store,
            f"which cannot be read: {error.strerror}",
            "The file has to be at this path on the driver and on every executor.",
        ) from error
    if store.kind == "PEM":
        return _pem_settings(store)
    # The content decides: Java also reads PKCS#12 under the type JKS, its default.
    if content.startswith(_ASN1_SEQUENCE):
        return _read_pkcs12(store, content)
    if store.kind == "" and content.lstrip().startswith(b"-----BEGIN"):
        return _pem_settings(store)
    java = content.startswith(_JKS_MAGIC) or store.kind in ("JKS", "JCEKS")
    kind = "JKS" if java else store.kind or "unknown"
    raise _error(
        store, f"a store of kind {kind} that only a JVM can read", describe_conversion(store)
    )


def describe_conversion(store: Store) -> str:
    """Say how to convert a store that only a JVM can read."""
    which, target = store.option.split(".")[1], f"{Path(store.location).stem}.p12"
    return (
        f"Convert it: keytool -importkeystore -srckeystore {store.location} "
        f"-destkeystore {target} -deststoretype PKCS12. Then set kafka.ssl.{which}.location to "
        f"that file, and kafka.ssl.{which}.type to PKCS12."
    )


def _pem_settings(store: Store) -> dict[str, str]:
    if store.private:
        return dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), store.location)
    return {"ssl.ca.location": store.location}


def _read_pkcs12(store: Store, content: bytes) -> dict[str, str]:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ModuleNotFoundError as missing:
        raise _error(
            store,
            "a PKCS#12 store, which needs the package cryptography",
            f"pip install '{PKCS12_REQUIREMENT}', or convert the store: openssl pkcs12 "
            f"-in {store.location} -out store.pem, and set the type to PEM.",
        ) from missing
    try:
        password = None if store.password is None else store.password.encode()
        opened = pkcs12.load_pkcs12(content, password)
    except (ValueError, UnsupportedAlgorithm) as error:
        password_option = f"kafka.{store.option.replace('location', 'password')}"
        raise _error(
            store, "a PKCS#12 store that cannot be opened", f"Check {password_option}."
        ) from error
    own = [opened.cert] if opened.cert else []
    entries = (
        [*own, *opened.additional_certs] if store.private else [*opened.additional_certs, *own]
    )
    if not entries or (store.private and opened.key is None):
        lacking = "key with its certificate" if store.private else "certificate"
        raise _error(store, f"which contains no {lacking}", "Name another store.")
    pem = serialization.Encoding.PEM
    certificates = "".join(each.certificate.public_bytes(pem).decode() for each in entries)
    if not store.private:
        return {"ssl.ca.pem": certificates}
    assert opened.key is not None
    key = opened.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"ssl.certificate.pem": certificates, "ssl.key.pem": key.decode()}


def _error(store: Store, problem: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(
        f"Option kafka.{store.option} names {store.location}, {problem}.",
        remedy=f"{remedy} Nothing was written.",
    )
