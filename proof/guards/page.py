"""docs/internals/guards.md: the guards, and the functions with their mutants."""

from __future__ import annotations

from collections.abc import Iterable

from proof.guards.code import ROOT
from proof.guards.guard import Guard
from proof.guards.model import row_of
from proof.guards.pure import FUNCTIONS, Function
from proof.guards.table import CHAPTERS

PAGE = ROOT / "docs" / "internals" / "guards.md"
_BEGIN, _END = "<!-- made by make guards: begin -->\n", "<!-- made by make guards: end -->\n"


def write() -> None:
    """Put the tables between the page's marks."""
    text = PAGE.read_text()
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    PAGE.write_text(f"{before}{_BEGIN}\n{tables()}\n{_END}{after}")


def tables() -> str:
    parts = [
        "### Functions",
        "",
        *_table(["Function", "Mutants", "Tests"], map(_function, FUNCTIONS)),
    ]
    for chapter, guards in CHAPTERS.items():
        head = ["Guard", "Removed from", "Row of the model", "Failing tests"]
        parts += ["", f"### {chapter}", "", *_table(head, map(_guard, guards))]
    return "\n".join([*parts, ""])


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _function(function: Function) -> list[str]:
    count, same = len(function.mutants()), len(function.same)
    told = f"{count}, {same} of them equivalent" if same else f"{count}"
    return [f"`{_file(function.file)}`: `{function.name}`", told, _tests(function.tests)]


def _guard(guard: Guard) -> list[str]:
    files = dict.fromkeys(_file(removal.file) for removal in guard.removals)
    model = [f"`{row_of(switch)}`" for switch in guard.rows] or [f"none: {guard.outside}"]
    return [
        f"**{guard.name}**: {guard.rule}",
        ", ".join(f"`{file}`" for file in files),
        ", ".join(model),
        _tests(guard.tests),
    ]


def _file(file: str) -> str:
    return file.removeprefix("eos_sink/")


def _tests(tests: Iterable[str]) -> str:
    return "; ".join(map(_test, tests))


def _test(test: str) -> str:
    file, _, rest = test.partition("::")
    words = rest.split("::")[-1].partition("[")[0].removeprefix("test_").replace("_", " ")
    return f"`{file.removesuffix('.py')}`" + (f": {words}" if words else "")
