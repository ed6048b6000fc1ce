"""Users and permissions of a secured test cluster (`KafkaCluster.access`)."""

from __future__ import annotations

import argparse
import shlex
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
from eos_sink.testing.certificates import STORE_PASSWORD, Authority
from eos_sink.testing.errors import TestClusterError
from eos_sink.testing.security import MECHANISMS, SASL_LISTENER, SCRAM, TLS_LISTENER, jaas
from eos_sink.testing.waiting import wait_until

_USUALLY_S = 30.0
_ITERATIONS = 4096
_RESOURCES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER: ResourceType.BROKER,
}
_CLUSTER_NAME = "kafka-cluster"


def parse_kafka_acls(command: str) -> tuple[str, tuple[Acl, ...]]:
    """The user and the permissions of a `kafka-acls ... --add` command.

    Raises:
        TestClusterError: it is not such a command.
    """
    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    for name in ("--bootstrap-server", "--command-config"):
        parser.add_argument(name)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--allow-principal")
    parser.add_argument("--operation", action="append", default=[])
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--cluster", action="append_const", const=_CLUSTER_NAME)
    named = [kind for kind in Resource if kind is not Resource.CLUSTER]
    for kind in named:
        parser.add_argument(f"--{kind.value}", action="append")
    words = shlex.split(command)
    try:
        given, unknown = parser.parse_known_args(words[1:])
    except argparse.ArgumentError as error:
        raise TestClusterError(f"{command!r} is not understood: {error}") from error
    if unknown or words[0] != "kafka-acls" or not (given.add and given.allow_principal):
        raise TestClusterError(f"{command!r} is not understood {unknown or ''}")
    prefixed = given.resource_pattern_type == "prefixed"
    acls = tuple(
        Acl(operation, kind, name, prefixed)
        for kind in Resource
        for name in getattr(given, kind.value.replace("-", "_")) or ()
        for operation in given.operation
    )
    return given.allow_principal.removeprefix("User:"), acls


class Access:
    """Who may do what on a secured cluster, and how to log in there.

    Args:
        addresses: of brokers, for whoever needs no permission.
        doors: `bootstrap.servers` of each secured listener.
        authority: whom brokers and clients trust.
        users: name and password of those that the cluster knows.

    Attributes:
        authority: makes certificates, for mutual TLS.
        ca: the authority's certificate, PEM.
    """

    def __init__(
        self,
        addresses: str,
        doors: Mapping[str, str],
        authority: Authority,
        users: Mapping[str, str],
    ) -> None:
        self._admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0})
        self._doors = dict(doors)
        self._passwords: dict[str, str] = {}
        self.authority = authority
        self.ca = authority.ca
        for name, password in users.items():
            self.add_user(name, password)

    def add_user(self, name: str, password: str) -> None:
        """Let a user log in by SCRAM from now on. PLAIN knows those of the start only.

        Raises:
            TestClusterError: Kafka refused.
            NotReadyError: Kafka did not know it in time.
        """
        self._passwords[name] = password
        for kind in SCRAM:  # one a request: librdkafka takes two of one user for a mistake
            mechanism = getattr(ScramMechanism, kind.replace("-", "_"))
            credential = ScramCredentialInfo(mechanism, _ITERATIONS)
            change = UserScramCredentialUpsertion(name, credential, password.encode())
            self._done(self._admin.alter_user_scram_credentials([change]).values(), f"user {name}")

        def known() -> bool:
            try:
                answers: Any = self._admin.describe_user_scram_credentials([name])
                found = answers[name].result(_USUALLY_S)
            except KafkaException:
                return False
            return len(found.scram_credential_infos) == len(SCRAM)

        wait_until(known, Deadline(_USUALLY_S), f"Kafka knows user {name}")

    def allow(self, user: str, *acls: Acl) -> None:
        """Give permissions; returns when they hold.

        Raises:
            TestClusterError: Kafka refused.
            NotReadyError: not in time.
        """
        bindings = [self._binding(user, acl) for acl in acls]
        self._done(self._admin.create_acls(bindings).values(), f"permissions of {user}")
        self._wait(user, lambda known: set(acls) <= known, f"{user} has {list(map(str, acls))}")

    def revoke(self, user: str, *acls: Acl) -> None:
        """Take permissions away; returns when they are gone. Raises: as `allow`."""
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
        self._done(self._admin.delete_acls(filters).values(), f"permissions of {user}")
        self._wait(user, lambda known: not set(acls) & known, f"{user} lost {list(map(str, acls))}")

    def run(self, command: str) -> None:
        """Give what a `kafka-acls ... --add` command gives. Raises: as `allow`."""
        user, acls = parse_kafka_acls(command)
        self.allow(user, *acls)

    def permissions(self, user: str) -> frozenset[Acl]:
        """What a user may do."""
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
        """Options of the sink, or of Spark's own, by which it logs in as this user.

        Args:
            user: for SCRAM and PLAIN one that is known; else any name.
            mechanism: one of `MECHANISMS` over TLS, or "TLS": a certificate of the user's own.
        """
        trust = {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(self.ca),
        }
        if mechanism == "TLS":
            return {
                "kafka.bootstrap.servers": self._doors[TLS_LISTENER],
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
            "kafka.bootstrap.servers": self._doors[SASL_LISTENER],
            "kafka.security.protocol": "SASL_SSL",
            **trust,
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": login,
        }

    def pkcs12_options(self, user: str) -> dict[str, str]:
        """As `options(user, "TLS")` with PKCS#12 stores."""
        return {
            "kafka.bootstrap.servers": self._doors[TLS_LISTENER],
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PKCS12",
            "kafka.ssl.truststore.location": str(self.authority.truststore),
            "kafka.ssl.truststore.password": STORE_PASSWORD,
            "kafka.ssl.keystore.type": "PKCS12",
            "kafka.ssl.keystore.location": str(self.authority.identity(user).pkcs12),
            "kafka.ssl.keystore.password": STORE_PASSWORD,
            "kafka.ssl.key.password": STORE_PASSWORD,
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
    def _done(answers: Iterable[Any], what: str) -> None:
        for answer in answers:
            try:
                answer.result(_USUALLY_S)
            except KafkaException as error:
                raise TestClusterError(f"Kafka did not take the {what}: {error}") from error
