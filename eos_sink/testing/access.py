"""Users and permissions of a secured test cluster (`KafkaCluster.access`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka_config.acls import Acl, Resource, operation_name
from eos_sink.testing.cluster_errors import TestClusterError
from eos_sink.testing.security import (
    MECHANISMS,
    SASL_LISTENER,
    SCRAM,
    TLS_LISTENER,
    Authority,
    jaas,
)
from eos_sink.testing.waiting import wait_until

_USUALLY_S = 30.0
_ITERATIONS = 4096
_RESOURCES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER: ResourceType.BROKER,
}


class Access:
    """Users and permissions of a secured cluster, and how its users log in.

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
        self._admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0})
        self._servers = dict(secured_servers)
        self._passwords: dict[str, str] = {}
        self.authority = authority
        self.ca = authority.ca
        for name, password in users.items():
            self.add_user(name, password)

    def add_user(self, name: str, password: str) -> None:
        """Let a user log in by SCRAM. PLAIN knows only the users of the start.

        Raises:
            TestClusterError: Kafka refused.
            NotReadyError: Kafka did not know the user in time.
        """
        self._passwords[name] = password
        for kind in SCRAM:  # librdkafka refuses two of one user in a request
            mechanism = getattr(ScramMechanism, kind.replace("-", "_"))
            credential = ScramCredentialInfo(mechanism, _ITERATIONS)
            change = UserScramCredentialUpsertion(name, credential, password.encode())
            self._wait_done(
                self._admin.alter_user_scram_credentials([change]).values(), f"user {name}"
            )

        def known() -> bool:
            try:
                answers: Any = self._admin.describe_user_scram_credentials([name])
                found = answers[name].result(_USUALLY_S)
            except KafkaException:
                return False
            return len(found.scram_credential_infos) == len(SCRAM)

        wait_until(known, Deadline(_USUALLY_S), f"Kafka knows user {name}")

    def allow(self, user: str, *acls: Acl) -> None:
        """Grant permissions; return when they are in effect.

        Raises:
            TestClusterError: Kafka refused.
            NotReadyError: not in time.
        """
        bindings = [self._binding(user, acl) for acl in acls]
        self._wait_done(self._admin.create_acls(bindings).values(), f"permissions of {user}")
        self._wait(user, lambda known: set(acls) <= known, f"{user} has {list(map(str, acls))}")

    def revoke(self, user: str, *acls: Acl) -> None:
        """Revoke permissions; return when they are gone. Raises: as `allow`."""
        filters = [
            AclBindingFilter(
                binding.restype,
                binding.name,
                binding.resource_pattern_type,
                binding.principal,
                binding.host,
                binding.operation,
                binding.permission_type,
            )
            for binding in (self._binding(user, acl) for acl in acls)
        ]
        self._wait_done(self._admin.delete_acls(filters).values(), f"permissions of {user}")
        self._wait(user, lambda known: not set(acls) & known, f"{user} lost {list(map(str, acls))}")

    def permissions(self, user: str) -> frozenset[Acl]:
        """The permissions of a user."""
        anything: Any = None
        everything = AclBindingFilter(
            ResourceType.ANY,
            anything,
            ResourcePatternType.ANY,
            f"User:{user}",
            anything,
            AclOperation.ANY,
            AclPermissionType.ALLOW,
        )
        found = self._admin.describe_acls(everything).result(_USUALLY_S)
        kinds = {known: kind for kind, known in _RESOURCES.items()}
        return frozenset(
            Acl(
                operation_name(binding.operation.name),
                kinds[binding.restype],
                binding.name,
                binding.resource_pattern_type is ResourcePatternType.PREFIXED,
            )
            for binding in found
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

    def _wait(self, user: str, condition: Callable[[frozenset[Acl]], bool], what: str) -> None:
        wait_until(lambda: condition(self.permissions(user)), Deadline(_USUALLY_S), what)

    @staticmethod
    def _binding(user: str, acl: Acl) -> AclBinding:
        operation = "".join(f"_{c}" if c.isupper() else c for c in acl.operation).strip("_")
        return AclBinding(
            _RESOURCES[acl.resource],
            acl.name,
            ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.ALLOW,
        )

    @staticmethod
    def _wait_done(answers: Iterable[Any], what: str) -> None:
        for answer in answers:
            try:
                answer.result(_USUALLY_S)
            except KafkaException as error:
                raise TestClusterError(f"Kafka refused the {what}: {error}") from error
