"""Commands that repair something, as a person may copy them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eos_sink.kafka_config.acls import Acl, kafka_acls


@dataclass(frozen=True)
class Commands:
    """Kafka's own tools for one cluster.

    Attributes:
        servers: its bootstrap servers.
        secured: an administrator has to log in, by a file of the person's own.
        principal: whom the query is, as Kafka names it.
    """

    servers: str
    secured: bool = False
    principal: str = "User:NAME"

    @property
    def connection(self) -> str:
        login = " --command-config admin.properties" if self.secured else ""
        return f"--bootstrap-server {shlex.quote(self.servers)}{login}"

    def grants(self, acls: Iterable[Acl]) -> list[str]:
        """One for each resource."""
        return kafka_acls(acls, self.connection, self.principal)

    def set_topic(self, topic: str, settings: Mapping[str, object]) -> str:
        name = f"--entity-type topics --entity-name {shlex.quote(topic)}"
        return f"kafka-configs {self.connection} --alter {name} --add-config {_joined(settings)}"

    def set_brokers(self, settings: Mapping[str, object], *, fixed: bool) -> str:
        """All brokers at once, or what has to be done where a setting takes a restart."""
        if fixed:
            lines = ", ".join(f"{name}={value}" for name, value in settings.items())
            return f"Set {lines} in server.properties of each broker, and restart them in turn."
        where = "--entity-type brokers --entity-default"
        return f"kafka-configs {self.connection} --alter {where} --add-config {_joined(settings)}"

    def make_topic(
        self, topic: str, partitions: int, copies: int, settings: Mapping[str, object]
    ) -> str:
        words = [
            f"kafka-topics {self.connection} --create --topic {shlex.quote(topic)}",
            f"--partitions {partitions} --replication-factor {copies}",
            *(f"--config {name}={value}" for name, value in settings.items()),
        ]
        return " ".join(words)

    def widen_topic(self, topic: str, partitions: int) -> str:
        name = shlex.quote(topic)
        return f"kafka-topics {self.connection} --alter --topic {name} --partitions {partitions}"

    def show_topic(self, topic: str) -> str:
        return f"kafka-topics {self.connection} --describe --topic {shlex.quote(topic)}"


def _joined(settings: Mapping[str, object]) -> str:
    """A value with a comma is a list to `kafka-configs` unless it is in brackets."""
    pairs = (f"{n}=[{v}]" if "," in str(v) else f"{n}={v}" for n, v in settings.items())
    return shlex.quote(",".join(pairs))
