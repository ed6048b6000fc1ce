"""A certificate authority for a test cluster, made with trustme."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eos_sink.testing.errors import BackendUnavailableError
from eos_sink.testing.ports import HOST

STORE_PASSWORD = "changeit"  # noqa: S105 - of files that live as long as a test
"""Of every PKCS#12 store that is made here."""


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in each form that a client may want.

    Attributes:
        chain: PEM, the certificate and the authority's.
        key: PEM (PKCS#8), not encrypted.
        both: PEM, the key and then the chain: what Java calls a PEM store.
        pkcs12: both and the authority, under `STORE_PASSWORD`.
    """

    chain: Path
    key: Path
    both: Path
    pkcs12: Path


class Authority:
    """A root certificate that signs certificates for brokers and clients.

    Args:
        directory: takes all files; created if it is missing. An authority that is already in it is
            used again.

    Attributes:
        ca: the root certificate, PEM.

    Raises:
        BackendUnavailableError: trustme is not installed.
    """

    def __init__(self, directory: Path) -> None:
        try:
            from trustme import CA
        except ImportError:
            raise BackendUnavailableError(
                "A secured cluster makes its certificates with trustme: pip install trustme"
            ) from None
        self._directory = directory
        self.ca = directory / "ca.pem"
        key = directory / "ca-key.pem"
        if self.ca.exists():
            self._authority = CA.from_pem(self.ca.read_bytes(), key.read_bytes())
            return
        self._authority = CA(organization_name="test authority")
        directory.mkdir(parents=True, exist_ok=True)
        self._authority.private_key_pem.write_to_path(key)
        self._authority.cert_pem.write_to_path(self.ca)

    @property
    def truststore(self) -> Path:
        """The root in a PKCS#12 store under `STORE_PASSWORD`, as `openssl pkcs12` makes it."""
        store = self._directory / "truststore.p12"
        if not store.exists():
            store.write_bytes(_to_pkcs12(None, self.ca.read_bytes()))
        return store

    def identity(self, name: str) -> Identity:
        """The certificate of `name`, for a client and for a broker on this machine."""
        ends = ("-chain.pem", "-key.pem", ".pem", ".p12")
        found = Identity(*(self._directory / f"{name}{end}" for end in ends))
        if not found.pkcs12.exists():
            self._issue(name, found)
        return found

    def _issue(self, name: str, to: Identity) -> None:
        leaf = self._authority.issue_cert("localhost", HOST, common_name=name)
        # Java reads a PEM key as PKCS#8 only.
        key = _to_pkcs8(leaf.private_key_pem.bytes())
        chain = leaf.cert_chain_pems[0].bytes() + self.ca.read_bytes()
        to.key.write_bytes(key)
        to.chain.write_bytes(chain)
        to.both.write_bytes(key + chain)
        to.pkcs12.write_bytes(_to_pkcs12(key, chain, name))


def encrypt_key(identity: Identity) -> str:
    """The key as PEM, encrypted with `STORE_PASSWORD`."""
    return _to_pkcs8(identity.key.read_bytes(), STORE_PASSWORD).decode()


def _to_pkcs8(pem: bytes, password: str | None = None) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return form.load_pem_private_key(pem, password=None).private_bytes(
        form.Encoding.PEM,
        form.PrivateFormat.PKCS8,
        form.BestAvailableEncryption(password.encode()) if password else form.NoEncryption(),
    )


def _to_pkcs12(key: bytes | None, chain: bytes, name: str = "") -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        load_pem_private_key,
        pkcs12,
    )
    from cryptography.x509 import load_pem_x509_certificates

    certificates = load_pem_x509_certificates(chain)
    own = certificates.pop(0) if key is not None else None
    return pkcs12.serialize_key_and_certificates(
        name.encode() or None,
        load_pem_private_key(key, password=None) if key is not None else None,  # type: ignore[arg-type]
        own,
        certificates,
        BestAvailableEncryption(STORE_PASSWORD.encode()),
    )
