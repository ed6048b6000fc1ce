"""How a secured test cluster is set up: who may log in, and what its nodes are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.testing.certificates import Authority

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
}


@dataclass(frozen=True)
class Security:
    """Asks `start_kafka` for a secured cluster.

    Attributes:
        users: name and password of those who can log in by SCRAM and PLAIN from the start.
            OAUTHBEARER and mutual TLS take any name. Nobody has a permission yet.
    """

    users: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Security(users={sorted(self.users)})"


def jaas(mechanism: str, **arguments: str) -> str:
    """The `sasl.jaas.config` of a mechanism, as a Java client or a broker is given it."""
    escaped = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in arguments.items()}
    words = [_LOGIN[mechanism], "required", *(f'{k}="{v}"' for k, v in escaped.items())]
    return " ".join(words) + ";"


def security_properties(security: Security, authority: Authority) -> dict[str, str]:
    """What every node of a secured cluster is told beside its listeners.

    The brokers' own plain listener stays, for the cluster itself and for the test's own hands:
    who comes through it is a super user.
    """
    sasl = f"listener.name.{SASL_LISTENER.lower()}"
    logins = {
        **{mechanism: jaas(mechanism) for mechanism in SCRAM},
        "PLAIN": jaas("PLAIN", **{f"user_{name}": word for name, word in security.users.items()}),
        # Tokens that nobody has signed, which Kafka accepts where nothing else is set.
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
        # The name of a certificate, as that of a user.
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }
