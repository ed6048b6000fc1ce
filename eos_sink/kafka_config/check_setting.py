"""What becomes of one setting, with its value."""

from __future__ import annotations

import difflib
import re

from eos_sink.kafka_config.librdkafka_settings import ALIASES, PROPERTIES, checked, number_range
from eos_sink.kafka_config.producer_settings import (
    CONSUMER_ONLY,
    LIBRDKAFKA_SETTINGS,
    PRODUCER_SETTINGS,
)
from eos_sink.kafka_config.security_settings import SECURITY_SETTINGS
from eos_sink.kafka_config.setting import Fate, Judgement, Setting

SETTINGS = tuple(sorted((*PRODUCER_SETTINGS, *SECURITY_SETTINGS), key=lambda row: row.name))
"""Every setting of the Java producer, Kafka 3.9 to 4.3."""

_BY_NAME = {row.name: row for row in (*SETTINGS, *LIBRDKAFKA_SETTINGS)}
_PROVIDERS = "config.providers."
_SECRET = re.compile(r"password|passphrase|secret|jaas|token|\.key$|key\.pem$|oauthbearer\.config$")
# librdkafka would take more, but refuses it together with idempotence, as Java does.
_IDEMPOTENT = {"max.in.flight.requests.per.connection": (1, 5), "retries": (1, 2**31 - 1)}
_SEEN_TOGETHER = re.compile(
    r"sasl\.jaas\.config|ssl\.(key|trust)store\.(location|password|type)|transaction\.timeout\.ms"
)


def setting(name: str) -> Setting | None:
    """The row of a Java name, or of a librdkafka name for the same thing; None: there is none.

    Args:
        name: without `kafka.` in front, in any case.
    """
    name = name.lower()
    return _BY_NAME.get(ALIASES.get(name, name))


def is_known(name: str) -> bool:
    """Whether the Java clients or librdkafka have a setting of this name.

    Args:
        name: without `kafka.` in front, in any case.
    """
    name = name.lower()
    return (
        setting(name) is not None
        or name in PROPERTIES
        or name in CONSUMER_ONLY
        or name.startswith(_PROVIDERS)
    )


def is_secret(name: str) -> bool:
    """Whether the value of a setting must never be shown."""
    return bool(_SECRET.search(name.lower()))


def judge(name: str, value: str) -> Judgement:
    """What becomes of one setting with its value; nothing is raised.

    Args:
        name: Java's or librdkafka's, without `kafka.` in front, in any case.
        value: as the user wrote it; it is never part of the note where `is_secret`.
    """
    name = name.lower()
    row = setting(name)
    if row is not None:
        return _by_row(name, row, value)
    if name in PROPERTIES:
        return _handed_on(name, Setting(name, Fate.SAME), value)
    if name in CONSUMER_ONLY:
        note = "It is a consumer's setting; the sink has no such consumer."
        return Judgement(name, Fate.IGNORED, note, warning=True)
    if name.startswith(_PROVIDERS):
        return Judgement(name, Fate.REFUSED, _BY_NAME["config.providers"].note)
    if name.startswith("listener.name."):
        return Judgement(name, Fate.REFUSED, "It is a setting of a broker. Remove the option.")
    return Judgement(name, Fate.REFUSED, _unknown(name))


def _by_row(name: str, row: Setting, value: str) -> Judgement:
    said = value.strip().lower()
    if row.fate in (Fate.OWNED, Fate.REFUSED):
        if said in row.accepts or _allows_tls_1_2(row.name, said):
            fate = Fate.OWNED if row.fate is Fate.OWNED else Fate.SAME
            return Judgement(name, fate, "It is what the sink does anyway.")
        return Judgement(name, Fate.REFUSED, row.note)
    if row.fate is Fate.IGNORED:
        return Judgement(name, Fate.IGNORED, row.note, warning=said not in row.accepts)
    if _SEEN_TOGETHER.fullmatch(row.name):
        return Judgement(name, row.fate, row.note)
    return _handed_on(name, row, value)


def _handed_on(name: str, row: Setting, value: str) -> Judgement:
    target = row.librdkafka or row.name
    if row.takes and not re.fullmatch(row.takes, value.strip(), re.IGNORECASE):
        return Judgement(name, Fate.REFUSED, _wrong_value(name, value, row.note))
    text = row.instead.get(value.strip().lower(), value)
    try:
        exact = _in_unit(row, text)
        taken = checked(target, _nearest(target, exact) if row.clamped else exact)
    except ValueError as wrong:
        return Judgement(name, Fate.REFUSED, _wrong_value(name, value, f"{wrong}."))
    if row.name in _IDEMPOTENT:
        low, high = _IDEMPOTENT[row.name]
        if not low <= int(taken) <= high:
            needed = f"a number from {low} to {high} is needed with an idempotent producer."
            return Judgement(name, Fate.REFUSED, _wrong_value(name, value, needed))
    if row.clamped and taken != exact:
        note = f"{taken} is used, the nearest value that librdkafka takes."
        return Judgement(name, row.fate, note, {target: taken}, warning=True)
    return Judgement(name, row.fate, row.note, {target: taken})


def _in_unit(row: Setting, value: str) -> str:
    if row.unit == 1:
        return value.strip() if row.clamped else value
    try:
        return str(-(-int(value) // row.unit))
    except ValueError:
        raise ValueError("a whole number is needed") from None


def _nearest(name: str, value: str) -> str:
    bounds = number_range(name)
    try:
        return str(min(max(int(value), bounds[0]), bounds[1])) if bounds else value
    except ValueError:
        raise ValueError("a whole number is needed") from None


def _allows_tls_1_2(name: str, value: str) -> bool:
    """OpenSSL offers 1.2 and 1.3: no less safe than any list with 1.2 in it."""
    versions = [version.strip() for version in value.split(",")]
    return name == "ssl.enabled.protocols" and "tlsv1.2" in versions


def _wrong_value(name: str, value: str, needed: str) -> str:
    shown = "Its value cannot be used" if is_secret(name) else f"{value!r} cannot be used"
    return f"{shown}: {needed}"


def _unknown(name: str) -> str:
    known = [*_BY_NAME, *PROPERTIES, *CONSUMER_ONLY]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f" Did you mean 'kafka.{close[0]}'?" if close else ""
    return f"Neither Java's Kafka producer nor librdkafka knows it.{hint}"
