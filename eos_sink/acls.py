"""A permission as Kafka's `kafka-acls` names it: in messages, in the documentation, in tests."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum


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

    @property
    def arguments(self) -> str:
        """The arguments of `kafka-acls` that name it."""
        words = ["--operation", self.operation, f"--{self.resource.value}"]
        if self.resource is not Resource.CLUSTER:
            words.append(shlex.quote(self.name))
        if self.prefixed:
            words += ["--resource-pattern-type", "prefixed"]
        return " ".join(words)
