"""The table of guards is about the code, the tests and the model as they are now.

`make guards` takes the guards away for real; these tests keep its table from going stale.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from proof.guards import page
from proof.guards.guard import (
    Guard,
    Proof,
    Removals,
    always,
    drop,
    insert,
    move,
    never,
    swap,
    take_away,
)
from proof.guards.model import rows_of
from proof.guards.source import StaleRemovalError
from proof.guards.table import GUARDS, named

ROOT = Path(__file__).resolve().parents[2]
PROOFS = list(dict.fromkeys(proof for guard in GUARDS for proof in guard.proofs))


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
    _, _, *diff = difflib.unified_diff(CODE.splitlines(), now.splitlines(), n=0)
    return [line for line in diff if line[0] in "-+"]


def name_of(guard: Guard) -> str:
    return guard.name


def taken_away(tree: Path, *guards: Guard) -> None:
    """Copy the files that are changed, change them, and see that they are still Python."""
    files = {removal.file for guard in guards for removal in guard.removals}
    for file in files:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tree / file)
    take_away(guards, tree)
    for file in files:
        compile((tree / file).read_text(), file, "exec")


@pytest.mark.parametrize("guard", GUARDS, ids=name_of)
def test_each_guard_is_in_the_code_as_the_table_says(guard: Guard, tmp_path: Path) -> None:
    taken_away(tmp_path / "alone", guard)
    for cover in {proof.without for proof in guard.proofs} - {""}:
        taken_away(tmp_path / cover, guard, named(cover))


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.test)
def test_each_test_that_the_table_names_is_there(proof: Proof) -> None:
    file, *inside = proof.test.split("[", 1)[0].split("::")
    source = (ROOT / file).read_text()
    if len(inside) == 2:
        assert re.search(rf"^(class {inside[0]}\b|{inside[0]} = )", source, re.MULTILINE)
        # The contract's tests are inherited.
        source += "".join(path.read_text() for path in (ROOT / "tests" / "contract").glob("*.py"))
    assert re.search(rf"^ *def {inside[-1]}\(", source, re.MULTILINE)


@pytest.mark.parametrize("guard", GUARDS, ids=name_of)
def test_each_guard_has_a_test_and_a_failing_row_of_the_model_or_a_reason(guard: Guard) -> None:
    assert guard.proofs
    assert bool(guard.rows) != bool(guard.outside)
    for switch in guard.rows:
        assert rows_of(switch), f"no row of proof/spec/run.sh takes {switch} back and fails"


def test_no_two_guards_have_one_name() -> None:
    assert [name for name, n in Counter(map(name_of, GUARDS)).items() if n > 1] == []


def test_the_page_has_the_result_of_each_guard() -> None:
    text = page.PAGE.read_text()
    assert re.findall(r"^\| \*\*(.+?)\*\*:", text, re.MULTILINE) == [g.name for g in GUARDS]
    assert "went unnoticed" not in text


@pytest.mark.parametrize(
    ("removals", "lines"),
    [
        (
            drop("code.py", "write", "self.flush()"),
            ["-            self.flush()", "+            pass"],
        ),
        (
            drop("code.py", "write", "sure=row.sure or ..."),
            ["-                sure=row.sure or self.sure,", "+                "],
        ),
        (
            drop("code.py", "write", '"rows": ...'),
            [
                '-        return {"rows": rows, "sure": True}',
                '+        return {"sure": True}',
            ],
        ),
        (
            never("code.py", "write", "if rows and how[...]:"),
            [
                "-        if rows and (",
                '-            how["sure"]  # é',
                "-        ):",
                "+        if (False):",
            ],
        ),
        (
            always("code.py", "write", 'how["sure"]'),
            ['-            how["sure"]  # é', "+            (True)  # é"],
        ),
        (
            drop("code.py", "Reader.close", "return None"),
            ["-    def close(self): return None", "+    def close(self): pass"],
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
            move("code.py", "write", "self.send(row, ...)", before="for row in ...:"),
            [
                "+        self.send(",
                "+            row,",
                "+            sure=row.sure or self.sure,",
                "+        )",
                "-            self.send(",
                "-                row,",
                "-                sure=row.sure or self.sure,",
                "-            )",
                "+            pass",
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
        (
            drop("code.py", "write", "self.flush()") + drop("code.py", "write", "for row in rows:"),
            "two changes at once",
        ),
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
