"""The permissions that a query needs, in the terms of `kafka-acls`; docs/connect.md lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from eos_sink.errors import ClusterError
from eos_sink.shell import quote

_CONNECTION = "--bootstrap-server HOST:PORT --command-config admin.properties"


class Resource(str, Enum):
    """The kind of a resource; the value is the option of `kafka-acls`."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value.replace("-", " ")


@dataclass(frozen=True)
class Acl:
    """One operation on one resource, or on all resources with a prefix.

    Attributes:
        operation: "Read", "Write", "Describe", "Create", ... as `kafka-acls` spells it.
        resource: its kind.
        name: of the resource; "kafka-cluster" for the cluster.
        prefixed: `name` is a prefix.
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
    """The spelling of `kafka-acls`: "DescribeConfigs" for DESCRIBE_CONFIGS."""
    return "".join(word.capitalize() for word in upper.split("_"))


@dataclass(frozen=True)
class Permissions:
    """The least permissions of a query. Write and Read imply Describe (Kafka's AclEntry).

    Attributes:
        prefix: of its transactional ids and its group.
        log: the topic of the decision log.
        of_query: False: an operator's command has them, which needs less while it only looks.
    """

    prefix: str
    log: str
    of_query: bool = True

    @property
    def transactions(self) -> Acl:
        """To write, end, describe and list transactions; Kafka lists only those that may be
        described."""
        return Acl("Write", Resource.TRANSACTIONAL_ID, self.prefix, prefixed=True)

    @property
    def look(self) -> Acl:
        """To describe and list transactions, and nothing else."""
        name = self.prefix or "*"
        return Acl("Describe", Resource.TRANSACTIONAL_ID, name, prefixed=bool(self.prefix))

    @property
    def group(self) -> Acl:
        """To be the group's member and to add its offset to each transaction (KIP-447)."""
        return Acl("Read", Resource.GROUP, self.prefix, prefixed=True)

    @property
    def log_read(self) -> Acl:
        """Also needed to add its offset to a transaction (TxnOffsetCommit)."""
        return Acl("Read", Resource.TOPIC, self.log)

    @property
    def log_write(self) -> Acl:
        return Acl("Write", Resource.TOPIC, self.log)

    @property
    def log_create(self) -> Acl:
        """Only if the sink creates the log itself."""
        return Acl("Create", Resource.TOPIC, self.log)

    @staticmethod
    def witness(topic: str) -> Acl:
        """To read back the outcome of a transaction."""
        return Acl("Read", Resource.TOPIC, topic)

    @staticmethod
    def source(group: str, topics: Iterable[str]) -> tuple[Acl, ...]:
        """To add a source's offsets of the group to a transaction (TxnOffsetCommit)."""
        return (
            Acl("Read", Resource.GROUP, group),
            *(Acl("Read", Resource.TOPIC, topic) for topic in topics),
        )

    @classmethod
    def topic(cls, name: str, *, settings: bool = False) -> tuple[Acl, ...]:
        """For a topic that rows go to.

        Args:
            settings: the query has a dead letter topic, so it has to know which rows this one
                takes.
        """
        written = Acl("Write", Resource.TOPIC, name), cls.witness(name)
        return (*written, Acl("DescribeConfigs", Resource.TOPIC, name)) if settings else written


def kafka_acls(
    acls: Iterable[Acl], connection: str = _CONNECTION, principal: str = "User:NAME"
) -> list[str]:
    """The commands that grant permissions, one for each resource.

    Args:
        acls: the permissions.
        connection: the options with which `kafka-acls` connects.
        principal: with its kind in front: "User:readings".
    """
    operations: dict[tuple[Resource, str, bool], list[str]] = {}
    for acl in acls:
        operations.setdefault((acl.resource, acl.name, acl.prefixed), []).append(acl.operation)
    return [
        " ".join(
            [
                f"kafka-acls {connection} --add --allow-principal {quote(principal)}",
                *(f"--operation {operation}" for operation in wanted),
                f"--{resource.value}",
                *([quote(name)] if resource is not Resource.CLUSTER else []),
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
