"""The phases of a batch: the table is the guarantee."""

from __future__ import annotations

import pytest

from eos_sink.phases import NEXT, BatchPhase, Phase


def reachable(start: Phase) -> set[Phase]:
    found: set[Phase] = set()
    todo = [start]
    while todo:
        for phase in NEXT[todo.pop()] - found:
            found.add(phase)
            todo.append(phase)
    return found


def test_nothing_leads_from_decided_to_voided_or_aborted() -> None:
    assert reachable(Phase.DECIDED) == {Phase.SETTLED}


def test_nothing_is_aborted_before_it_is_voided() -> None:
    assert [phase for phase in Phase if Phase.ABORTED in NEXT[phase]] == [Phase.VOIDED]


def test_nothing_is_decided_before_it_is_voted() -> None:
    assert [phase for phase in Phase if Phase.DECIDED in NEXT[phase]] == [Phase.VOTED]


def test_nothing_leads_from_voided_to_decided_or_settled() -> None:
    assert reachable(Phase.VOIDED) == {Phase.ABORTED}


def test_the_table_knows_every_phase_and_each_can_end() -> None:
    assert NEXT.keys() == set(Phase)
    for phase in Phase:
        assert {phase, *reachable(phase)} & {Phase.SETTLED, Phase.ABORTED}


@pytest.mark.parametrize("start", list(Phase))
@pytest.mark.parametrize("to", list(Phase))
def test_a_batch_moves_along_the_table_only(start: Phase, to: Phase) -> None:
    batch = BatchPhase()
    batch.now = start
    if to in NEXT[start]:
        batch.move(to)
        assert batch.now is to
    else:
        with pytest.raises(AssertionError, match=f"{start.name} to {to.name}"):
            batch.move(to)
        assert batch.now is start


def test_a_batch_starts_prepared() -> None:
    assert BatchPhase().now is Phase.PREPARED
