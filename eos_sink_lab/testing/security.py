"""Secured test clusters: their properties, and a certificate authority made with trustme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from eos_sink_lab.testing.cluster_errors import BackendUnavailableError
from eos_sink_lab.testing.network_links import HOST

SASL_LISTENER = "SASL_SSL"
TLS_LISTENER = "SSL"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*SCRAM, "PLAIN", "OAUTHBEARER")

_COMMON = "org.apache.kafka.common.security"
_LOGIN = {
    "SCRAM-SHA-256": f"{_COMMON}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_COMMON}.scram.ScramLoginModule",
    "PLAIN": f"{_COMMON}.plain.PlainLoginModule",
    "OAUTHBEARER": f"{_COMMON}.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}


@dataclass(frozen=True)
class Security:
    """Asks `start_kafka` for a secured cluster.

    Attributes:
        users: name and password of users that can log in by SCRAM and PLAIN from the start.
            OAUTHBEARER and mutual TLS accept any name. No user has a permission yet.
    """

    users: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Security(users={sorted(self.users)})"


def jaas(mechanism: str, **arguments: str) -> str:
    """The `sasl.jaas.config` of a mechanism, for a Java client or a broker."""
    escaped = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in arguments.items()}
    words = [_LOGIN[mechanism], "required", *(f'{k}="{v}"' for k, v in escaped.items())]
    return " ".join(words) + ";"


def security_properties(security: Security, authority: Authority) -> dict[str, str]:
    """The properties of a secured cluster's nodes, beside their listeners.

    The plain listener stays, for the cluster itself and for the test's own clients: a client that
    connects to it is a super user.
    """
    sasl = f"listener.name.{SASL_LISTENER.lower()}"
    logins = {
        **{mechanism: jaas(mechanism) for mechanism in SCRAM},
        "PLAIN": jaas("PLAIN", **{f"user_{name}": word for name, word in security.users.items()}),
        # Unsigned tokens, which Kafka accepts by default.
        "OAUTHBEARER": jaas("OAUTHBEARER", unsecuredLoginStringClaim_sub="broker"),
    }
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"{sasl}.{name.lower()}.sasl.jaas.config": text for name, text in logins.items()},
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.identity("broker").both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        f"listener.name.{TLS_LISTENER.lower()}.ssl.client.auth": "required",
        # The common name of a certificate is the name of the user.
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM files.

    Attributes:
        chain: the certificate and the authority's.
        key: PKCS#8, not encrypted.
        both: the key and then the chain: what Java calls a PEM store.
    """

    chain: Path
    key: Path
    both: Path


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

    def identity(self, name: str) -> Identity:
        """The certificate of `name`, for a client and for a broker on this machine."""
        found = self._identity(name)
        return found if found.both.exists() else self.renew(name)

    def renew(self, name: str, not_after: datetime | None = None) -> Identity:
        """Issue a new certificate of `name`, at the paths of the former one.

        Args:
            not_after: when it expires, which may have been; None: no test lasts so long.
        """
        made = self._identity(name)
        leaf = self._authority.issue_cert("localhost", HOST, common_name=name, not_after=not_after)
        key = _to_pkcs8(leaf.private_key_pem.bytes())
        chain = leaf.cert_chain_pems[0].bytes() + self.ca.read_bytes()
        made.key.write_bytes(key)
        made.chain.write_bytes(chain)
        made.both.write_bytes(key + chain)
        return made

    def _identity(self, name: str) -> Identity:
        ends = ("-chain.pem", "-key.pem", ".pem")
        return Identity(*(self._directory / f"{name}{end}" for end in ends))


def _to_pkcs8(pem: bytes) -> bytes:
    """The only form of a PEM key that Java reads."""
    from cryptography.hazmat.primitives import serialization as form

    key = form.load_pem_private_key(pem, password=None)
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
