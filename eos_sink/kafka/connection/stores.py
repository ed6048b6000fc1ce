"""Key stores and trust stores of Java clients, as PEM for librdkafka and for Python's ssl."""

from __future__ import annotations

from pathlib import Path

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config import Store

PKCS12_REQUIREMENT = "eos-sink[pkcs12]"

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_ASN1_SEQUENCE = b"\x30"
_NOTHING = " Nothing was written."


def store_settings(store: Store) -> dict[str, str]:
    """What librdkafka gets in place of a store.

    Raises:
        ConfigurationError: it cannot be read, or only a JVM can; nothing of its content is shown.
    """
    if store.kind == "PEM":
        return _pem_settings(store)
    try:
        content = Path(store.location).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"Option kafka.{store.option} names {store.location}, which cannot be read: "
            f"{error.strerror}.",
            remedy="The file has to be at this path on the driver and on every executor."
            + _NOTHING,
        ) from error
    # Java reads PKCS#12 under the type JKS too, which is its default: what the file is counts.
    if content.startswith(_ASN1_SEQUENCE):
        return _pkcs12_settings(store, content)
    if store.kind == "" and content.lstrip().startswith(b"-----BEGIN"):
        return _pem_settings(store)
    raise _only_for_java(store, content)


def _pem_settings(store: Store) -> dict[str, str]:
    if store.private:
        names = ("ssl.certificate.location", "ssl.key.location")
        return dict.fromkeys(names, store.location)
    return {"ssl.ca.location": store.location}


def _pkcs12_settings(store: Store, content: bytes) -> dict[str, str]:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"Option kafka.{store.option} names a PKCS#12 store, which takes the package "
            "cryptography.",
            remedy=f"pip install '{PKCS12_REQUIREMENT}', or convert the store: openssl pkcs12 "
            f"-in {store.location} -out store.pem, and set the type to PEM." + _NOTHING,
        ) from missing
    password = None if store.password is None else store.password.encode()
    try:
        opened = pkcs12.load_pkcs12(content, password)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"Option kafka.{store.option} names {store.location}, a PKCS#12 store that cannot be "
            "opened.",
            remedy=f"Check kafka.{store.option.replace('location', 'password')}." + _NOTHING,
        ) from error
    pem = serialization.Encoding.PEM
    further = [entry.certificate for entry in opened.additional_certs]
    own = [opened.cert.certificate] if opened.cert else []
    certificates = [
        each.public_bytes(pem).decode()
        for each in (own + further if store.private else further + own)
    ]
    if not certificates or (store.private and opened.key is None):
        raise ConfigurationError(
            f"Option kafka.{store.option} names {store.location}, which holds no "
            f"{'key with its certificate' if store.private else 'certificate'}.",
            remedy="Name another store." + _NOTHING,
        )
    if not store.private:
        return {"ssl.ca.pem": "".join(certificates)}
    assert opened.key is not None
    key = opened.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"ssl.certificate.pem": "".join(certificates), "ssl.key.pem": key.decode()}


def _only_for_java(store: Store, content: bytes) -> ConfigurationError:
    java = content.startswith(_JKS_MAGIC) or store.kind in ("JKS", "JCEKS")
    kind = "JKS" if java else store.kind or "unknown"
    return ConfigurationError(
        f"Option kafka.{store.option} names {store.location}, a store of kind {kind} that only a "
        "JVM can read.",
        remedy=conversion(store) + _NOTHING,
    )


def conversion(store: Store) -> str:
    """How a store that only a JVM can read becomes one that both can."""
    which, target = store.option.split(".")[1], f"{Path(store.location).stem}.p12"
    return (
        f"Convert it: keytool -importkeystore -srckeystore {store.location} "
        f"-destkeystore {target} -deststoretype PKCS12. Then set kafka.ssl.{which}.location to "
        f"that file, and kafka.ssl.{which}.type to PKCS12."
    )
