"""Users and permissions of a secured test cluster (`KafkaCluster.access`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, Resource, operation_name
from eos_sink_lab.testing.cluster_admin import admin_client
from eos_sink_lab.testing.cluster_errors import TestClusterError
from eos_sink_lab.testing.security import (
    MECHANISMS,
    SASL_LISTENER,
    SCRAM,
    TLS_LISTENER,
    Authority,
    jaas,
)
from eos_sink_lab.testing.waiting import wait_until

_USUALLY_S = 30.0
_ITERATIONS = 4096


class Access:
    """Users and permissions of a secured cluster, and how its users log in.

    Each change returns when Kafka knows it. It raises TestClusterError if Kafka refuses, and
    NotReadyError if Kafka does not know it in time.

    Args:
        addresses: of the brokers' plain listeners, which need no permission.
        secured_servers: `bootstrap.servers` of each secured listener.
        authority: signs the certificates of brokers and clients.
        users: names and passwords.

    Attributes:
        authority: makes certificates, for mutual TLS.
        ca: the authority's certificate, PEM.
    """

    def __init__(
        self,
        addresses: str,
        secured_servers: Mapping[str, str],
        authority: Authority,
        users: Mapping[str, str],
    ) -> None:
        self._addresses = addresses
        self._servers = dict(secured_servers)
        self._passwords: dict[str, str] = {}
        self.authority = authority
        self.ca = authority.ca
        for name, password in users.items():
            self.add_user(name, password)

    def add_user(self, name: str, password: str) -> None:
        """Let a user log in by SCRAM. PLAIN knows only the users of the start."""
        self._passwords[name] = password
        with admin_client(self._addresses) as admin:
            for kind in SCRAM:  # Kafka refuses two changes of a user in one request
                mechanism = ScramMechanism[kind.replace("-", "_")]
                change = UserScramCredentialUpsertion(name, mechanism, password, _ITERATIONS)
                refusal = admin.alter_user_scram_credentials([change])[name]
                if refusal:
                    raise TestClusterError(f"Kafka refused the user {name}: {refusal}")

        def known() -> bool:
            with admin_client(self._addresses) as admin:
                found = admin.describe_user_scram_credentials([name])[name]
            return len(found["credential_infos"]) == len(SCRAM)

        _wait_until(known, f"Kafka knows user {name}")

    def allow(self, user: str, *acls: Acl) -> None:
        """Grant permissions."""
        with admin_client(self._addresses) as admin:
            failed = admin.create_acls([_to_kafka(user, acl) for acl in acls])["failed"]
        if failed:
            raise TestClusterError(f"Kafka refused the permissions of {user}: {failed}")
        _wait_until(
            lambda: set(acls) <= self.permissions(user), f"{user} has {list(map(str, acls))}"
        )

    def revoke(self, user: str, *acls: Acl) -> None:
        """Revoke permissions."""
        with admin_client(self._addresses) as admin:
            admin.delete_acls([_to_kafka(user, acl) for acl in acls])
        _wait_until(
            lambda: not set(acls) & self.permissions(user), f"{user} lost {list(map(str, acls))}"
        )

    def permissions(self, user: str) -> frozenset[Acl]:
        """The permissions of a user."""
        anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        wanted = ACLFilter(
            f"User:{user}", None, ACLOperation.ANY, ACLPermissionType.ALLOW, anything
        )
        with admin_client(self._addresses) as admin:
            found, _ = admin.describe_acls(wanted)
        return frozenset(
            Acl(
                operation_name(acl.operation.name),
                Resource(acl.resource_pattern.resource_type.name.lower().replace("_", "-")),
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type is ACLResourcePatternType.PREFIXED,
            )
            for acl in found
        )

    def options(self, user: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Options of the sink, or of Spark's own, with which it logs in as this user.

        Args:
            user: for SCRAM and PLAIN a known one; else any name.
            mechanism: one of `MECHANISMS` over TLS, or "TLS" for a certificate of this user.
        """
        trust = {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(self.ca),
        }
        if mechanism == "TLS":
            return {
                "kafka.bootstrap.servers": self._servers[TLS_LISTENER],
                "kafka.security.protocol": "SSL",
                **trust,
                "kafka.ssl.keystore.type": "PEM",
                "kafka.ssl.keystore.location": str(self.authority.identity(user).both),
            }
        if mechanism not in MECHANISMS:
            raise ValueError(f"No mechanism is called {mechanism!r}; known: {MECHANISMS}, TLS.")
        if mechanism == "OAUTHBEARER":
            login = jaas(mechanism, unsecuredLoginStringClaim_sub=user)
        else:
            login = jaas(mechanism, username=user, password=self._passwords[user])
        return {
            "kafka.bootstrap.servers": self._servers[SASL_LISTENER],
            "kafka.security.protocol": "SASL_SSL",
            **trust,
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": login,
        }


def _to_kafka(user: str, acl: Acl) -> ACL:
    operation = "".join(f"_{c}" if c.isupper() else c for c in acl.operation).strip("_")
    resource = ResourcePattern(
        ResourceType[acl.resource.value.replace("-", "_").upper()],
        acl.name,
        ACLResourcePatternType.PREFIXED if acl.prefixed else ACLResourcePatternType.LITERAL,
    )
    allow = ACLPermissionType.ALLOW
    return ACL(f"User:{user}", "*", ACLOperation[operation.upper()], allow, resource)


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    """Ask again after a question without an answer: a busy broker may take longer than one may
    wait for it."""

    def met() -> bool:
        with suppress(TestClusterError):
            return condition()
        return False

    wait_until(met, Deadline(_USUALLY_S), what)
