"""Properties files mean what they mean to Java."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.kafka_config.properties_file import Property, read_properties


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a=b", "a", "b"),
        ("a = b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("a \t b c ", "a", "b c"),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("a = = b", "a", "= b"),
        ("a=b=c#d", "a", "b=c#d"),
        ("  a=b", "a", "b"),
        (r"a\=b\:c\ d=e", "a=b:c d", "e"),
        ("a=b\\\n   c", "a", "bc"),
        ("a=b\\\\", "a", "b\\"),
        ("a=b\\\n#c", "a", "b#c"),
        (r"a=\u00e9\tx\y", "a", "é\txy"),
        ("a=b\\", "a", "b"),
    ],
)
def test_an_entry_is_read_as_java_reads_it(text: str, name: str, value: str) -> None:
    (entry,) = read_properties(text)
    assert (entry.name, entry.value) == (name, value)


def test_comments_and_empty_lines_are_passed_over_and_lines_are_counted() -> None:
    text = "# one\n! two \\\n\n  \na=1\r\nb=2\\\n  3\rc=4"
    assert read_properties(text) == [
        Property("a", "1", 5),
        Property("b", "23", 6),
        Property("c", "4", 8),
    ]


def test_a_comment_is_not_continued() -> None:
    assert [entry.name for entry in read_properties("# x \\\na=1")] == ["a"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for entry in read_properties(text):
        assert 1 <= entry.line <= len(text) + 1
