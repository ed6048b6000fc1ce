"""A query of minispark on a secured cluster, permitted exactly what docs/connect.md lists."""

from __future__ import annotations

import shlex
import uuid
from pathlib import Path

from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.protocol.model import Plan
from eos_sink_lab.testing import KafkaCluster
from integration.query import Query
from integration.topics import unique
from tests.kafka_acls_command import parse_kafka_acls, run_kafka_acls
from tests.snippets import ROOT, snippets_of

PAGE = ROOT / "docs" / "connect.md"
ANNS_WORD = 'ann\'s "canary" \\'
"""Ann is known from the start of the cluster, as PLAIN wants it."""

_NAMED, _SOURCE = "readings", ("payments", "check-payments")


def documented(
    topic: str, log: str, page: Path = PAGE, source: tuple[str, str] | None = None
) -> list[Acl]:
    """What the page's commands grant, for another topic and another log.

    Args:
        source: the topic and the group of a source; None: there is no such group.
    """
    names = {(Resource.TOPIC, _NAMED): topic, (Resource.TOPIC, "__eos_sink_log"): log}
    names |= {(Resource.TOPIC, _SOURCE[0]): "", (Resource.GROUP, _SOURCE[1]): ""}
    if source is not None:
        names |= {(Resource.TOPIC, _SOURCE[0]): source[0], (Resource.GROUP, _SOURCE[1]): source[1]}
    return [
        Acl(
            acl.operation, acl.resource, names.get((acl.resource, acl.name), acl.name), acl.prefixed
        )
        for command in commands("kafka-acls", page)
        for acl in parse_kafka_acls(command)[1]
        if names.get((acl.resource, acl.name), acl.name)
    ]


def commands(tool: str, page: Path = PAGE) -> list[str]:
    return [
        command
        for snippet in snippets_of(page)
        for command in snippet.commands
        if shlex.split(command)[:1] == [tool]
    ]


def command_config(directory: Path, login: dict[str, str]) -> tuple[str, str]:
    """A command's option that names a file with the login."""
    file = directory / "client.properties"
    lines = [f"{name.removeprefix('kafka.')}={value}" for name, value in login.items()]
    file.write_text("\n".join(line.replace("\\", "\\\\").replace("\n", "\\n") for line in lines))
    return "--command-config", str(file)


class SecuredQuery(Query):
    """Its principal is its own, and may do nothing but what was granted.

    Attributes:
        user: the principal.
        needs: what the page grants it.
    """

    def __init__(self, cluster: KafkaCluster, directory: Path, **options: str) -> None:
        self.user = unique("user")
        self.access = cluster.access
        self.access.add_user(self.user, uuid.uuid4().hex)
        login = self.access.options(self.user)
        super().__init__(cluster, directory, **{"eos_step_timeout_ms": "40000", **login, **options})
        self.needs = documented(self.topic, self.options.log_topic)
        self.access.allow(self.user, *self.needs)

    def need(self, number: int) -> Acl:
        return self.needs[number]

    def revoke(self, acl: Acl) -> None:
        self.access.revoke(self.user, acl)

    def grant_as_told(self, text: str) -> None:
        """Carry out the commands that an error names."""
        told = [line for line in text.splitlines() if line.startswith("kafka-acls")]
        assert told, text
        for line in told:
            run_kafka_acls(line.replace("User:NAME", f"User:{self.user}"), self.access)

    def plan(self) -> Plan:
        """Start the query as far as its first plan."""
        planner = Planner(ConfluentKafka(self.options.cluster), self.options)
        try:
            return planner.plan()
        finally:
            planner.close()

    def refused(self) -> ClusterError:
        """Start the query, which is not permitted."""
        try:
            self.plan()
        except ClusterError as error:
            return error
        raise AssertionError("the query has a plan")
