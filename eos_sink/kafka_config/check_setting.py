"""One setting with its value: is it used, translated, ignored or refused?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.kafka_config.java_settings import (
    CONSUMER_ONLY,
    LIBRDKAFKA_ONLY,
    SETTINGS,
    Handling,
    Setting,
)
from eos_sink.kafka_config.librdkafka_settings import ALIASES, PROPERTIES, check_value, get_range
from eos_sink.kafka_config.token_source import HANDLERS, find_provider

_BY_NAME = {row.name: row for row in (*SETTINGS, *LIBRDKAFKA_ONLY)}
_PROVIDERS = "config.providers."
_SECRET = re.compile(r"password|passphrase|secret|jaas|token|\.key$|key\.pem$|oauthbearer\.config$")


@dataclass(frozen=True)
class CheckedSetting:
    """The treatment of one setting and its value.

    Attributes:
        handling: REFUSED is an error.
        note: why, and what to use instead; never contains a secret value.
        settings: what librdkafka gets for it; may contain secrets, so not part of repr. Empty for
            settings that have to be read together (stores, JAAS), which `translate` does.
        warning: whether the user gets a warning when the query starts.
    """

    handling: Handling
    note: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    warning: bool = False


def find_setting(name: str) -> Setting | None:
    """The row of a Java name, or of a librdkafka name for the same setting.

    Args:
        name: without `kafka.` in front, in any case.
    """
    name = name.lower()
    return _BY_NAME.get(ALIASES.get(name, name))


def is_known(name: str) -> bool:
    """True if the Java clients or librdkafka have a setting of this name.

    Args:
        name: without `kafka.` in front, in any case.
    """
    name = name.lower()
    known = name in PROPERTIES or name in CONSUMER_ONLY or name.startswith(_PROVIDERS)
    return known or find_setting(name) is not None


def is_secret(name: str) -> bool:
    """True if the value of a setting must never be shown."""
    return bool(_SECRET.search(name.lower()))


def check_setting(name: str, value: str) -> CheckedSetting:
    """Look a setting up in the table, and check its value. Raises nothing.

    Args:
        name: Java's or librdkafka's, without `kafka.` in front, in any case.
        value: as the user wrote it; the note never contains it if `is_secret`.
    """
    name = name.lower()
    row = find_setting(name)
    if row is not None:
        return _check_row(name, row, value)
    if name in PROPERTIES:
        return _pass_on(name, Setting(name, Handling.SAME), value)
    if name in CONSUMER_ONLY:
        note = "It is a consumer's setting; the sink has no such consumer."
        return CheckedSetting(Handling.IGNORED, note, warning=True)
    if name.startswith(_PROVIDERS):
        note = _BY_NAME["config.providers"].note
    elif name.startswith("listener.name."):
        note = "It is a setting of a broker. Remove the option."
    else:
        note = "Neither Java's Kafka producer nor librdkafka knows it."
        import difflib

        known = [*_BY_NAME, *PROPERTIES, *CONSUMER_ONLY]
        if close := difflib.get_close_matches(name, known, n=1):
            note += f" Did you mean 'kafka.{close[0]}'?"
    return CheckedSetting(Handling.REFUSED, note)


def _check_row(name: str, row: Setting, value: str) -> CheckedSetting:
    accepted = row.accepts is not None and re.fullmatch(row.accepts, value.strip().lower())
    if row.name in HANDLERS and (provider := find_provider(value)):
        note = f"A Python library does what the class does: pip install 'eos-sink[{provider}]'."
        return CheckedSetting(Handling.TRANSLATED, note)
    if row.handling is Handling.IGNORED:
        return CheckedSetting(row.handling, row.note, warning=not accepted)
    if row.handling in (Handling.OWNED, Handling.REFUSED):
        if not accepted:
            return CheckedSetting(Handling.REFUSED, row.note)
        handling = Handling.OWNED if row.handling is Handling.OWNED else Handling.SAME
        return CheckedSetting(handling, "It is what the sink does anyway.")
    if row.handling is Handling.TRANSLATED and row.librdkafka is None:
        return CheckedSetting(row.handling, row.note)
    return _pass_on(name, row, value)


def _pass_on(name: str, row: Setting, value: str) -> CheckedSetting:
    target = row.librdkafka or row.name
    note, warning = row.note, False
    try:
        if row.takes and not re.fullmatch(row.takes, value.strip(), re.IGNORECASE):
            raise ValueError(row.note.removesuffix("."))
        text = row.instead.get(value.strip().lower(), value)
        if row.clamped:
            text, warning = _clamp(target, text, row.unit)
            if warning:
                note = f"{text} is used, the nearest value that librdkafka takes."
        used = check_value(target, text)
        return CheckedSetting(row.handling, note, {target: used}, warning)
    except ValueError as wrong:
        shown = "Its value" if is_secret(name) else repr(value)
        return CheckedSetting(Handling.REFUSED, f"{shown} cannot be used: {wrong}.")


def _clamp(target: str, text: str, unit: int) -> tuple[str, bool]:
    """The nearest number in librdkafka's range, and whether it is another one."""
    bounds = get_range(target)
    assert bounds is not None, f"{target} is not a number"
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise ValueError("a whole number is needed")
    number = -(-int(text) // unit)
    nearest = min(max(number, bounds[0]), bounds[1])
    return str(nearest), nearest != number
