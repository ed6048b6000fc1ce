"""The topics that a Kafka source of Spark reads, by its options."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

_NAMES = {"subscribe": "subscribe", "subscribepattern": "subscribePattern", "assign": "assign"}
# A pattern of Spark's Kafka source leaves them out, as Kafka's AdminClient lists topics.
_INTERNAL = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})
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
        places: the partitions of option `assign`; None: all of each topic.
    """

    names: frozenset[str] | None
    pattern: re.Pattern[str] | None = None
    places: frozenset[tuple[str, int]] | None = None

    def selects(self, topic: str) -> bool:
        if self.names is not None:
            return topic in self.names
        is_found = self.pattern is not None and self.pattern.search(topic) is not None
        return is_found and topic not in _INTERNAL

    def reads(self, place: tuple[str, int]) -> bool:
        """True if a source that selects the topic reads this partition of it."""
        return self.places is None or place in self.places


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
    assigned = _assigned(value) if given[0] == "assign" else None
    names = _subscribed(value) if assigned is None else frozenset(assigned)
    if not names:
        raise _wrong(f"Option {_NAMES[given[0]]} is {value!r}, which names no topic.", "Name one.")
    if assigned is None:
        return SourceTopics(names)
    places = ((topic, number) for topic, numbers in assigned.items() for number in numbers)
    return SourceTopics(names, places=frozenset(places))


def _subscribed(value: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in value.split(","))))


def _assigned(value: str) -> dict[str, list[int]]:
    try:
        partitions = json.loads(value)
    except ValueError:
        partitions = None
    if not isinstance(partitions, dict) or not all(map(_are_numbers, partitions.values())):
        raise _wrong(
            f"Option assign is {value!r}, which is no JSON object of lists of partitions.",
            'Write it like \'{"payments": [0, 1], "audit": [0]}\'.',
        )
    return partitions


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


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
