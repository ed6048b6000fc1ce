"""The table of guards is about the code, the tests and the model as they are now.

`make guards` takes the guards away for real; these tests keep its table from going stale.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from proof.guards import page
from proof.guards.guard import Guard, Proof, take_away
from proof.guards.model import rows_of
from proof.guards.table import GUARDS, named

ROOT = Path(__file__).resolve().parents[2]
PROOFS = list(dict.fromkeys(proof for guard in GUARDS for proof in guard.proofs))


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
        # The contract's tests are inherited.
        assert f"class {inside[0]}(" in source
        source = "".join(path.read_text() for path in (ROOT / "tests" / "contract").glob("*.py"))
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
