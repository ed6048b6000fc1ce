"""The checks, what they find, and the commands that repair it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.acls import Acl, kafka_acls
from eos_sink.shell import quote

T = TypeVar("T")
F = TypeVar("F")


class Level(Enum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNSEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """One line of the output.

    Attributes:
        what: the fact, with the name of the thing.
        meaning: the consequence for the query and its data; empty if all is well.
        remedy: commands, or sentences where there is no command.
        missing: permissions whose grant repairs or shows it; the commands that grant them are
            added to the remedy.
    """

    level: Level
    what: str
    meaning: str = ""
    remedy: tuple[str, ...] = ()
    missing: tuple[Acl, ...] = ()

    @staticmethod
    def warning(what: str, meaning: str, *remedy: str) -> Finding:
        return Finding(Level.WARNING, what, meaning, remedy)

    @staticmethod
    def failure(what: str, meaning: str, *remedy: str) -> Finding:
        return Finding(Level.FAILURE, what, meaning, remedy)

    @staticmethod
    def unseen(what: str, why: Unseen) -> Finding:
        return Finding(Level.UNSEEN, f"{what}: {why.why}", missing=why.missing)


Problems = Iterator[Finding]
Verdict = Generator[Finding, None, str]
"""A check: it yields what is wrong, and returns what to say if nothing is (or nothing to say)."""
Checks = Mapping[str, Callable[[F], Verdict | Problems]]
"""The checks of some facts, by name; docs/commands.md has the condition for "ok" of each."""
Results = Mapping[str, Sequence[Finding]]


class UnseenError(Exception):
    """A check lacks a fact; the first argument is the finding that says which."""


def require(fact: T | Unseen, what: str) -> T:
    """Return a fact, or end the check with the finding "not seen"."""
    if isinstance(fact, Unseen):
        raise UnseenError(Finding.unseen(what, fact))
    return fact


def judge(*checks: Verdict | Problems) -> Problems:
    """Run checks, each up to the first fact that it requires and that could not be seen."""
    for check in checks:
        found = False
        try:
            while True:
                finding = next(check)
                found = True
                yield finding
        except StopIteration as end:
            if end.value and not found:
                yield Finding(Level.OK, end.value)
        except UnseenError as error:
            yield error.args[0]


def run_checks(
    checks: Checks[F], facts: F, grant: Callable[[Iterable[Acl]], list[str]]
) -> dict[str, list[Finding]]:
    """Run every check.

    Args:
        checks: the table.
        facts: what they look at.
        grant: makes the commands that grant missing permissions.
    """
    return {
        name: [
            replace(found, remedy=(*found.remedy, *grant(found.missing)))
            # Several parts of a check may lack the same fact.
            for found in dict.fromkeys(judge(check(facts)))
        ]
        for name, check in checks.items()
    }


def shorten(items: Iterable[object], shown: int = 5) -> str:
    """Join the first few items."""
    words = [str(item) for item in items]
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + more


@dataclass(frozen=True)
class Commands:
    """Makes command lines of Kafka's own tools, to be copied.

    Attributes:
        servers: bootstrap servers.
        secured: an administrator has to log in, with a file of the administrator's own.
        principal: the query, as Kafka names it.
    """

    servers: str
    secured: bool = False
    principal: str = "User:NAME"

    @property
    def connection(self) -> str:
        login = " --command-config admin.properties" if self.secured else ""
        return f"--bootstrap-server {quote(self.servers)}{login}"

    def grant(self, acls: Iterable[Acl]) -> list[str]:
        """One command for each resource."""
        return kafka_acls(acls, self.connection, self.principal)

    def set_topic(self, topic: str, name: str, value: object) -> str:
        return self._alter(f"topics --entity-name {quote(topic)}", name, value)

    def set_brokers(self, name: str, value: object, *, restart: bool) -> str:
        """Set all brokers at once, or say what to do for a setting that needs a restart."""
        if restart:
            file = "server.properties of each broker"
            return f"Set {name}={value} in {file}, and restart them in turn."
        return self._alter("brokers --entity-default", name, value)

    def _alter(self, entity: str, name: str, value: object) -> str:
        # kafka-configs splits a value at its commas unless it is in brackets.
        setting = quote(f"{name}=[{value}]" if "," in str(value) else f"{name}={value}")
        return (
            f"kafka-configs {self.connection} --alter --entity-type {entity} --add-config {setting}"
        )

    def create_topic(
        self, topic: str, partitions: int, copies: int, settings: Mapping[str, object]
    ) -> str:
        configs = "".join(
            f" --config {quote(f'{name}={value}')}" for name, value in settings.items()
        )
        size = f"--partitions {partitions} --replication-factor {copies}"
        return f"{self._topics('create', topic)} {size}{configs}"

    def add_partitions(self, topic: str, partitions: int) -> str:
        return f"{self._topics('alter', topic)} --partitions {partitions}"

    def describe_topic(self, topic: str) -> str:
        return self._topics("describe", topic)

    def _topics(self, action: str, topic: str) -> str:
        return f"kafka-topics {self.connection} --{action} --topic {quote(topic)}"
