"""Checks a trace of real runs (`EOS_TRACE=DIRECTORY/trace`) against the order that is needed.

    python -m proof.trace DIRECTORY

It shares no code with the sink: a step may be wrong although `next_step` says it.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "trace"


@dataclass
class _Query:
    """What the trace has told of a query.

    Attributes:
        named: the transactions of each decision that was voted on or written.
        writers: of each number that was written.
    """

    named: set[str] = field(default_factory=set)
    voted: set[str] = field(default_factory=set)
    writers: dict[int, str] = field(default_factory=dict)


@dataclass
class _Actor:
    """Where one who acts is in the order.

    Attributes:
        listed: the number of the latest record when it listed last; -1: it has not.
        fenced: whether it has written a record since.
    """

    listed: int = -1
    fenced: bool = False


def find_wrong_steps(directory: Path) -> list[str]:
    """What is wrong in a directory's trace; it may have none."""
    file = directory / FILE
    return list(check(file.read_text().splitlines())) if file.exists() else []


def check(lines: Iterable[str]) -> Iterator[str]:
    """Yield each step that the order forbids, in words."""
    queries: dict[str, _Query] = defaultdict(_Query)
    actors: dict[tuple[str, str], _Actor] = defaultdict(_Actor)
    for number, line in enumerate(lines, 1):
        step = json.loads(line)
        group = step["group"]
        for wrong in _wrongs(step, queries[group], actors[step["actor"], group]):
            yield f"line {number}: {wrong}: {line.strip()}"


def _wrongs(step: dict[str, Any], query: _Query, actor: _Actor) -> Iterator[str]:
    yield from _of_record(step, query, actor)
    seq, transactions = step["seq"], set(step["transactions"])
    match step["step"]:
        case "commit" if transactions - query.named:
            yield "committed, and no decision names it"
        case "list":
            actor.listed, actor.fenced = seq, False
        case "fence":
            if actor.listed != seq:
                yield "fenced after another record than the list's"
            actor.fenced = False
        case "abort" if actor.listed < 0 or not actor.fenced:
            yield "aborted without list and fence"
        case "abort" if seq != actor.listed + 1:
            yield "aborted after another record than the fence's"


def _of_record(step: dict[str, Any], query: _Query, actor: _Actor) -> Iterator[str]:
    transactions = set(step["transactions"])
    match step["step"]:
        case "voted":
            query.voted |= transactions
        case "write":
            if transactions - query.named - query.voted:
                yield "a decision names transactions that were not voted on"
            query.named |= transactions
        case "written":
            if query.writers.setdefault(step["seq"], step["writer"]) != step["writer"]:
                yield "one number has two records"
            actor.fenced = True


def main() -> int:
    """Print what is wrong. Exit code 1: something is."""
    wrong = find_wrong_steps(Path(sys.argv[1]))
    sys.stdout.write("".join(f"{each}\n" for each in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
