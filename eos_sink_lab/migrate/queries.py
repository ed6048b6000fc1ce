"""Queries and their options as they were read, and the findings about them.

Options in a properties file or on a command line are read here, those of a program in
`python_queries`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from eos_sink.identity import SESSION_PREFIX
from eos_sink.kafka_config.properties_file import read_properties

KAFKA, EOS = "kafka", "kafka-eos"
"""The formats of Spark's sink and of this one."""


@dataclass(frozen=True)
class Place:
    """A line of a file. `file` is `-` for standard input; on the command line `line` is 0."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else "command line"


@dataclass(frozen=True)
class Given:
    """One option, or one argument of a call such as `trigger(...)`."""

    name: str | None  # None if it cannot be read, as in `.options(**load())`.
    value: str | None = field(repr=False)  # None if it cannot be read. May be a secret.
    place: Place
    unread: str = ""  # Why the name or the value cannot be read.

    @property
    def key(self) -> str:
        """Spark ignores the case of option names."""
        return (self.name or "").lower()


class Way(Enum):
    """The way in which a query writes; the values are part of the JSON output."""

    STREAM = "stream"
    BATCH = "batch"
    PIPELINE = "pipeline"  # A sink of a declarative pipeline: its flows have an identity.
    OPTIONS = "options"  # Options whose writer is not visible.
    DEFAULTS = "defaults"  # Settings of the session that apply where a query gives no option.

    @property
    def writes(self) -> bool:
        """It is a complete query, not only some of its options."""
        return self in (Way.STREAM, Way.BATCH, Way.PIPELINE)


@dataclass(frozen=True)
class Query:
    """One writer, or one set of options."""

    way: Way
    place: Place
    options: tuple[Given, ...] = ()  # The later of two with the same name applies.
    calls: tuple[Given, ...] = ()  # `format`, `outputMode`, `mode`, `trigger.NAME`, `queryName`.
    inside: str = ""  # The function passed to `foreachBatch` that contains it.

    def call(self, name: str) -> Given | None:
        """The last call with that name."""
        return next((given for given in reversed(self.calls) if given.name == name), None)


@dataclass(frozen=True)
class Source:
    """One input."""

    name: str  # The file's name, `-` for standard input, empty for the command line.
    queries: tuple[Query, ...] = ()  # Those that write to Kafka, or may.
    session: tuple[Given, ...] = ()  # Settings `spark....`.


class Verdict(Enum):
    """The treatment of one option; docs/migrate.md explains the values."""

    SAME = "same"
    CHANGE = "change"  # Of the format, which every query replaces.
    TRANSLATED = "translated"
    IGNORED = "ignored"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    UNREAD = "cannot be read here"
    MISSING = "missing"

    @property
    def fine(self) -> bool:
        """No option needs a change."""
        return self in (Verdict.SAME, Verdict.CHANGE, Verdict.TRANSLATED, Verdict.IGNORED)


@dataclass(frozen=True)
class Finding:
    """The verdict on one option or call."""

    name: str
    value: str  # Safe to print.
    place: Place
    verdict: Verdict
    note: str = ""  # The reason, and what to use instead.


def read_options_file(text: str, file: str) -> Source:
    """Read a properties file; spark-defaults.conf has the same syntax."""
    entries = read_properties(text)
    return sort_settings(file, [Given(e.name, e.value, Place(file, e.line)) for e in entries])


def read_pairs(pairs: Iterable[str]) -> Source:
    """Read NAME=VALUE pairs of a command line."""
    split = [pair.partition("=") for pair in pairs]
    return sort_settings("", [Given(name.strip(), value, Place("", 0)) for name, _, value in split])


def sort_settings(file: str, settings: Iterable[Given]) -> Source:
    """Separate options, defaults of options, and Spark's own settings by their names."""
    found: dict[Way, list[Given]] = {Way.OPTIONS: [], Way.DEFAULTS: []}
    session: list[Given] = []
    for given in settings:
        name = given.name or ""
        if name.startswith(SESSION_PREFIX):
            found[Way.DEFAULTS].append(replace(given, name=name.removeprefix(SESSION_PREFIX)))
        elif name.startswith("spark."):
            session.append(given)
        else:
            found[Way.OPTIONS].append(given)
    queries = tuple(Query(way, some[0].place, tuple(some)) for way, some in found.items() if some)
    return Source(file, queries, tuple(session))
