"""The next action after each error, for each kind of write."""

from __future__ import annotations

import pickle

import pytest

from eos_sink.errors import (
    Action,
    BatchFailedError,
    ClusterError,
    CommitFailedError,
    ConfigurationError,
    EosSinkError,
    OperatorNeededError,
    OutcomeUnknownError,
    ProduceFailedError,
    SupersededError,
    UnfinishedError,
)
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.messages import named
from eos_sink.protocol.model import BatchId, Numbering

NAMES = QueryNames(DEFAULT_PREFIX, "q-0123456789")
FIX, AGAIN, RESOLVE = Action.FIX, Action.RUN_AGAIN, Action.RESOLVE
ONCE = BatchId.numbered_by(Numbering.ONCE, "", 7)
VERSION = BatchId.numbered_by(Numbering.VERSION, "app", 3)
FRAME = BatchId.numbered_by(Numbering.FOREACH, "query", 3)
ACTIONS = {
    ClusterError: FIX,
    BatchFailedError: AGAIN,
    ProduceFailedError: AGAIN,
    CommitFailedError: AGAIN,
    EosSinkError: AGAIN,
    UnfinishedError: AGAIN,
    OutcomeUnknownError: AGAIN,
    SupersededError: AGAIN,
    OperatorNeededError: RESOLVE,
}


def explained(
    kind: type[EosSinkError], batch: BatchId | None = None, action: Action | None = None
) -> EosSinkError:
    with pytest.raises(kind) as error, named(NAMES, "log", write=batch):
        raise kind("It failed.", remedy="Do.", data={"x": 1}, action=action)
    assert error.value.message == "It failed."
    assert error.value.remedy.startswith("Do.")
    again: EosSinkError = pickle.loads(pickle.dumps(error.value))
    return again


@pytest.mark.parametrize("kind", ACTIONS)
def test_after_any_error_a_single_write_is_run_again_under_its_number(
    kind: type[EosSinkError],
) -> None:
    error = explained(kind, ONCE)
    assert error.action is ACTIONS[kind]
    assert '.option("eos.write.id", "7")' in error.remedy
    assert error.data == {"x": 1, "write_id": 7}


@pytest.mark.parametrize("kind", ACTIONS)
def test_after_any_error_a_version_is_run_again(kind: type[EosSinkError]) -> None:
    error = explained(kind, VERSION)
    assert error.action is ACTIONS[kind]
    assert "under txnVersion 3" in error.remedy
    assert error.data == {"x": 1}


@pytest.mark.parametrize("kind", ACTIONS)
def test_the_errors_of_a_frame_are_those_of_its_query(kind: type[EosSinkError]) -> None:
    error = explained(kind, FRAME)
    assert (error.remedy, error.data) == ("Do.", {"x": 1})


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_error_of_a_plan_says_that_nothing_of_this_write_was_written(
    kind: type[EosSinkError],
) -> None:
    error = explained(kind)
    assert error.action is ACTIONS[kind]
    assert "before anything of this write was written" in error.remedy


@pytest.mark.parametrize("batch", [None, ONCE, VERSION], ids=["plan", "once", "version"])
def test_a_wrong_option_is_all_that_has_to_be_changed(batch: BatchId | None) -> None:
    assert explained(ConfigurationError, batch).remedy == "Do."


def test_an_action_of_the_error_itself_is_kept() -> None:
    assert explained(ProduceFailedError, ONCE, FIX).action is FIX
