"""Each doubt names batch, partitions and rows, and the command that resolves it."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from eos_sink.errors import Action, OperatorNeededError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    Entry,
    LogRecord,
    Numbering,
    Prepared,
    RowDigest,
)
from eos_sink.protocol.values import Position

NAMES = QueryNames(DEFAULT_PREFIX, "q-0123456789")
LOG = "__eos_sink_log"
OTHER = QueryNames("team-", "r-0123456789")
ENTRIES = tuple(
    Prepared(p, 100 + p, 4, RowDigest(p - 20, 1, 1), Position("topic", 7, 99)) for p in (31, 32)
)
DECISION = Decision(BatchId("stream", 41), 1, 3, RowDigest(23, 2, 2), ENTRIES)
NOW = BatchId("stream", 40)

KNOWN = {
    "in_doubt": operator_errors.in_doubt(NAMES, LOG, DECISION, {e.partition for e in ENTRIES}),
    "old_checkpoint": operator_errors.old_checkpoint(NAMES, LOG, NOW, DECISION),
    "unrepaired": operator_errors.unrepaired(NAMES, LOG, NOW, DECISION, frozenset({31, 32})),
    "other_rows": operator_errors.other_rows(NAMES, LOG, DECISION, "it has 23 rows", [31, 32]),
    "needs_partitions": operator_errors.needs_partitions(
        NAMES, LOG, DECISION, frozenset({31, 32}), "its rows were deleted", 8
    ),
    "went_back": operator_errors.went_back(
        NAMES,
        5,
        Position("log", 1, 2),
        Entry(LogRecord(3, DECISION, "w"), Position("log", 1, 1)),
    ),
}
UNKNOWN = {
    "moved_checkpoint": operator_errors.moved_checkpoint(
        NAMES, NOW, OTHER, LogRecord(1, DECISION, "w"), NOW
    ),
    "no_record": operator_errors.no_record(NAMES, "log", [NAMES.driver], [31, 32]),
    "unreadable_record": operator_errors.unreadable_record("log[1]@2", ValueError("x")),
}


def test_each_doubt_is_here() -> None:
    made = {
        name
        for name, function in inspect.getmembers(operator_errors, inspect.isfunction)
        if inspect.signature(function).return_annotation == "OperatorNeededError"
    }
    assert made - {"_needed"} == KNOWN.keys() | UNKNOWN.keys()


@pytest.mark.parametrize("error", [*KNOWN.values(), *UNKNOWN.values()])
def test_each_has_batch_partitions_and_rows(error: OperatorNeededError) -> None:
    assert error.data.keys() >= {"batch", "partitions", "rows"}
    for word in ("atch", "partitions", "rows"):
        assert word in error.message


@pytest.mark.parametrize(("name", "error"), KNOWN.items())
def test_known_evidence_is_in_the_text(name: str, error: OperatorNeededError) -> None:
    assert error.data["batch"] in (40, 41)
    assert error.data["partitions"] == [31, 32]
    assert error.data["rows"] == 23
    if name != "went_back":
        for part in (str(error.data["batch"]), "[31, 32]", "23 rows"):
            assert part in error.message


@pytest.mark.parametrize(("name", "error"), [*KNOWN.items(), *UNKNOWN.items()])
def test_each_names_the_command_and_its_choice(name: str, error: OperatorNeededError) -> None:
    if name == "moved_checkpoint":
        assert error.data["query"] == "r-0123456789"
        return  # Undoing the change finishes the batch.
    assert "eos-sink resolve" in error.remedy
    if name != "unreadable_record":
        assert f"eos-sink resolve {NAMES.query} --bootstrap-server HOST:PORT" in error.remedy
        choices = (
            operator_errors.VISIBLE,
            operator_errors.LOST,
            operator_errors.ACCEPT,
            operator_errors.FORGET,
        )
        assert any(choice in error.remedy for choice in choices)


def test_other_partitions_of_a_version_are_brought_back_by_writing_it_again() -> None:
    version = replace(DECISION, batch=BatchId.numbered_by(Numbering.VERSION, "job", 41))
    error = operator_errors.needs_partitions(NAMES, LOG, version, frozenset({31}), "of twins", 8)
    assert error.action is Action.FIX
    assert error.remedy.startswith("Run the write again with the settings")


def test_the_command_names_a_prefix_that_is_not_the_usual_one() -> None:
    assert "--prefix" not in operator_errors.resolve_command(NAMES, LOG)
    assert "--prefix team-" in operator_errors.resolve_command(OTHER, LOG)
