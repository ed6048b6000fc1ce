"""The reference of the public names, from their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any

import eos_sink
from eos_sink import errors, testing
from eos_sink.cli.notebook import SinkStatus

_TITLES = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Returns": "It returns",
    "Raises": "It raises",
    "Yields": "It yields",
}
_SECTION = re.compile(rf"^({'|'.join(_TITLES)}):$", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*): ", re.MULTILINE)
_PAGE = re.compile(r"\bdocs/(\w[\w.-]*\.md(?:#[\w-]+)?)")


def public() -> dict[str, Any]:
    """Return what is public, by its name."""
    return {
        **{f"eos_sink.{name}": getattr(eos_sink, name) for name in eos_sink.__all__},
        "eos_sink.errors.Action": errors.Action,
        "SinkStatus": SinkStatus,
        **{f"eos_sink.testing.{name}": getattr(testing, name) for name in sorted(testing.__all__)},
    }


def markdown() -> str:
    """Return the page. Its links are those of a file in the folder of the package."""
    parts = [
        "# Python reference\n",
        "[Python API and JSON](../docs/api.md) tells what is stable.\n",
    ]
    for name, value in public().items():
        parts += _entry(name, value)
    return "\n".join(parts)


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"## `{name}`\n"
    if not callable(value):
        return
    if not isinstance(value, type):
        yield _code(value)
        yield describe(value)
    elif issubclass(value, Enum):
        yield describe(value)
        yield f"Values: {', '.join(f'`{each.name}`' for each in value)}.\n"
    elif issubclass(value, Exception):
        yield f"A kind of `{value.__bases__[0].__name__}`. {describe(value)}"
    else:
        yield _code(value)
        yield describe(value)
        for own, method in vars(value).items():
            if inspect.isfunction(method) and not own.startswith("_") and method.__doc__:
                yield f"### `{own}`\n"
                yield _code(method)
                yield describe(method)


def _code(value: Any) -> str:
    signature = inspect.signature(value)
    given = [each for each in signature.parameters.values() if each.name != "self"]
    lines = [f"    {each},\n" for each in given]
    by_name = sum(each.kind is each.KEYWORD_ONLY for each in given)
    if by_name:
        lines.insert(len(lines) - by_name, "    *,\n")
    arguments = "\n" + "".join(lines) if lines else ""
    returned = "" if isinstance(value, type) else f" -> {signature.return_annotation}"
    return f"```python\n{value.__name__}({arguments}){returned}\n```\n".replace("'", "")


def describe(value: Any) -> str:
    """Return the docstring, with a list for each section."""
    first, *sections = _SECTION.split(inspect.getdoc(value) or "")
    parts = [first.strip()]
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        entries = textwrap.dedent(text.strip("\n")).rstrip()
        listed = _ENTRY.sub(r"- `\1`: ", entries)
        parts.append(f"{_TITLES[title]}:\n\n{listed}")
    return _PAGE.sub(r"[\1](../docs/\1)", "\n\n".join(parts)) + "\n"
