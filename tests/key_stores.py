"""PKCS#12 stores and encrypted keys from the certificates of a secured test cluster."""

from __future__ import annotations

from pathlib import Path

from eos_sink_lab.testing.security import Authority, Identity

STORE_PASSWORD = "changeit"


def encrypt_key(identity: Identity) -> str:
    """The key as PEM, encrypted with `STORE_PASSWORD`."""
    from cryptography.hazmat.primitives import serialization as form

    key = form.load_pem_private_key(identity.key.read_bytes(), password=None)
    encryption = form.BestAvailableEncryption(STORE_PASSWORD.encode())
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption).decode()


def pkcs12_keystore(identity: Identity) -> Path:
    """A store with the key, its certificate and the authority, under `STORE_PASSWORD`."""
    return _pkcs12(identity.both.with_suffix(".p12"), identity.key, identity.chain)


def pkcs12_truststore(authority: Authority) -> Path:
    """The root in a store under `STORE_PASSWORD`, as `openssl pkcs12` makes it."""
    return _pkcs12(authority.ca.with_name("truststore.p12"), None, authority.ca)


def _pkcs12(store: Path, key: Path | None, chain: Path) -> Path:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        load_pem_private_key,
        pkcs12,
    )
    from cryptography.x509 import load_pem_x509_certificates

    certificates = load_pem_x509_certificates(chain.read_bytes())
    own = certificates.pop(0) if key is not None else None
    content = pkcs12.serialize_key_and_certificates(
        store.stem.encode() if key is not None else None,
        load_pem_private_key(key.read_bytes(), password=None) if key is not None else None,  # type: ignore[arg-type]
        own,
        certificates,
        BestAvailableEncryption(STORE_PASSWORD.encode()),
    )
    store.write_bytes(content)
    return store
