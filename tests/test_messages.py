"""Each reason is a row of the table, and each `stop` has the facts that its row names."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import eos_sink
from eos_sink.errors import EosSinkError
from eos_sink.identity import DEFAULT_PREFIX, QueryNames
from eos_sink.messages import Reason, Text, command, named, stop
from eos_sink.protocol.model import BatchId, Decision, Numbering, Prepared, RowDigest
from eos_sink.protocol.values import Position
from tests.error_kinds import KINDS

REASONS = {name for name, row in vars(Reason).items() if isinstance(row, Text)}
NAMES = QueryNames(DEFAULT_PREFIX, "q-0123456789")
ENTRIES = tuple(
    Prepared(p, 100 + p, 4, RowDigest(p - 20, 1, 1), Position("topic", 7, 99)) for p in (31, 32)
)
DECISION = Decision(BatchId("stream", 41), 1, 3, RowDigest(24, 2, 2), ENTRIES)


def reasons(node: ast.AST) -> set[str]:
    names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return names & REASONS


def stops() -> list[tuple[str, list[str]]]:
    """The reasons that calls name, each with the facts of its call, if they are all written."""
    found = []
    for path in Path(eos_sink.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "stop":
                facts = [each.arg for each in node.keywords if each.arg]
                if len(facts) == len(node.keywords):
                    found += [(each, facts) for each in reasons(node.args[0])]
    return sorted(found)


class Anything:
    """A fact with whatever is asked of it."""

    name = "STREAM"

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, *_: object) -> Anything:
        return self

    def __iter__(self) -> Iterator[Anything]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __ge__(self, _: object) -> bool:
        return True

    def __format__(self, _: str) -> str:
        return "anything"


def test_each_reason_is_used() -> None:
    code = Path(eos_sink.__file__).parent.rglob("*.py")
    used = set().union(*(reasons(ast.parse(path.read_text())) for path in code))
    assert used == REASONS


def test_only_options_clients_and_settings_have_errors_of_their_own() -> None:
    """The texts of all others are rows of the table."""
    kinds = {kind.__name__ for kind in KINDS}
    root = Path(eos_sink.__file__).parent
    builders = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds
    }
    assert builders == {"kafka", "kafka_config", "cli", "identity.py", "options.py"}


@pytest.mark.parametrize(("reason", "facts"), stops())
def test_each_stop_has_the_facts_of_its_text(reason: str, facts: list[str]) -> None:
    error = stop(vars(Reason)[reason], **{each: Anything() for each in facts})
    assert "{" not in str(error)


def test_the_edge_names_the_query_and_its_commands() -> None:
    with pytest.raises(EosSinkError) as told, named(NAMES, "log"):
        raise stop(Reason.UNREPAIRED, batch=BatchId("s", 42), decision=DECISION, lost={32})
    error = told.value
    assert error.message.startswith(f"Query {NAMES.query}: Spark runs batch 42 of stream s")
    assert "partitions [32] (12 rows) of batch 41" in error.message
    assert "resolve q-0123456789 --bootstrap-server HOST:PORT --log-topic log" in error.remedy
    assert "--accept" in error.remedy
    assert str(error) == f"{error.message} {error.remedy} ({error.link()})"
    assert json.loads(json.dumps(error.data)) == {"batch": 41, "partitions": [32], "rows": 12}


def test_without_names_an_error_still_says_what_has_happened() -> None:
    error = stop(Reason.UNREADABLE_RECORD, where="log[1]@2", error=ValueError("x"))
    assert error.message.startswith("This version cannot read the decision log's record at log[1]")
    assert error.data == {"batch": None, "partitions": [], "rows": None}


@pytest.mark.parametrize("numbering", Numbering)
def test_the_same_rows_are_brought_back_as_the_batch_was_numbered(numbering: Numbering) -> None:
    batch = BatchId.numbered_by(numbering, "job", 41)
    decision = Decision(batch, 1, 3, RowDigest(24, 2, 2), ENTRIES)
    error = stop(Reason.OTHER_ROWS, decision=decision, difference="it has 23 rows", partitions=[3])
    assert ("txnVersion" in error.remedy) == (numbering is Numbering.VERSION)


def test_a_command_names_a_prefix_that_is_not_the_usual_one() -> None:
    assert "--prefix" not in command("resolve", NAMES, "log")
    other = QueryNames("team-", "r-0123456789")
    assert "--prefix team-" in command("resolve", other, "log")


def test_the_page_of_messages_has_each_message_of_the_table() -> None:
    rows = [
        f"| {re.sub(r'{.*?}', '…', text.message)} | `{text.error.__name__}` "
        f"| `{(text.action or text.error._action).name}` |"
        for name, text in vars(Reason).items()
        if name in REASONS
    ]
    root = Path(eos_sink.__file__).parent.parent
    found = (root / "docs" / "internals" / "messages.md").read_text().splitlines()
    assert [line for line in found if line.startswith("| ")][1:] == rows, "\n".join(rows)
