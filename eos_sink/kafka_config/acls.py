"""What a query has to be permitted, as Kafka's `kafka-acls` names it; docs/security.md lists it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from eos_sink.errors import ClusterError

_ANYWHERE = "--bootstrap-server HOST:PORT --command-config admin.properties"
_ANYBODY = "User:NAME"


class Resource(str, Enum):
    """What a permission is about, by the name of the option of `kafka-acls`."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value.replace("-", " ")


@dataclass(frozen=True)
class Acl:
    """One operation on one resource, or on all whose names start alike.

    Attributes:
        operation: "Read", "Write", "Describe", "Create", ... as `kafka-acls` spells it.
        resource: what kind it is.
        name: of the resource; "kafka-cluster" for the cluster.
        prefixed: it holds for every name that starts with `name`.
    """

    operation: str
    resource: Resource
    name: str
    prefixed: bool = False

    def __str__(self) -> str:
        if self.resource is Resource.CLUSTER:
            return f"{self.operation} on the cluster"
        if self.prefixed:
            return f"{self.operation} on every {self.resource} that starts with {self.name}"
        return f"{self.operation} on {self.resource} {self.name}"


def operation_name(upper: str) -> str:
    """As `kafka-acls` spells it: "DescribeConfigs" for DESCRIBE_CONFIGS."""
    return "".join(word.capitalize() for word in upper.split("_"))


@dataclass(frozen=True)
class Permissions:
    """The least that one query needs. Write and Read imply Describe (Kafka's AclEntry).

    Attributes:
        prefix: what the names of its transactional ids and its group start with.
        log: the decision log.
    """

    prefix: str
    log: str

    @property
    def transactions(self) -> Acl:
        """To write, end, describe and list transactions; Kafka lists what may be described only."""
        return Acl("Write", Resource.TRANSACTIONAL_ID, self.prefix, prefixed=True)

    @property
    def group(self) -> Acl:
        """To be the group's member, and for the offset in each transaction (KIP-447)."""
        return Acl("Read", Resource.GROUP, self.prefix, prefixed=True)

    @property
    def log_read(self) -> Acl:
        """Also of whoever adds an offset of it to a transaction (TxnOffsetCommit)."""
        return Acl("Read", Resource.TOPIC, self.log)

    @property
    def log_write(self) -> Acl:
        return Acl("Write", Resource.TOPIC, self.log)

    @property
    def log_create(self) -> Acl:
        """Only where the sink makes the log itself."""
        return Acl("Create", Resource.TOPIC, self.log)

    @staticmethod
    def witness(topic: str) -> Acl:
        """To read back what became of a transaction."""
        return Acl("Read", Resource.TOPIC, topic)

    @classmethod
    def topic(cls, name: str) -> tuple[Acl, ...]:
        """On a topic that rows go to."""
        return (Acl("Write", Resource.TOPIC, name), cls.witness(name))


def kafka_acls(
    acls: Iterable[Acl], connection: str = _ANYWHERE, principal: str = _ANYBODY
) -> list[str]:
    """The commands that grant these: one for each resource.

    Args:
        acls: what to grant.
        connection: options that lead `kafka-acls` to the brokers.
        principal: to whom, with its kind in front: "User:readings".
    """
    operations: dict[tuple[Resource, str, bool], list[str]] = {}
    for acl in acls:
        operations.setdefault((acl.resource, acl.name, acl.prefixed), []).append(acl.operation)
    return [
        " ".join(
            [
                f"kafka-acls {connection} --add --allow-principal {shlex.quote(principal)}",
                *(f"--operation {operation}" for operation in wanted),
                f"--{resource.value}",
                *([shlex.quote(name)] if resource is not Resource.CLUSTER else []),
                *(["--resource-pattern-type prefixed"] if prefixed else []),
            ]
        )
        for (resource, name, prefixed), wanted in operations.items()
    ]


def permission_error(what: str, missing: Iterable[Acl], *, of_query: bool = True) -> ClusterError:
    """The error of a step that lacks permissions.

    Args:
        what: the step that failed.
        missing: the permissions.
        of_query: False: of an operator's command, which leaves nothing behind to finish.
    """
    missing = list(dict.fromkeys(missing))
    who = "the query's principal" if of_query else "this principal"
    grant = "Grant it, then start the query again, which first finishes what is decided"
    return ClusterError(
        f"{what}: {who} lacks {', '.join(map(str, missing))}.",
        remedy="\n".join([f"{grant if of_query else 'Grant it'}:", *kafka_acls(missing)]),
        data={"missing": [str(acl) for acl in missing]},
    )
