"""The reference has each public name, with all of its arguments and its errors."""

from __future__ import annotations

import inspect
import re

import pytest

import eos_sink
from tools import reference

FUNCTIONS = [name for name in eos_sink.__all__ if inspect.isfunction(getattr(eos_sink, name))]


def test_each_public_name_has_a_section_and_a_text() -> None:
    sections = reference.markdown().split("\n## ")[1:]
    names = [section.partition("\n")[0] for section in sections]
    assert names == [f"`{name}`" for name in reference.public()]
    assert [name for name, value in reference.public().items() if not value.__doc__] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_s_arguments_and_errors_are_described(name: str) -> None:
    function = getattr(eos_sink, name)
    described, _, raised = reference.describe(function).partition("\nIt raises:\n")
    _, _, arguments = described.partition("Arguments:\n")
    entries = re.findall(r"^- `(\w+)`: ", arguments, re.MULTILINE)
    assert entries == list(inspect.signature(function).parameters)
    assert re.search(r"^- `\w+Error`: ", raised, re.MULTILINE)
