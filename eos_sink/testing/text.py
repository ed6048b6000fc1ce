"""Kafka's way of writing values, and the .properties format of Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def to_text(value: object) -> str:
    """A property's value as Kafka writes it: booleans in lower case, lists with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(to_text(item) for item in value)
    return str(value)


def render(properties: Mapping[str, str]) -> str:
    """The text of a .properties file; backslashes are escaped, as Java reads them."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in properties.items())


def parse(text: str) -> dict[str, str]:
    """The properties of a file that `render` could have written, comments allowed."""
    properties = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            name, _, value = line.partition("=")
            properties[name.strip()] = value.strip().replace("\\\\", "\\")
    return properties


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
