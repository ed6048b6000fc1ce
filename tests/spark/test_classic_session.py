"""What is asked of a session of Spark, on a stub of the JVM."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from eos_sink.spark.classic_session import to_dict


class Texts:
    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)

    def mkString(self, separator: str) -> str:  # noqa: N802 - Scala's name
        return separator.join(self._texts)


class ScalaMap:
    def __init__(self, entries: dict[str, str]) -> None:
        self._entries = entries

    def keys(self) -> Texts:
        return Texts(self._entries.keys())

    def values(self) -> Texts:
        return Texts(self._entries.values())


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"spark.a": ""},
        {"spark.a": "1", "spark.b": "", "spark.c": "x, y=z\n"},
        {"spark.a": "one\0two", "spark.b": "\0"},
        {"spark.a\0b": "1", "spark.c": "2\0spark.speculation"},
    ],
)
def test_any_setting_is_read_as_it_is(entries: dict[str, str]) -> None:
    assert to_dict(ScalaMap(entries)) == entries
