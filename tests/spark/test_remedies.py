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
from eos_sink.protocol.model import BatchId, Numbering, PlanToken
from eos_sink.protocol.values import Position
from eos_sink.spark.remedies import Stage, add_batch_remedy

FIX, AGAIN, LEAVE, LOOK, RESOLVE = Action
TOKEN = PlanToken(QueryNames(DEFAULT_PREFIX, "job"), 6, Position("log", 0, 9), b"")
ONCE = BatchId.numbered_by(Numbering.ONCE, "5e4e", 7)
VERSION = BatchId.numbered_by(Numbering.VERSION, "app", 3)
FRAME = BatchId.numbered_by(Numbering.FOREACH, "query", 3)

# After each error of a write, in its tasks and in its commit.
ACTIONS = {
    ConfigurationError: {"all": (FIX, FIX)},
    ClusterError: {"all": (FIX, FIX)},
    BatchFailedError: {"all": (AGAIN, AGAIN)},
    ProduceFailedError: {"all": (AGAIN, AGAIN)},
    CommitFailedError: {"all": (AGAIN, AGAIN)},
    EosSinkError: {"all": (AGAIN, AGAIN)},
    UnfinishedError: {"all": (AGAIN, AGAIN), "once": (AGAIN, LEAVE)},
    OutcomeUnknownError: {"all": (AGAIN, AGAIN), "once": (AGAIN, LOOK)},
    OperatorNeededError: {"all": (RESOLVE, RESOLVE), "once": (RESOLVE, LOOK)},
}
WRITES = {"once": ONCE, "version": VERSION, "frame": FRAME}


def explained(
    kind: type[EosSinkError],
    stage: Stage,
    batch: BatchId | None = None,
    action: Action | None = None,
    **data: object,
) -> EosSinkError:
    with pytest.raises(kind) as error, add_batch_remedy(stage, batch, TOKEN):
        raise kind("It failed.", remedy="Do.", data=data, action=action)
    assert error.value.message == "It failed."
    assert error.value.remedy.startswith("Do.")
    assert error.value.data == data
    again: EosSinkError = pickle.loads(pickle.dumps(error.value))
    return again


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("kind", ACTIONS)
def test_the_action_after_an_error_of_a_write(kind: type[EosSinkError], name: str) -> None:
    expected = ACTIONS[kind].get(name, ACTIONS[kind]["all"])
    batch = WRITES[name]
    found = tuple(explained(kind, stage, batch).action for stage in (Stage.TASK, Stage.COMMIT))
    assert found == expected


@pytest.mark.parametrize("kind", [ProduceFailedError, SupersededError, CommitFailedError])
@pytest.mark.parametrize("stage", Stage)
def test_an_action_of_the_error_itself_is_kept(kind: type[EosSinkError], stage: Stage) -> None:
    if stage is not Stage.PLAN:
        assert explained(kind, stage, ONCE, FIX).action is FIX


@pytest.mark.parametrize(
    "kind", [UnfinishedError, OutcomeUnknownError, SupersededError, CommitFailedError, EosSinkError]
)
def test_an_error_of_a_plan_blames_no_write_that_has_not_begun(kind: type[EosSinkError]) -> None:
    error = explained(kind, Stage.PLAN)
    assert error.action is AGAIN
    assert "before anything of this write was written" in error.remedy
    assert "would be there twice" not in error.remedy


@pytest.mark.parametrize("kind", [ClusterError, OperatorNeededError])
def test_a_plan_that_needs_a_repair_or_a_choice_says_that_nothing_was_written(
    kind: type[EosSinkError],
) -> None:
    error = explained(kind, Stage.PLAN)
    assert error.action is (FIX if kind is ClusterError else RESOLVE)
    assert "before anything of this write was written" in error.remedy


@pytest.mark.parametrize(("former", "warned"), [(ONCE, True), (VERSION, False), (FRAME, False)])
def test_a_former_write_that_is_open_is_not_to_be_run_again_if_it_has_no_version(
    former: BatchId, warned: bool
) -> None:
    error = explained(UnfinishedError, Stage.PLAN, stream=former.stream)
    assert ("Do not run the earlier write again" in error.remedy) is warned
    assert error.action is AGAIN


def test_an_unknown_outcome_of_a_single_write_names_the_command_that_knows() -> None:
    error = explained(OutcomeUnknownError, Stage.COMMIT, ONCE)
    command = (
        "eos-sink explain job 7 --bootstrap-server HOST:PORT --log-topic log --stream once:5e4e"
    )
    assert command in error.remedy.splitlines()


def test_a_single_write_of_which_nothing_can_be_decided_is_run_again() -> None:
    error = explained(OutcomeUnknownError, Stage.COMMIT, ONCE, decided=False)
    assert error.action is AGAIN
    assert "run the write again" in error.remedy


def test_the_errors_of_a_frame_are_those_of_its_query() -> None:
    for kind in ACTIONS:
        assert explained(kind, Stage.COMMIT, FRAME).remedy == "Do."


def test_a_version_is_always_run_again_under_its_number() -> None:
    for kind in (BatchFailedError, UnfinishedError, OutcomeUnknownError):
        for stage in (Stage.TASK, Stage.COMMIT):
            assert "under the same txnVersion" in explained(kind, stage, VERSION).remedy
