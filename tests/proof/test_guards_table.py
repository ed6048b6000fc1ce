"""The tables of guards and functions are about the code, the tests and the model as they are now.

`make guards` takes the guards away for real; these tests keep its tables from going stale.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from proof.guards import mutants, page
from proof.guards.code import StaleRemovalError
from proof.guards.guard import (
    Guard,
    Removals,
    always,
    drop,
    insert,
    move,
    never,
    swap,
    take_away,
)
from proof.guards.model import row_of
from proof.guards.mutants import Mutant
from proof.guards.pure import FUNCTIONS, Function
from proof.guards.table import GUARDS

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted(
    {test for guard in GUARDS for test in guard.tests}
    | {test for function in FUNCTIONS for test in function.tests}
)


CODE = """\
class Writer:
    def close(self): ...

    def write(self, rows, **how):
        # Why.
        if rows and (
            how["sure"]  # é
        ):
            self.send(rows, sure=True)
        for row in rows:
            self.send(
                row,
                sure=row.sure or self.sure,
            )
            self.flush()
        return {"rows": rows, "sure": True}


class Reader:
    def close(self): return None
"""


def changed(tree: Path, removals: Removals) -> list[str]:
    """The lines of the code that are new, and those that are gone."""
    (tree / "code.py").write_text(CODE)
    take_away([Guard("", "", removals, ())], tree)
    now = (tree / "code.py").read_text()
    before = ast.unparse(ast.parse(CODE)).splitlines()
    _, _, *diff = difflib.unified_diff(before, now.splitlines(), n=0)
    return [line for line in diff if line[0] in "-+"]


def name_of(one: Guard | Function) -> str:
    return one.name


@pytest.mark.parametrize("guard", GUARDS, ids=name_of)
def test_each_guard_is_in_the_code_as_the_table_says(guard: Guard, tmp_path: Path) -> None:
    for file in {removal.file for removal in guard.removals}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    take_away([guard], tmp_path)
    for removal in guard.removals:
        compile((tmp_path / removal.file).read_text(), removal.file, "exec")


@pytest.mark.parametrize("function", FUNCTIONS, ids=name_of)
def test_each_function_has_mutants_and_those_that_change_nothing(function: Function) -> None:
    assert function.mutants()


@pytest.mark.parametrize("test", TESTS)
def test_each_test_that_a_table_names_is_there(test: str) -> None:
    file, *inside = test.split("[", 1)[0].split("::")
    source = (ROOT / file).read_text()
    if len(inside) == 2:
        assert re.search(rf"^(class {inside[0]}\b|{inside[0]} = )", source, re.MULTILINE)
        # The contract's tests are inherited.
        source += "".join(path.read_text() for path in (ROOT / "tests" / "contract").glob("*.py"))
    assert not inside or re.search(rf"^ *def {inside[-1]}\(", source, re.MULTILINE)


@pytest.mark.parametrize("guard", GUARDS, ids=name_of)
def test_each_guard_has_a_test_and_a_failing_row_of_the_model_or_a_reason(guard: Guard) -> None:
    assert guard.tests
    assert bool(guard.rows) != bool(guard.outside)
    assert all(map(row_of, guard.rows))


def test_no_two_guards_have_one_name() -> None:
    assert [name for name, n in Counter(map(name_of, GUARDS)).items() if n > 1] == []


def test_the_page_has_each_guard_and_each_function() -> None:
    """The number of mutants is that of the last `make guards`."""
    number = re.compile(r"\| \d+(, \d+ of them equivalent)? \|")
    assert number.sub("", page.tables()) in number.sub("", page.PAGE.read_text())


@pytest.mark.parametrize(
    ("removals", "lines"),
    [
        (
            drop("code.py", "write", "self.flush()"),
            ["-            self.flush()"],
        ),
        (
            drop("code.py", "write", "self.send(rows, ...)"),
            ["-            self.send(rows, sure=True)", "+            pass"],
        ),
        (
            drop("code.py", "write", "sure=row.sure or ..."),
            [
                "-            self.send(row, sure=row.sure or self.sure)",
                "+            self.send(row)",
            ],
        ),
        (
            swap("code.py", "write", "sure=row.sure or ...", "False"),
            [
                "-            self.send(row, sure=row.sure or self.sure)",
                "+            self.send(row, sure=False)",
            ],
        ),
        (
            never("code.py", "write", "if rows and how[...]:"),
            ["-        if rows and how['sure']:", "+        if False:"],
        ),
        (
            always("code.py", "write", 'how["sure"]'),
            ["-        if rows and how['sure']:", "+        if rows and True:"],
        ),
        (
            drop("code.py", "Reader.close", "return None"),
            ["-        return None", "+        pass"],
        ),
        (
            swap("code.py", "write", "self.send(rows, ...)", "self.check()\nself.send(rows)"),
            [
                "-            self.send(rows, sure=True)",
                "+            self.check()",
                "+            self.send(rows)",
            ],
        ),
        (
            insert("code.py", "write", "self.check()", after="if rows and ...:"),
            ["+        self.check()"],
        ),
        (
            insert("code.py", "write", "self.check()", before="for row in rows:")
            + drop("code.py", "write", "for row in rows:"),
            [
                "-        for row in rows:",
                "-            self.send(row, sure=row.sure or self.sure)",
                "-            self.flush()",
                "+        self.check()",
            ],
        ),
        (
            move("code.py", "write", "self.send(row, ...)", before="for row in ...:"),
            [
                "+        self.send(row, sure=row.sure or self.sure)",
                "-            self.send(row, sure=row.sure or self.sure)",
            ],
        ),
    ],
)
def test_only_the_code_that_a_pattern_describes_is_changed(
    removals: Removals, lines: list[str], tmp_path: Path
) -> None:
    assert changed(tmp_path, removals) == lines


@pytest.mark.parametrize(
    ("removals", "message"),
    [
        (
            drop("code.py", "write", "self.abort()"),
            "write: found 0 times instead of 1: self.abort()",
        ),
        (never("code.py", "write", "rows"), "write: found 4 times instead of 1: rows"),
        (drop("code.py", "write", "self.send(...)", of=3), "found 2 times instead of 3"),
        (drop("code.py", "abort", "self.flush()"), "code.py has 0 functions abort instead of one"),
        (drop("code.py", "close", "return None"), "code.py has 2 functions close instead of one"),
    ],
)
def test_a_removal_that_the_code_no_longer_has_is_an_error(
    removals: Removals, message: str, tmp_path: Path
) -> None:
    with pytest.raises(StaleRemovalError) as stale:
        changed(tmp_path, removals)
    assert message in str(stale.value)
    assert "Bring proof/guards to what the code is now." in str(stale.value)
    assert (tmp_path / "code.py").read_text() == CODE


PURE = """\
_VALUES: dict[str, int] = {"a": 1, "b": 2}
_ORDER = ("a", "b")


class Judge:
    @staticmethod
    def judge(given: int | None, least: int = 1) -> int:
        if given is None:
            raise stop("none" if least else "some", least=least or 1)
        if given > least and not _is_odd(given):
            return _VALUES[_ORDER[0]]
        check(given)
        return max(least, 2 - given)


def _is_odd(number):
    return number % 2 == 1


def check(number):
    return not number
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Mutant]]:
    """The mutants of `Judge.judge`, whose module can be imported."""
    (tmp_path / "pure_sample.py").write_text(PURE)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield mutants.mutants_of("pure_sample.py", "Judge.judge")
    sys.modules.pop("pure_sample", None)


def test_each_row_condition_and_term_is_changed_also_of_what_a_function_alone_uses(
    made: list[Mutant],
) -> None:
    condition = "given > least and (not _is_odd(given))"
    assert [f"{each.name}: {each.change}" for each in made] == [
        f"Judge.judge: if given is None after if {condition}",
        "Judge.judge: without check(given)",
        "Judge.judge: never given is None",
        "Judge.judge: always given is None",
        "Judge.judge: never least",
        "Judge.judge: always least",
        f"Judge.judge: never {condition}",
        f"Judge.judge: without given > least in {condition}",
        f"Judge.judge: without not _is_odd(given) in {condition}",
        "Judge.judge: given >= least instead of given > least",
        "Judge.judge: without least",
        "Judge.judge: without 2 - given",
        "Judge.judge: opposite 2 - given",
        "_ORDER: without 'a'",
        "_ORDER: without 'b'",
        "_ORDER: 'a' after 'b'",
        "_VALUES: without 'a'",
        "_VALUES: without 'b'",
        "_is_odd: number % 2 != 1 instead of number % 2 == 1",
    ]


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ("nothing", [2, 1, 1, 1]),
        ("Judge.judge: opposite 2 - given", [2, 3, 1, 5]),
        ("_is_odd: number % 2 != 1 instead of number % 2 == 1", [2, 1, 1, 1]),
        ("_ORDER: 'a' after 'b'", [2, 1, 2, 1]),
        ("_VALUES: without 'a'", [2, 1, None, 1]),
    ],
)
def test_a_mutant_takes_the_place_of_its_function_or_table(
    change: str, answers: list[int | None], made: list[Mutant]
) -> None:
    judge = importlib.import_module("pure_sample").Judge.judge
    for mutant in made:
        if f"{mutant.name}: {mutant.change}" == change:
            mutant.apply()
    found = []
    for given in (0, 1, 2, 3):
        try:
            found.append(judge(given))
        except KeyError:
            found.append(None)
    assert found == answers
