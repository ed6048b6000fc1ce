"""Commands as an operator types them, run in the test's own process."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from eos_sink import cli
from integration.query import Query

RAN, WAITING, REFUSED, NOT_SEEN = 0, 1, 2, 3


@dataclass(frozen=True)
class Printed:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err

    @property
    def document(self) -> dict[str, Any]:
        """What it prints with `--json`."""
        document: dict[str, Any] = json.loads(self.out)
        return document


def run_command(*words: str, expect: int | None = RAN) -> Printed:
    """Run `eos-sink` with these words; the imports are paid once.

    Args:
        expect: the exit code; None: any.
    """
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = cli.main([*words])
    printed = Printed(code, out.getvalue(), err.getvalue())
    assert expect in (None, code), printed.said
    return printed


class Operator:
    """Types `eos-sink resolve` for one query."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self.called = query.options.names.query

    def types(self, *more: str, expect: int = RAN) -> str:
        words = ["resolve", self.called, *self._query.reach, *more]
        return run_command(*words, expect=expect).said

    def sees(self, expect: int = RAN) -> dict[str, Any]:
        evidence: dict[str, Any] = json.loads(self.types("--json", expect=expect))
        return evidence

    def chooses(self, choice: str, *more: str) -> None:
        """The run that ended is the group's member for a while."""
        before = self._query.log().seq
        said = self.types(f"--{choice}", "--yes", "--take-over", *more)
        assert f"--{choice} is carried out" in said
        assert self._query.log().seq == before + 1

    def is_refused(self, choice: str, *more: str) -> str:
        """And nothing has changed."""
        before = self._query.log()
        said = self.types(f"--{choice}", *more, expect=REFUSED)
        assert self._query.log() == before
        return said
