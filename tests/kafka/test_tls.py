"""What a TLS context of the control connections accepts."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from eos_sink.kafka.connection.tls import make_broker_context, make_token_context


def revoke_nothing() -> bytes:
    """A list of an authority that has revoked nothing."""
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    now = datetime.now(timezone.utc)
    made = x509.CertificateRevocationListBuilder().issuer_name(name).last_update(now)
    signed = made.next_update(now + timedelta(days=1)).sign(key, None)
    return signed.public_bytes(Encoding.PEM)


@pytest.mark.parametrize("make", [make_broker_context, make_token_context])
def test_no_version_before_tls_1_2(make: Callable[[Mapping[str, str]], ssl.SSLContext]) -> None:
    assert make({}).minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_list_of_revoked_certificates_is_checked(tmp_path: Path) -> None:
    revoked = tmp_path / "revoked.pem"
    revoked.write_bytes(revoke_nothing())
    context = make_broker_context({"ssl.crl.location": str(revoked)})
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_without_such_a_list_none_is_needed() -> None:
    assert not make_broker_context({}).verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
