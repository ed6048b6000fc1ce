"""The topics that a Kafka source of Spark reads, by its options."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

_NAMES = {"subscribe": "subscribe", "subscribepattern": "subscribePattern", "assign": "assign"}
_ESCAPED = re.compile(r"\\.", re.DOTALL)
# A class within a class, or an intersection: Python reads them as something else.
_JAVA_CLASS = re.compile(r"\[\^?\]?[^\]]*?(\[|&&)")


@dataclass(frozen=True)
class SourceTopics:
    """The topics that a source selects.

    Attributes:
        names: of these topics; None: those that match the pattern.
        pattern: a regular expression that is found anywhere in a topic's name, as Spark's Kafka
            source has it since 3.1.
    """

    names: frozenset[str] | None
    pattern: re.Pattern[str] | None = None

    def selects(self, topic: str) -> bool:
        if self.names is not None:
            return topic in self.names
        return self.pattern is not None and self.pattern.search(topic) is not None


def parse_source_topics(options: Mapping[str, str]) -> SourceTopics | None:
    """Parse the options `subscribe`, `subscribePattern` and `assign` as Spark's Kafka source does.

    Args:
        options: with names in lower case.

    Returns:
        None if none of them is given.

    Raises:
        ConfigurationError: more than one is given, or one is malformed.
    """
    given = [name for name in _NAMES if name in options]
    if not given:
        return None
    if len(given) > 1:
        raise _wrong(f"Options {' and '.join(_NAMES[name] for name in given)} are set.", "Set one.")
    value = options[given[0]].strip()
    if given[0] == "subscribepattern":
        return SourceTopics(None, _compile(value))
    names = _assigned(value) if given[0] == "assign" else _subscribed(value)
    if not names:
        raise _wrong(f"Option {_NAMES[given[0]]} is {value!r}, which names no topic.", "Name one.")
    return SourceTopics(names)


def _subscribed(value: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in value.split(","))))


def _assigned(value: str) -> frozenset[str]:
    try:
        partitions = json.loads(value)
    except ValueError:
        partitions = None
    if not isinstance(partitions, dict):
        raise _wrong(
            f"Option assign is {value!r}, which is no JSON object.",
            'Write it like \'{"payments": [0, 1], "audit": [0]}\'.',
        )
    return frozenset(partitions)


def _compile(value: str) -> re.Pattern[str]:
    """Compile a regular expression of Java, which Python takes in the same sense or not at all.
    Where Python only warns, it reads it differently, or will one day."""
    try:
        if not value:
            raise ValueError("it is empty")
        if _JAVA_CLASS.search(_ESCAPED.sub("_", value)):
            raise ValueError("a character class contains another one, or '&&'")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(value, re.ASCII)
    except (re.error, ValueError, Warning) as error:
        raise _wrong(
            f"Option subscribePattern is {value!r}, which Python cannot read as Java does: "
            f"{error}.",
            "Write it in syntax that both have, or name the topics with subscribe.",
        ) from None


def _wrong(what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(what, remedy=f"{remedy} Nothing was written.")
