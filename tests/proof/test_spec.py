"""The models, their rows and their page name the same rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proof.guards.model import rows

SPEC = Path(__file__).resolve().parents[2] / "proof" / "spec"
_RULE = re.compile(r"\b(?:M|NO)_[A-Z]+\b")


def rules_of_the_model() -> set[str]:
    conditions = re.findall(r"^#\s*(?:if|ifdef|ifndef|elif)\b.*$", _model(), re.MULTILINE)
    return set(_RULE.findall("\n".join(conditions)))


def _model() -> str:
    return "".join(path.read_text() for path in sorted(SPEC.glob("*.pml")))


def test_each_rule_that_the_model_can_take_back_has_a_row() -> None:
    assert rules_of_the_model() == {
        switch for row in rows() for switch in row.switches if _RULE.fullmatch(switch)
    }


@pytest.mark.parametrize("rule", sorted(rules_of_the_model()))
def test_each_rule_is_in_the_table_of_the_page(rule: str) -> None:
    assert f"`{rule}`" in (SPEC / "README.md").read_text()


def test_each_switch_of_a_row_is_one_of_the_model() -> None:
    known = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", _model()))
    assert {switch for row in rows() for switch in row.switches} <= known


def test_no_two_rows_have_one_name() -> None:
    names = [row.name for row in rows()]
    assert sorted(names) == sorted(set(names))
