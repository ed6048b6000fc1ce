"""What a query gives, as it was read, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands.

    Attributes:
        file: the file's name, `-` for standard input, empty for the command line.
        line: from 1; 0 for the command line.
        column: where the name of a call ends, in bytes; 0 for what is no call by itself.
    """

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else "command line"


@dataclass(frozen=True)
class Given:
    """One option, or one argument of a call such as `trigger(...)`.

    Attributes:
        name: as it is written; None where it cannot be read, as in `.options(**loaded())`.
        value: as Spark would hand it over; None where it cannot be read. May be a secret.
        place: where.
        unread: why name or value cannot be read; empty where both are.
    """

    name: str | None
    value: str | None = field(repr=False)
    place: Place
    unread: str = ""


class Way(Enum):
    """How a query writes."""

    STREAM = "stream"
    BATCH = "batch"
    PIPELINE = "pipeline"
    """A sink of a declarative pipeline, whose flows bring an identity with them."""
    OPTIONS = "options"
    """Options alone: a properties file, pairs, or calls whose writer is somewhere else."""
    DEFAULTS = "defaults"
    """Settings of the session that stand for options which a query does not give."""

    @property
    def writes(self) -> bool:
        """It is a query, and not only something that one is made of."""
        return self in (Way.STREAM, Way.BATCH, Way.PIPELINE)


@dataclass(frozen=True)
class Query:
    """One chain of calls that writes, or one set of options.

    Attributes:
        way: how it writes.
        place: where it begins.
        options: in the order in which they are given; of two with one name the later holds.
        calls: `format`, `outputMode`, `mode`, `trigger.NAME`, `queryName` in the same way; the
            format also where it is an argument.
        inside: the function of `foreachBatch` that it is in, or empty.
    """

    way: Way
    place: Place
    options: tuple[Given, ...] = ()
    calls: tuple[Given, ...] = ()
    inside: str = ""

    def call(self, name: str) -> Given | None:
        """The last call of that name."""
        return next((given for given in reversed(self.calls) if given.name == name), None)


@dataclass(frozen=True)
class Source:
    """All that one input holds.

    Attributes:
        name: the file's name, `-`, or empty for the command line.
        queries: those that write to Kafka, or may.
        session: settings of the Spark session, `spark....`.
    """

    name: str
    queries: tuple[Query, ...] = ()
    session: tuple[Given, ...] = ()


class Verdict(Enum):
    """What becomes of one option."""

    SAME = "same"
    TRANSLATED = "translated"
    IGNORED = "ignored"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    UNREAD = "cannot be read here"
    MISSING = "missing"

    @property
    def fine(self) -> bool:
        """Nobody has to do anything."""
        return self in (Verdict.SAME, Verdict.TRANSLATED, Verdict.IGNORED)


@dataclass(frozen=True)
class Finding:
    """What is said of one option or call.

    Attributes:
        name: as it is written.
        value: fit to be shown; empty where there is none or it may be a secret of an unknown kind.
        place: where.
        verdict: what becomes of it.
        note: why, and what to use in its place.
        superfluous: it can be left out, and nothing changes but that the sink accepts the rest.
    """

    name: str
    value: str
    place: Place
    verdict: Verdict
    note: str = ""
    superfluous: bool = False
