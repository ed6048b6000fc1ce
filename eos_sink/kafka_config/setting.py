"""What becomes of a `kafka.*` setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Fate(Enum):
    """What the sink does with a setting."""

    SAME = "same"
    """Handed on under its name; at most the spelling of its value changes."""
    TRANSLATED = "translated"
    """Handed on under another name, in another unit, or read by the sink itself."""
    IGNORED = "ignored"
    """Accepted with a warning: it changes neither the data nor who may read it."""
    OWNED = "owned"
    """The sink's own: accepted only with the value that the sink uses anyway."""
    REFUSED = "refused"
    """It would change the data or the security, and the sink cannot honour it."""


@dataclass(frozen=True)
class Setting:
    """One row of the table: a setting of the Java producer.

    Attributes:
        name: the Java name, without `kafka.` in front.
        fate: what becomes of it, whatever its value.
        note: the reason, or what to use in its place.
        librdkafka: the name there, where it is another.
        accepts: values, in lower case, that say what happens anyway: no error, no warning.
        instead: values that librdkafka spells otherwise.
        unit: how many of Java's units make one of librdkafka's.
        takes: pattern of the texts that can be honoured; the note says why others cannot.
        clamped: a number beyond librdkafka's range becomes the nearest one within, with a warning.
    """

    name: str
    fate: Fate
    note: str = ""
    librdkafka: str | None = None
    accepts: frozenset[str] = frozenset()
    instead: Mapping[str, str] = field(default_factory=dict)
    takes: str = ""
    unit: int = 1
    clamped: bool = False


@dataclass(frozen=True)
class Judgement:
    """What becomes of one setting with its value.

    Attributes:
        name: as the user wrote it, in lower case.
        fate: REFUSED is an error.
        note: why, and what to use in its place; never holds a secret value.
        settings: what librdkafka gets for it; may hold secrets, so left out of repr. Empty where
            several settings have to be seen together (stores, JAAS): `translate` does that.
        warning: whether the user is told when the query starts.
    """

    name: str
    fate: Fate
    note: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    warning: bool = False
